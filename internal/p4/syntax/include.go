package syntax

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/token"
)

// include executes #include "name", #include <name> or #include MACRO; pos is the
// position of the word include.
func (p *preproc) include(pos Pos) {
	name, quoted, ok := p.includeName(pos)
	if !ok {
		return
	}
	p.end("include")
	if len(p.files) >= maxInclude {
		p.stop(pos, "includes nest more than %d deep%s (docs/limits.md)", maxInclude, p.cycle())
		return
	}
	file, from, text, err := p.find(name, quoted)
	if err != nil {
		if p.opts.Absent != nil {
			if reason := p.opts.Absent(name); reason != "" {
				err = errors.New(reason)
			}
		}
		p.stop(pos, "cannot include %s: %v", clip(name), err)
		return
	}
	if p.once[file] {
		return
	}
	p.file.skipLine()
	p.push(file, from, text, pos)
}

// cycle describes the cycle of files that include each other, as far as the include
// stack shows it.
func (p *preproc) cycle() string {
	var names []string
	for i := len(p.files) - 1; i >= 0; i-- {
		name := p.files[i].name
		if slices.Contains(names, name) {
			names = append(names, name)
			slices.Reverse(names)
			return ": " + strings.Join(names, " includes ")
		}
		names = append(names, name)
	}
	return ""
}

// includeName parses the operand of #include.
func (p *preproc) includeName(pos Pos) (name string, quoted, ok bool) {
	s := p.file.scanner
	s.skipSpace()
	rest := s.text[s.off:]
	rest = rest[:lineLen(rest)]
	if strings.HasPrefix(rest, "<") {
		if end := strings.IndexByte(rest, '>'); end > 0 {
			s.off += end + 1
			return rest[1:end], false, true
		}
	}
	if strings.HasPrefix(rest, `"`) {
		var t Token
		s.next(&t)
		return strings.Trim(t.Text, `"`), true, true
	}
	toks := p.expandedLine()
	switch {
	case len(toks) == 1 && toks[0].IsString():
		return strings.Trim(toks[0].Text, `"`), true, true
	case len(toks) > 2 && toks[0].Kind == token.Lss && toks[len(toks)-1].Kind == token.Gtr:
		return spell(toks[1 : len(toks)-1]), false, true
	}
	p.errorf(pos, `#include needs "file" or <file>`)
	return "", false, false
}

// find searches for a file: next to the including file if the name is quoted, then
// in the include directories, then in Options.Includes.
func (p *preproc) find(name string, quoted bool) (file string, from fs.FS, text string, err error) {
	if name == "" {
		return "", nil, "", errors.New("its name is empty")
	}
	if quoted {
		file, from = path.Join(path.Dir(p.file.name), name), p.file.from
		if text, err = readFile(from, file); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return file, from, text, err
		}
	}
	for _, dir := range p.opts.IncludeDirs {
		file = path.Join(dir, name)
		if text, err = readFile(p.fsys, file); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return file, p.fsys, text, err
		}
	}
	if p.opts.Includes != nil {
		file = path.Clean(name)
		if text, err = readFile(p.opts.Includes, file); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return file, p.opts.Includes, text, err
		}
	}
	return "", nil, "", errors.New("no such file" + p.searched(quoted))
}

// searched lists the folders in which find searched for a missing file.
func (p *preproc) searched(quoted bool) string {
	var dirs []string
	if quoted {
		dirs = append(dirs, path.Dir(p.file.name))
	}
	dirs = append(dirs, p.opts.IncludeDirs...)
	if len(dirs) == 0 {
		return ""
	}
	return " in " + strings.Join(dirs, ", ")
}

// readFile is fs.ReadFile, except that names that are invalid for fs.FS do not
// exist.
func readFile(fsys fs.FS, name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", fs.ErrNotExist
	}
	text, err := fs.ReadFile(fsys, name)
	return string(text), err
}
