package plain

import (
	"os"
	"path/filepath"
	"testing"
)

// TestTemp: what is in its place stays, what is only for now goes.
func TestTemp(t *testing.T) {
	dir := t.TempDir()
	done, folder := filepath.Join(dir, "done"), filepath.Join(dir, "folder")
	placed := Temp(done)
	Temp(folder)
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(folder, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	placed()
	RemoveTemps()
	temps.Unlock() // which the end of the process is waited for with
	if _, err := os.Stat(done); err != nil {
		t.Errorf("what is in its place: %v", err)
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("what was only for now is still there")
	}
	clear(temps.names)
}
