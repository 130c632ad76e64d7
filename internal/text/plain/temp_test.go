package plain

import (
	"os"
	"path/filepath"
	"testing"
)

// TestTemp: finished files stay, temporary ones are removed.
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
	temps.Unlock() // RemoveTemps has kept the lock
	if _, err := os.Stat(done); err != nil {
		t.Errorf("the finished file: %v", err)
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("the temporary file still exists")
	}
	clear(temps.names)
}
