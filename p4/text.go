package p4

import (
	"errors"
	"io/fs"
)

// CompileText compiles a program that is one text in memory, as Compile does a
// file. Name is what messages and the document call it, a path as fs.FS has them.
func CompileText(name string, text []byte, opts Options) (*Program, error) {
	return Compile(oneFile{name, text}, name, opts)
}

// oneFile is a file system of one file, for a reader of whole files.
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
