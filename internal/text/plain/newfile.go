package plain

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// A NewFile is a temporary file that replaces another one when it is complete.
// Until then, and after an error, the old file stays unchanged. A device or a
// pipe is written directly.
type NewFile struct {
	*os.File
	place  string // name of the final file; "" if there is none, or after Place
	placed func()
}

// Create creates a file named by a user. A symbolic link stays; the file it
// points to is replaced. Errors of Create and Place do not contain the name.
func Create(name string) (*NewFile, error) {
	if end, err := filepath.EvalSymlinks(name); err == nil {
		name = end
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, Bare(err)
	case info.IsDir():
		return nil, errFolder
	case !info.Mode().IsRegular():
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		return &NewFile{File: f}, Bare(err)
	}
	temp := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.%08x", filepath.Base(name), rand.Uint32()))
	placed := Temp(temp)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		placed()
		return nil, Bare(err)
	}
	n := &NewFile{f, name, placed}
	if info != nil {
		if err := f.Chmod(info.Mode().Perm()); err != nil {
			n.Discard()
			return nil, Bare(err)
		}
	}
	return n, nil
}

// Place closes the file and gives it its final name.
func (f *NewFile) Place() error {
	if err := f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return Bare(err)
	}
	if f.place == "" {
		return nil
	}
	if err := os.Rename(f.Name(), f.place); err != nil {
		return Bare(err)
	}
	f.placed()
	f.place = ""
	return nil
}

// Discard removes the file unless it has been placed.
func (f *NewFile) Discard() {
	f.Close()
	if f.place != "" {
		os.Remove(f.Name())
		f.placed()
		f.place = ""
	}
}

// WriteFile writes a file named by a user, completely or not at all. Its errors
// do not contain the name.
func WriteFile(name string, data []byte) error {
	f, err := Create(name)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(data); err != nil {
		return Bare(err)
	}
	return f.Place()
}
