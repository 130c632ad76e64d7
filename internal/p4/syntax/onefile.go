package syntax

import (
	"errors"
	"io/fs"
)

// OneFile is a file system of one file, for a program that is a text in memory.
func OneFile(name string, text []byte) fs.FS { return oneFile{name, text} }

type oneFile struct {
	name string
	text []byte
}

// ReadFile is the file's text.
func (f oneFile) ReadFile(name string) ([]byte, error) {
	if name != f.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return f.text, nil
}

// Open is there to make it an fs.FS: fs.ReadFile prefers ReadFile.
func (f oneFile) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}
