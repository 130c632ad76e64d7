package plain

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "small"), []byte("text"), 0o644), os.WriteFile(large, nil, 0o644), os.Truncate(large, maxFile+1)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"small": "", ".": errFolder.Error(), "large": "larger than 64 MiB", "none": "no such file or directory", "../../../../../../../../dev/zero": ErrNotRegular.Error(),
	} {
		text, err := ReadFile(filepath.Join(dir, name))
		if want == "" && string(text) != "text" || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %q, %v, want %q", name, text, err, want)
		}
	}
	if err := os.Symlink(os.DevNull, filepath.Join(dir, "null")); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.ReadFile(DirFS(dir), "null"); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a device in a folder: %v", err)
	}
	if text, err := fs.ReadFile(DirFS(dir), "small"); string(text) != "text" {
		t.Error(err)
	}
	if _, err := fs.ReadFile(DirFS(dir), "../small"); err == nil {
		t.Error("a file outside of the folder was read")
	}
	if _, err := fs.ReadFile(DirFS(dir), "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
