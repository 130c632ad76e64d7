package syntax

import (
	"errors"
	"io/fs"
)

// OneFile returns a file system with one file, for a program in memory.
func OneFile(name string, text []byte) fs.FS { return oneFile{name, text} }

type oneFile struct {
	name string
	text []byte
}

// ReadFile returns the file's text.
func (f oneFile) ReadFile(name string) ([]byte, error) {
	if name != f.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return f.text, nil
}

// Open makes oneFile an fs.FS. fs.ReadFile calls ReadFile instead.
func (f oneFile) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}
