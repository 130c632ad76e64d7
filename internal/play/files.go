package play

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/own"
)

// Files is the user's folder. It contains programs with their manifests, and in
// blocksFolder blocks with their rows.
type Files []NamedText

// blocksFolder is the folder of the user's blocks and rows (docs/blocks.md).
const blocksFolder = "mine"

// Limits of Files.
const (
	maxFiles = 64
	maxTexts = 2 << 20 // total bytes of all files
)

// folder returns the files as a file system.
func (f Files) folder() (fs.FS, error) {
	if len(f) > maxFiles {
		return nil, fmt.Errorf("there are %d files: want at most %d", len(f), maxFiles)
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	total, names := 0, map[string]bool{}
	for _, file := range f {
		total += len(file.Text)
		switch {
		case total > maxTexts:
			return nil, fmt.Errorf("the files have more than %d bytes", maxTexts)
		case len(file.Name) > 200 || !fs.ValidPath(file.Name) || file.Name == "." || strings.ContainsRune(file.Name, '\\'):
			return nil, fmt.Errorf("file %.200q: want a name such as mine.p4 or mine/rows.yaml", file.Name)
		case names[file.Name]:
			return nil, fmt.Errorf("there are two files %s", file.Name)
		}
		names[file.Name] = true
		to, err := w.CreateHeader(&zip.FileHeader{Name: file.Name})
		if err == nil {
			_, err = to.Write([]byte(file.Text))
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("reading the files: %w", err)
	}
	return zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
}

// read returns a file that an experiment names.
func (f Files) read(name string) ([]byte, error) {
	for _, file := range f {
		if file.Name == path.Clean(name) {
			return []byte(file.Text), nil
		}
	}
	return nil, fs.ErrNotExist
}

// hasBlocks reports whether the folder contains blocks.
func (f Files) hasBlocks() bool {
	for _, file := range f {
		if strings.HasPrefix(file.Name, blocksFolder+"/") {
			return true
		}
	}
	return false
}

// library returns the catalogue with the schemes in the files. Blocks are added
// only for experiments.
func (f Files) library() (*scheme.Library, error) {
	files, err := f.folder()
	if err != nil {
		return nil, err
	}
	return &scheme.Library{
		Sources: []scheme.Source{own.SourceIn(files)},
		Open: func(dir string) (fs.FS, error) {
			if dir = path.Clean(dir); !fs.ValidPath(dir) {
				return nil, fmt.Errorf("%s: the playground reads only its own files", dir)
			}
			return fs.Sub(files, dir)
		},
	}, nil
}

// withBlocks returns the library with the user's blocks.
func (f Files) withBlocks() (*scheme.Library, error) {
	l, err := f.library()
	if err != nil || !f.hasBlocks() {
		return l, err
	}
	l, err = l.With(blocksFolder)
	return l, fileErrors(err)
}

// place matches the position in a file at the start of an error.
var place = regexp.MustCompile(`^([\w./-]+\.(?:tmpl|yaml|yml|json|p4)):(\d+):(?:(\d+):)? ?(.*)$`)

// fileErrors splits an error into messages with file and line.
func fileErrors(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	e := &Error{Message: err.Error()}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		m := place.FindStringSubmatch(line)
		if m == nil {
			e.Messages = append(e.Messages, Message{Text: line})
			continue
		}
		n, _ := strconv.Atoi(m[2]) // matched as digits
		col, _ := strconv.Atoi(m[3])
		e.Messages = append(e.Messages, Message{File: m[1], Line: n, Col: max(col, 1), Text: m[4]})
	}
	return e
}
