package manifest

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/tree"
)

// An Error is an error in a manifest, as one line.
type Error struct {
	File  string // name of the file in messages; "": none
	Line  int    // 0: not known
	Place string // such as registers[2].kind; "": the whole manifest
	Msg   string
}

// Error returns the message with its position.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d", e.Line)
		}
		b.WriteString(": ")
	}
	if e.Place != "" {
		b.WriteString(e.Place + ": ")
	}
	b.WriteString(e.Msg)
	return b.String()
}

// Decode reads a manifest in JSON or YAML. It checks everything that does not depend on the
// program. file is its name in messages. Errors are of type *Error.
func Decode(file string, text []byte) (*Manifest, error) {
	root, err := tree.Parse(text)
	if err != nil {
		return nil, located(file, err)
	}
	if err := checkVersion(file, root); err != nil {
		return nil, err
	}
	m := &Manifest{}
	if err := root.Decode(m); err != nil {
		return nil, located(file, err)
	}
	if err := m.validate(); err != nil {
		return nil, locate(file, root, err)
	}
	return m, nil
}

// locate adds the file and the line to an error about a place.
func locate(file string, root tree.Node, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return &Error{File: file, Msg: err.Error()}
	}
	around, _ := root.At(e.Place)
	return &Error{File: file, Line: around.Line, Place: e.Place, Msg: e.Msg}
}

// Unmarshal decodes JSON or YAML into the value that into points to, by its json tags. Errors are
// of type *Error.
func Unmarshal(file string, text []byte, into any) error {
	trees.Lock()
	root, ok := trees.read[string(text)]
	trees.Unlock()
	if !ok {
		var err error
		if root, err = tree.Parse(text); err != nil {
			return located(file, err)
		}
		trees.Lock()
		if len(trees.read) >= maxTrees {
			clear(trees.read)
		}
		if len(text) <= maxTreeText {
			trees.read[string(text)] = root
		}
		trees.Unlock()
	}
	if err := root.Decode(into); err != nil {
		return located(file, err)
	}
	if err := checkWords("", reflect.ValueOf(into).Elem()); err != nil {
		return locate(file, root, err)
	}
	return nil
}

// trees caches the parsed trees of Unmarshal, because most programs share parts. Trees are
// immutable.
var trees = struct {
	sync.Mutex
	read map[string]tree.Node
}{read: map[string]tree.Node{}}

const (
	maxTrees    = 256
	maxTreeText = 8 << 10
)

// located returns an error of a tree with the name of the file.
func located(file string, err error) error {
	if at, ok := errors.AsType[*tree.Error](err); ok {
		return &Error{File: file, Line: at.Line, Place: at.Key, Msg: at.Text}
	}
	return err
}

// checkVersion rejects other versions. It runs before other checks, because another
// version may use the same keys with other meanings.
func checkVersion(file string, root tree.Node) error {
	if root.Kind != tree.Object {
		return &Error{File: file, Line: root.Line, Msg: fmt.Sprintf("want keys with values, not %v: the first is version: %d", root.Kind, Version)}
	}
	version, ok := root.At("version")
	switch {
	case !ok:
		return &Error{File: file, Line: root.Line, Place: "version", Msg: fmt.Sprintf("is missing: want %d", Version)}
	case version.Text != strconv.Itoa(Version):
		is := version.Kind.String()
		if version.Kind == tree.Scalar {
			is = version.Text
		}
		return &Error{File: file, Line: version.Line, Place: "version", Msg: fmt.Sprintf("is %s: this p4lb reads version %d", is, Version)}
	}
	return nil
}

// An enumeration is a type whose values are words from a table.
type enumeration interface{ Words() []Word }

func wordNames(e enumeration) []string {
	return lists.Map(e.Words(), func(w Word) string { return w.Name })
}
