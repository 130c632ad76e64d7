package deployed

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/p4lb/p4lb/plain"
)

// TestRunning tells a process from none, from one that has ended, and from a
// later one of the same number.
func TestRunning(t *testing.T) {
	here := &Note{PID: os.Getpid(), Began: processStart(os.Getpid())}
	if !here.Running() {
		t.Error("this process does not run")
	}
	if other := (&Note{PID: here.PID, Began: here.Began + "1"}); other.Running() {
		t.Error("a process that began at another time is taken for this one")
	}
	if (&Note{}).Running() {
		t.Error("no process runs")
	}
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Skip("there is no program called true:", err)
	}
	child := &Note{PID: cmd.Process.Pid, Began: processStart(cmd.Process.Pid)}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if child.Running() {
		t.Error("a process that has ended runs")
	}
}

// TestNoteIsAFile: what is no file is neither waited for nor replaced.
func TestDeployedFile(t *testing.T) {
	link := filepath.Join(t.TempDir(), "state.json")
	if err := os.Symlink(os.DevNull, link); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(link); !errors.Is(err, plain.ErrNotRegular) {
		t.Errorf("reading a device: %v", err)
	}
	if err := (&Note{}).Write(link); !errors.Is(err, plain.ErrNotRegular) {
		t.Errorf("writing a device: %v", err)
	}
	if to, err := os.Readlink(link); err != nil || to != os.DevNull {
		t.Errorf("the link leads to %q now: %v", to, err)
	}
}
