package plain

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxFile bounds what is read of a file that a user names, so that a disk image
// given by mistake ends in an error.
const maxFile = 64 << 20

var (
	// ErrFolder is wrapped where a folder is to be read.
	ErrFolder = errors.New("is a folder, not a file")
	// ErrNotRegular is wrapped where what is to be read might never end.
	ErrNotRegular = errors.New("is a device, pipe or socket, not a file")
)

// ReadFile reads a file that a user has named. Its errors do not repeat the name.
func ReadFile(name string) ([]byte, error) {
	f, err := OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f)
}

// OpenFile opens a file that a user has named, for reading. A device, a pipe or
// a socket is none: reading it might never end. Who means one writes - and hands
// it over as standard input.
func OpenFile(name string) (*os.File, error) {
	info, err := os.Stat(name) // before opening, which waits at a pipe
	switch {
	case err != nil:
		return nil, Bare(err)
	case info.IsDir():
		return nil, ErrFolder
	case !info.Mode().IsRegular():
		return nil, ErrNotRegular
	}
	f, err := os.Open(name)
	return f, Bare(err)
}

// ReadAll reads r to its end unless that is more than maxFile.
func ReadAll(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, Bare(err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("larger than %d MiB", maxFile>>20)
	}
	return text, nil
}

// Bare strips the operation and the names off an error of package os, for a
// message that names the file itself.
func Bare(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		return link.Err
	}
	return err
}

// DirFS is a folder that a user has named, whose files are read as ReadFile does.
func DirFS(dir string) fs.FS { return dirFS{os.DirFS(dir), dir} }

type dirFS struct {
	fs.FS
	dir string
}

// ReadFile reads a file of the folder.
func (d dirFS) ReadFile(name string) ([]byte, error) {
	if !fs.ValidPath(name) {
		return nil, fs.ErrInvalid
	}
	return ReadFile(filepath.Join(d.dir, filepath.FromSlash(name)))
}
