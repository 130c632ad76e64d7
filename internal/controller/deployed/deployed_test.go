package deployed

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/p4lb/p4lb/internal/text/plain"
)

const ownFile = "P4LB_TEST_OWN"

// TestMain lets a test run another process that owns a deployment until its
// standard input ends.
func TestMain(m *testing.M) {
	if file := os.Getenv(ownFile); file != "" {
		_, err := Own(file)
		fmt.Println(err)
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// ownElsewhere makes another process the owner of a deployment.
func ownElsewhere(t *testing.T, state string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), ownFile+"="+state)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || strings.TrimSpace(line) != "<nil>" {
		t.Fatalf("the other process does not own the deployment: %q %v", line, err)
	}
	return cmd
}

func TestOwner(t *testing.T) {
	state := filepath.Join(t.TempDir(), "net.json")
	owner := func() int {
		t.Helper()
		pid, err := Owner(state)
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	if pid := owner(); pid != 0 {
		t.Errorf("process %d owns a deployment that does not exist", pid)
	}
	lock, err := Own(state)
	if err != nil {
		t.Fatal(err)
	}
	if pid := owner(); pid != os.Getpid() {
		t.Errorf("owner is %d, want this process", pid)
	}
	var taken *OwnedError
	if _, err := Own(state); !errors.As(err, &taken) || taken.PID != os.Getpid() {
		t.Errorf("owning twice: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(filepath.Dir(state)); err != nil || len(files) > 0 {
		t.Errorf("a released lock leaves %v, %v", files, err)
	}

	other := ownElsewhere(t, state)
	if pid := owner(); pid != other.Process.Pid {
		t.Errorf("owner is %d, want %d", pid, other.Process.Pid)
	}
	if _, err := Own(state); !errors.As(err, &taken) || taken.PID != other.Process.Pid {
		t.Errorf("owning another's deployment: %v", err)
	}
	if err := Forget(state); err == nil {
		t.Error("another process's deployment can be forgotten")
	}
	if pid, err := EndOwner(t.Context(), state, 10*time.Second); err != nil || pid != other.Process.Pid {
		t.Errorf("ending the owner: process %d: %v", pid, err)
	}
	if err := other.Wait(); err == nil || other.ProcessState.ExitCode() != -1 {
		t.Errorf("the owner was not ended by a signal: %v", other.ProcessState)
	}
	if pid := owner(); pid != 0 {
		t.Errorf("process %d owns the deployment of a process that has ended", pid)
	}
}

// TestForeignProcess: the content of a file does not make a process the owner.
func TestForeignProcess(t *testing.T) {
	sleep := exec.Command("sleep", "1000")
	if err := sleep.Start(); err != nil {
		t.Skip("there is no program sleep:", err)
	}
	defer sleep.Wait()
	defer sleep.Process.Kill()
	state := filepath.Join(t.TempDir(), "net.json")
	text := fmt.Sprintf(`{"version":%d,"kept":true,"pid":%d,"target":"embedded"}`, version, sleep.Process.Pid)
	for _, file := range []string{state, lockFile(state)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if pid, err := EndOwner(t.Context(), state, time.Second); pid != 0 || err != nil {
		t.Errorf("process %d is taken for the owner: %v", pid, err)
	}
	if err := sleep.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the foreign process has ended: %v", err)
	}
}

// TestLinks: no file of a deployment is opened through a link.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	state, precious := filepath.Join(dir, "net.json"), filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{precious, os.DevNull} {
		for _, file := range []string{state, LogFile(state), lockFile(state), partFile(state)} {
			if err := os.Symlink(to, file); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := Read(state); !errors.Is(err, errLink) {
			t.Errorf("Read: %v", err)
		}
		if err := (&Note{}).Write(state); !errors.Is(err, plain.ErrNotRegular) {
			t.Errorf("Write: %v", err)
		}
		if _, err := OpenLog(state); !errors.Is(err, errLink) {
			t.Errorf("OpenLog: %v", err)
		}
		if _, err := Own(state); !errors.Is(err, errLink) {
			t.Errorf("Own: %v", err)
		}
		if err := remove(state, LogFile(state), lockFile(state)); err != nil {
			t.Fatal(err)
		}
		if err := (&Note{}).Write(state); err != nil { // its temporary name is still a link
			t.Error(err)
		}
		if err := remove(state, partFile(state)); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(precious); err != nil || string(text) != "{}" {
		t.Errorf("the target of the links has %q now: %v", text, err)
	}
}

// A lock without a process is held in another PID namespace; no lock has no holder.
func TestProcessOfLock(t *testing.T) {
	for _, test := range []struct {
		lock unix.Flock_t
		want int
	}{
		{unix.Flock_t{Type: unix.F_UNLCK, Pid: 7}, 0}, {unix.Flock_t{Type: unix.F_WRLCK, Pid: 7}, 7}, {unix.Flock_t{Type: unix.F_RDLCK, Pid: 1}, 1},
		{unix.Flock_t{Type: unix.F_WRLCK}, -1}, {unix.Flock_t{Type: unix.F_WRLCK, Pid: -1}, -1},
	} {
		if got := processOf(&test.lock); got != test.want {
			t.Errorf("%+v: process %d, want %d", test.lock, got, test.want)
		}
	}
}

// A log is empty when it is opened. A file that cannot be emptied is an error. Other users
// cannot read a new log.
func TestOpenLog(t *testing.T) {
	state := filepath.Join(t.TempDir(), "net.json")
	for _, text := range []string{"first", "next"} {
		f, err := OpenLog(state)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Error(err)
		}
		f.Close()
		if got, err := os.ReadFile(LogFile(state)); string(got) != text {
			t.Errorf("the log has %q, want %q: %v", got, text, err)
		}
	}
	if info, err := os.Stat(LogFile(state)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the log has the mode %v: %v", info.Mode(), err)
	}
	if f, err := openRegular(LogFile(state), os.O_RDONLY|os.O_TRUNC); err == nil {
		f.Close()
		t.Error("a file that cannot be emptied is opened")
	}
	if got, _ := os.ReadFile(LogFile(state)); string(got) != "next" {
		t.Errorf("the log has %q", got)
	}
	if _, err := openRegular(filepath.Dir(state), os.O_RDONLY); !errors.Is(err, plain.ErrNotRegular) {
		t.Errorf("a folder: %v", err)
	}
}

func TestDir(t *testing.T) {
	base := t.TempDir()
	t.Setenv("XDG_STATE_HOME", base)
	dir, err := stateDir()
	if err != nil || dir != filepath.Join(base, "p4lb") {
		t.Fatalf("Dir: %q, %v", dir, err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := stateDir(); err == nil || !strings.Contains(err.Error(), "other users may write") {
		t.Errorf("a folder open to all: %v", err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := stateDir(); err == nil || !strings.Contains(err.Error(), "not a folder") {
		t.Errorf("a link: %v", err)
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	home := t.TempDir()
	t.Setenv("HOME", home)
	if dir, err := stateDir(); err != nil || dir != filepath.Join(home, ".local/state/p4lb") {
		t.Errorf("a relative XDG_STATE_HOME: %q, %v", dir, err)
	}
	one, err1 := StateOf("/a/net")
	two, err2 := StateOf("/b/net")
	if err1 != nil || err2 != nil || one == two || !strings.HasPrefix(filepath.Base(one), "net-") {
		t.Errorf("states of two folders: %q, %q", one, two)
	}
}
