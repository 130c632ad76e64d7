package store

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Other users of a machine can read a store in a shared folder, and write into it if the
// umask lets them.
func TestModesOfFiles(t *testing.T) {
	mask := syscall.Umask(0o002)
	defer syscall.Umask(mask)
	dir := filepath.Join(t.TempDir(), "store")
	s := openTest(t, dir)
	if err := s.Put(t.Context(), testKey, []byte("{}"), map[string]string{"flows.csv": write(t, s, "1\n")}, false); err != nil {
		t.Fatal(err)
	}
	n := 0
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o644)
		if d.IsDir() {
			want = 0o775
		}
		n++
		if info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v, want %v", name, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil || n < 8 {
		t.Errorf("%d files and folders, %v", n, err)
	}
}

// A file outside of the store's folder for temporary files is copied; a file in it is
// moved.
func TestFilesOfOthers(t *testing.T) {
	s := openTest(t, t.TempDir())
	outside := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(outside, []byte("rows"), 0o600); err != nil {
		t.Fatal(err)
	}
	inside := write(t, s, "more")
	for name, file := range map[string]string{"a/outside": outside, "a/inside": inside} {
		if err := s.b.put(t.Context(), name, &body{file: file}, false); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"a/outside": "rows", "a/inside": "more"} {
		if text, err := s.Text(t.Context(), name); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "rows" {
		t.Errorf("the file of another: %q, %v", text, err)
	}
	if _, err := os.Stat(inside); !os.IsNotExist(err) {
		t.Errorf("the temporary file is left: %v", err)
	}
}

// A table that differs from its digest, with the same length, is reported as damaged.
func TestDigestOfTables(t *testing.T) {
	s := openTest(t, t.TempDir())
	if err := s.Put(t.Context(), testKey, []byte("{}"), map[string]string{"flows.csv": write(t, s, "1,2,3\n")}, false); err != nil {
		t.Fatal(err)
	}
	run, err := s.Get(t.Context(), testKey)
	if err != nil {
		t.Fatal(err)
	}
	table := run.Tables["flows.csv"]
	for text, want := range map[string]string{"1,2,3\n": "", "1,2,4\n": "does not match the digest in its name", "1,2,3": "is truncated: 5 bytes of 6", "1,2,3\n\n": "is longer than its 6 bytes"} {
		if err := s.PutText(t.Context(), table.name(), []byte(text)); err != nil {
			t.Fatal(err)
		}
		_, err := readTable(s, table)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Processes on a machine have the same place: a name for its boot and the PID namespace.
func TestPlace(t *testing.T) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Skip(err)
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Skip(err)
	}
	if want := strings.TrimSpace(string(boot)) + " " + space; place() != want {
		t.Errorf("%q, want %q", place(), want)
	}
}

// Workers read each other's notes, however short. A worker without a note has none.
func TestNotes(t *testing.T) {
	s := openTest(t, t.TempDir())
	for _, note := range []any{7, "x", nil} {
		w, err := s.NewWorker(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if note != nil {
			if err := w.Note(note); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.PutText(t.Context(), "owners/damaged", []byte("{")); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := s.Notes(t.Context(), func(n json.RawMessage) { got = append(got, string(n)) }); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if want := []string{`"x"`, "7"}; !slices.Equal(got, want) {
		t.Errorf("notes %q, want %q", got, want)
	}
}
