package plain

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// A NewFile is written beside its place and put there once it is complete: until
// then, and after an error, what was there before stays. What is no regular file,
// a device or a pipe, is written as it comes.
type NewFile struct {
	*os.File
	place  string // "" where there is none, or no more
	placed func()
}

// Create begins a file that a user has named. A link keeps pointing where it
// does: its end is replaced. Errors, here and of Place, do not repeat the name.
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
		return nil, ErrFolder
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

// Place closes the file, unless that is done, and puts it in its place.
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

// Discard removes what is not in its place.
func (f *NewFile) Discard() {
	f.Close()
	if f.place != "" {
		os.Remove(f.Name())
		f.placed()
		f.place = ""
	}
}

// WriteFile writes a file that a user has named, all of it or nothing. Its errors
// do not repeat the name.
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
