package plain

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxFile is the maximum size of a file that is read, so that a disk image
// given by mistake is an error.
const maxFile = 64 << 20

var (
	// errFolder is the error of reading a folder.
	errFolder = errors.New("is a folder, not a file")
	// ErrNotRegular is the error of reading a file that may never end.
	ErrNotRegular = errors.New("is a device, pipe or socket, not a file")
)

// ReadFile reads a file named by a user. Its errors do not contain the name.
func ReadFile(name string) ([]byte, error) {
	f, err := OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f)
}

// OpenFile opens a file named by a user for reading. It rejects devices, pipes
// and sockets, because reading them may never end; users can pass their content
// on standard input.
func OpenFile(name string) (*os.File, error) {
	info, err := os.Stat(name) // before opening, which blocks for a pipe
	switch {
	case err != nil:
		return nil, Bare(err)
	case info.IsDir():
		return nil, errFolder
	case !info.Mode().IsRegular():
		return nil, ErrNotRegular
	}
	f, err := os.Open(name)
	return f, Bare(err)
}

// ReadAll reads r completely, up to maxFile bytes.
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

// Bare removes the operation and the names from an error of package os, for a
// message that contains the name.
func Bare(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		return link.Err
	}
	return err
}

// DirFS returns the file system of a folder named by a user. It reads files
// like ReadFile.
func DirFS(dir string) fs.FS { return dirFS{os.DirFS(dir), dir} }

type dirFS struct {
	fs.FS
	dir string
}

// ReadFile reads a file in the folder.
func (d dirFS) ReadFile(name string) ([]byte, error) {
	if !fs.ValidPath(name) {
		return nil, fs.ErrInvalid
	}
	return ReadFile(filepath.Join(d.dir, filepath.FromSlash(name)))
}
