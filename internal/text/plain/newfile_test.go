package plain

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestCreate: a file is either complete or unchanged, and a link is kept while
// its target is replaced.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("old"), 0o600), os.Chmod(file, 0o640), os.Symlink("file", link)); err != nil {
		t.Fatal(err)
	}
	want := func(text string) {
		t.Helper()
		got, err := os.ReadFile(file)
		if err != nil || string(got) != text {
			t.Errorf("the file has %q (%v), want %q", got, err, text)
		}
		info, err := os.Lstat(link)
		if err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("the link is %v (%v)", info, err)
		}
	}
	for _, place := range []bool{false, true} {
		f, err := Create(link)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("new"); err != nil {
			t.Fatal(err)
		}
		want("old")
		if place {
			if err := f.Place(); err != nil {
				t.Fatal(err)
			}
		}
		f.Discard()
	}
	want("new")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("its mode is %v (%v), want the old file's mode", info.Mode(), err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 2 {
		t.Errorf("left behind: %v (%v)", list, err)
	}
	if _, err := Create(dir); !errors.Is(err, errFolder) {
		t.Errorf("a folder gives %v, want %v", err, errFolder)
	}
	if _, err := Create(filepath.Join(dir, "no", "file")); err != syscall.ENOENT {
		t.Errorf("a folder that is missing gives %v, want %v", err, syscall.ENOENT)
	}
}

// TestWritePipe: a pipe is written to and stays a pipe.
func TestWritePipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no named pipes here:", err)
	}
	end, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	if err := WriteFile(pipe, []byte("text")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 8)
	n, err := end.Read(got)
	if err != nil || string(got[:n]) != "text" {
		t.Errorf("%q comes out of the pipe (%v)", got[:n], err)
	}
	if info, err := os.Lstat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe has become %v (%v)", info, err)
	}
}
