// Package syntax preprocesses, scans and parses P4_16 programs into trees, and
// prints trees.
//
// The main function is [Parse]. The grammar is in grammar.txt; the parser's methods
// have the names of its productions.
package syntax

import (
	"errors"
	"io/fs"
	"sync"

	"github.com/p4lb/p4lb/internal/p4/token"
)

// Options control how a program is read. The zero value reads a program without
// includes.
type Options struct {
	// IncludeDirs are folders in the program's file system. They are searched for
	// included files in order.
	IncludeDirs []string
	// Includes holds files that every program may include; it is searched last.
	Includes fs.FS
	// Absent returns why a file that does not exist cannot be included, or "" if
	// the reason is unknown. nil is the same as a function that returns "".
	Absent func(name string) string
	// Defines are macros, written NAME (which defines it as 1) or NAME=VALUE.
	Defines []string
	// Show maps a name in the file system to the name that messages and __FILE__
	// show; nil keeps the names.
	Show func(name string) string
}

func (o *Options) shown(name string) string {
	if o.Show == nil {
		return name
	}
	return o.Show(name)
}

// Parse reads the program in the named file. The file is nil if and only if one of
// the errors is not a warning.
func Parse(fsys fs.FS, name string, opts Options) (*File, Errors) {
	buffer := buffers.Get().(*[]Token)
	toks, errs := scan(fsys, name, opts, (*buffer)[:0])
	var file *File
	if toks != nil {
		p := &parser{toks: toks, tok: &toks[0], errs: &errs}
		p.kinds = make(map[string]symKind, 64)
		f := &File{Name: opts.shown(name)}
		for p.tok.Kind != token.EOF {
			if p.got(token.Semi) {
				continue
			}
			start := p.i
			if d := p.declaration(); d != nil && !p.panicking {
				f.Decls = append(f.Decls, d)
			}
			if p.panicking {
				p.skipDeclaration(start)
			}
		}
		file = f
	}
	if errs.Err() != nil {
		file = nil
	}
	if cap(toks) <= maxBuffer {
		clear(toks)
		*buffer = toks
		buffers.Put(buffer)
	}
	return file, errs.Clean()
}

// buffers recycles token buffers. Trees keep no reference to them.
var buffers = sync.Pool{New: func() any { return new([]Token) }}

const maxBuffer = 1 << 16

// Scan returns the tokens of the program in the named file after preprocessing. The
// last token has no text. The result is nil if and only if one of the errors is not
// a warning.
func Scan(fsys fs.FS, name string, opts Options) ([]Token, Errors) {
	toks, errs := scan(fsys, name, opts, nil)
	if errs.Err() != nil {
		toks = nil
	}
	return toks, errs.Clean()
}

// scan appends the tokens to toks. It returns nil if the preprocessor had to stop.
func scan(fsys fs.FS, name string, opts Options, toks []Token) ([]Token, Errors) {
	var errs Errors
	text, err := readFile(fsys, name)
	if err != nil {
		if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
			err = pathErr.Err
		}
		errs.add(Pos{}, "reading %s: %v", opts.shown(name), err)
		return nil, errs
	}
	pp := newPreproc(fsys, &opts, &errs)
	toks = pp.run(name, text, toks)
	if pp.stopped {
		return nil, errs
	}
	return toks, errs
}
