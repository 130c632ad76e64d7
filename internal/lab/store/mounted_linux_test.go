package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// mounted mounts an empty tmpfs of the given size.
func mounted(t *testing.T, bytes int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Skipf("cannot mount a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// noise returns a result that cannot be compressed.
func noise(i int) []byte {
	var b bytes.Buffer
	r := rand.New(rand.NewPCG(1, uint64(i)))
	for b.Len() < 8000 {
		fmt.Fprintf(&b, "%x", r.Uint64())
	}
	return fmt.Appendf(nil, `{"noise":%q}`, b.Bytes())
}

func numbered(i int) string { return fmt.Sprintf("%032x", i) }

// TestFullFileSystem: an object that does not fit is rejected completely,
// existing objects stay intact, and writing works again once there is room.
func TestFullFileSystem(t *testing.T) {
	dir := mounted(t, 1<<20)
	s := openTest(t, dir)
	put := func(i int) error {
		file, err := s.Scratch()
		if err != nil {
			return err
		}
		name := file.Name()
		_, err = file.Write(noise(-i))
		if err = errors.Join(err, file.Close()); err == nil {
			err = s.Put(t.Context(), numbered(i), noise(i), map[string]string{"flows.csv": name}, false)
		}
		os.Remove(name) // like lab does if Put fails
		return err
	}
	kept := 0
	var err error
	for kept = 0; err == nil && kept < 1000; kept++ {
		err = put(kept)
	}
	kept--
	if kept < 10 || !errors.Is(err, ErrFull) && !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "\n") {
		t.Fatalf("after %d runs: %v", kept, err)
	}
	for i := range kept {
		run, err := s.Get(t.Context(), numbered(i))
		if err != nil || !bytes.Equal(run.Result, noise(i)) {
			t.Fatalf("run %d of %d: %v", i, kept, err)
		}
		if text, err := readTable(s, run.Tables["flows.csv"]); err != nil || text != string(noise(-i)) {
			t.Fatalf("flows of run %d: %d bytes, %v", i, len(text), err)
		}
	}
	if _, err := s.Get(t.Context(), numbered(kept)); !errors.Is(err, ErrMissing) {
		t.Errorf("the run that did not fit: %v", err)
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT, "size=2097152"); err != nil {
		t.Fatal(err)
	}
	if err := put(kept); err != nil {
		t.Errorf("with room: %v", err)
	}
}

// TestReadOnlyFileSystem: existing objects can be read, and writing fails, also
// for root, despite its privileges.
func TestReadOnlyFileSystem(t *testing.T) {
	dir := mounted(t, 1<<20)
	s := openTest(t, filepath.Join(dir, "store"))
	if err := s.Put(t.Context(), testKey, noise(1), nil, false); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if run, err := s.Get(t.Context(), testKey); err != nil || !bytes.Equal(run.Result, noise(1)) {
		t.Errorf("reading: %v", err)
	}
	if have, err := s.Has(t.Context()); err != nil || len(have) != 1 {
		t.Errorf("listing: %d, %v", len(have), err)
	}
	_, open := Open(t.Context(), filepath.Join(dir, "other"), true)
	_, work := s.NewWorker(t.Context(), 0)
	for what, err := range map[string]error{
		"writing": s.Put(t.Context(), numbered(2), noise(2), nil, false), "making a store": open, "working": work,
	} {
		if !errors.Is(err, ErrDenied) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
