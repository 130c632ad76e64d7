// Package syntax reads P4_16: it preprocesses, scans and parses a program into
// a tree, and prints trees.
//
// [Parse] is the way in. The grammar stands in grammar.txt; the methods of the
// parser are named after its productions.
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
	// IncludeDirs are searched for included files, in order; they are
	// folders of the file system that the program comes from.
	IncludeDirs []string
	// Includes holds files that every program may include; it is searched last.
	Includes fs.FS
	// Absent returns why a file that does not exist cannot be included, or "" if
	// it is unknown; nil is the same as a function that always returns that.
	Absent func(name string) string
	// Defines are macros: NAME, which is 1, or NAME=VALUE.
	Defines []string
	// Show turns a name in the file system into the one that messages and
	// __FILE__ show; nil leaves names alone.
	Show func(name string) string
}

func (o *Options) shown(name string) string {
	if o.Show == nil {
		return name
	}
	return o.Show(name)
}

// Parse reads the program in the named file. The file is nil if and only if
// the errors hold more than warnings.
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

// buffers have room for the tokens of a program, of which its tree keeps none: the next
// one has it.
var buffers = sync.Pool{New: func() any { return new([]Token) }}

const maxBuffer = 1 << 16

// Scan reads the tokens of the program in the named file as the parser sees
// them: behind the preprocessor, ended by one of no text. They are nil if and
// only if the errors hold more than warnings.
func Scan(fsys fs.FS, name string, opts Options) ([]Token, Errors) {
	toks, errs := scan(fsys, name, opts, nil)
	if errs.Err() != nil {
		toks = nil
	}
	return toks, errs.Clean()
}

// scan appends the tokens to some. It gives nil where the preprocessor found nothing to
// continue with.
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
