package syntax

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/token"
)

// The preprocessor works on tokens: it scans files once, stores macros as lists of
// tokens, and passes one slice to the parser. Two stacks hold the sources of
// tokens: files (the includes) and, above the innermost file, contexts (the macros
// being expanded). A macro is disabled while a context holds its body. The macro's
// own name in the body is marked and never expanded again.

const (
	maxTokens    = 1 << 21 // limit of tokens in all files; a file counts once per include
	maxInclude   = 100     // limit of nested includes
	maxFiles     = 10000   // limit of included files
	maxExpansion = 1 << 20 // limit of tokens that all uses of macros may read and produce
	maxContext   = 1000    // limit of nested macros
	maxNested    = 200     // limit of nested uses of macros in arguments
)

// A preproc executes the directives and expands the macros of one translation unit.
type preproc struct {
	opts    *Options
	fsys    fs.FS
	errs    *Errors
	macros  map[string]*macro
	once    map[string]bool
	files   []*inputFile
	file    *inputFile // the innermost file
	ctxs    []context
	unread  Token // the next token, if hasUnread is set
	spent   int   // number of tokens that uses of macros have read and produced
	nested  int   // number of nested expansions of token lists
	opened  int   // number of opened files
	scanned int   // number of tokens read from files

	hasUnread bool
	isolated  bool // read only from contexts, never from the file
	inArgs    bool // collecting the arguments of a macro
	stopped   bool // a limit was exceeded: return no more tokens
}

// An inputFile is a file being read.
type inputFile struct {
	*scanner
	name  string // name in its file system
	from  fs.FS
	conds []cond
}

// A context is a list of tokens to be read. macro is the macro whose body it is, or
// nil.
type context struct {
	toks  []Token
	macro *macro
}

func newPreproc(fsys fs.FS, opts *Options, errs *Errors) *preproc {
	p := &preproc{opts: opts, fsys: fsys, errs: errs, macros: make(map[string]*macro, 16)}
	for _, name := range []string{"__FILE__", "__LINE__"} {
		p.macros[name] = &macro{name: name, builtin: true}
	}
	for _, d := range opts.Defines {
		// An option is NAME or NAME=VALUE.
		name, value, ok := strings.Cut(d, "=")
		if !ok {
			value = "1"
		}
		p.file = &inputFile{scanner: newScanner(newSource("command line", name+" "+value, Pos{}), p.errorf)}
		p.file.inDirective = true
		p.define()
		p.file = nil
	}
	return p
}

func (p *preproc) errorf(pos Pos, format string, args ...any) { p.errs.add(pos, format, args...) }

// stop reports that a limit was exceeded, and ends the preprocessing.
func (p *preproc) stop(pos Pos, format string, args ...any) {
	if !p.stopped {
		p.errorf(pos, format, args...)
	}
	p.stopped = true
}

// run preprocesses the file called name with the given text, and appends its tokens
// to toks. The last token is the end of file.
func (p *preproc) run(name, text string, toks []Token) []Token {
	p.push(name, p.fsys, text, Pos{})
	toks = slices.Grow(toks, min(len(text)/4+64, maxTokens))
	for {
		t := p.next()
		toks = append(toks, t)
		if t.Kind == token.EOF {
			return toks
		}
	}
}

func (p *preproc) push(name string, from fs.FS, text string, at Pos) {
	if p.opened++; p.opened > maxFiles {
		p.stop(at, "program includes more than %d files (docs/limits.md)", maxFiles)
	}
	src := newSource(p.opts.shown(name), text, at)
	p.file = &inputFile{scanner: newScanner(src, p.errorf), name: name, from: from}
	p.files = append(p.files, p.file)
}

// pop returns from the innermost file to the file that includes it.
func (p *preproc) pop() {
	for i := len(p.file.conds) - 1; i >= 0; i-- {
		c := p.file.conds[i]
		p.errorf(c.pos, "#%s without #endif", c.name)
	}
	p.file.conds = nil
	if n := len(p.files) - 1; n > 0 {
		p.files = p.files[:n]
		p.file = p.files[n-1]
	}
}

// next returns the next token after macro expansion.
func (p *preproc) next() Token {
	for {
		t := p.lex()
		if t.Kind != token.Name && t.Kind < token.Abstract || t.flag&painted != 0 {
			return t
		}
		m := p.macros[t.Text]
		if m == nil {
			return t
		}
		if m.busy {
			t.flag |= painted
			return t
		}
		if !p.expand(m, t) {
			return t
		}
	}
}

// lex returns the next token unexpanded: from the tokens put back, from the macros
// being expanded, or from the files.
func (p *preproc) lex() Token {
	if p.stopped {
		return Token{Kind: token.EOF, Pos: p.file.posAt(p.file.off)}
	}
	if p.hasUnread {
		p.hasUnread = false
		return p.unread
	}
	for n := len(p.ctxs); n > 0; n-- {
		c := &p.ctxs[n-1]
		if len(c.toks) > 0 {
			t := c.toks[0]
			c.toks = c.toks[1:]
			return t
		}
		if c.macro != nil {
			c.macro.busy = false
		}
		p.ctxs = p.ctxs[:n-1]
	}
	if p.isolated {
		return Token{Kind: token.EOF}
	}
	var t Token
	for !p.stopped {
		p.read(&t)
		switch {
		case t.Kind == token.Hash && t.flag&bol != 0:
			p.directive(t.Pos)
		case t.Kind == token.HashHash && t.flag&bol != 0:
			p.noDirective(t.Pos)
		case t.Kind == token.EOF && len(p.files) > 1 && !p.inArgs:
			p.pop()
		case t.Kind == token.EOF && !p.inArgs:
			p.pop()
			return t
		default:
			return t
		}
	}
	return p.lex()
}

// read scans one token of the innermost file and checks the limit.
func (p *preproc) read(t *Token) {
	p.file.next(t)
	if p.scanned++; p.scanned > maxTokens {
		p.stop(t.Pos, "program has more than %d tokens (docs/limits.md)", maxTokens)
	}
}

// directive executes the directive whose # is at pos.
func (p *preproc) directive(pos Pos) {
	file := p.file
	file.inDirective = true
	var t Token
	file.next(&t)
	switch t.Text {
	case "": // the null directive
	case "define":
		p.define()
	case "undef":
		p.undef()
	case "include":
		p.include(t.Pos)
	case "if", "ifdef", "ifndef":
		c := cond{name: t.Text, pos: t.Pos}
		c.taken = p.condition(strings.TrimPrefix(t.Text, "if"))
		p.file.conds = append(p.file.conds, c)
		if !c.taken {
			p.skipGroups()
		}
	case "elif", "elifdef", "elifndef", "else":
		// Skip the rest of the current group.
		if c := p.innermost(t); c != nil {
			p.checkElse(c, t)
			p.skipGroups()
		}
	case "endif":
		p.endif(t)
	case "line":
		p.lineDirective(p.expandedLine())
	case "error":
		p.errorf(pos, "#error %s", p.restOfLine())
	case "warning":
		p.errs.warn(pos, "#warning %s", p.restOfLine())
	case "pragma":
		p.pragma()
	default:
		switch {
		case t.Kind == token.Int && isDecimal(t.Text): // # 12 "file", as the C preprocessor writes it
			p.lineDirective(append([]Token{t}, p.line()...))
		case t.IsName():
			p.errs.warn(t.Pos, "unknown directive #%s ignored", clip(t.Text))
		case t.Kind == token.Illegal || t.Kind == token.Backslash:
			p.errorf(t.Pos, "unexpected %s, expected the name of a directive", t.describe())
		default:
			p.noDirective(t.Pos)
		}
	}
	file.skipLine()
}

// noDirective skips a line that begins with # but is not a directive, such as a
// comment of another language. p4c does the same.
func (p *preproc) noDirective(pos Pos) {
	p.errs.warn(pos, "this line begins with # and is no directive: ignored")
	p.file.skipLine()
}

// skipLine skips the rest of a directive's line.
func (s *scanner) skipLine() {
	s.inDirective = true
	for {
		switch s.skipSpace(); {
		case s.off >= len(s.text) || s.text[s.off] == '\n':
			s.inDirective = false
			return
		case s.text[s.off] == '"':
			s.off += max(stringLen(s.text[s.off:], true), 1)
		default:
			s.off++
		}
	}
}

// line returns the rest of the directive's line, unexpanded.
func (p *preproc) line() []Token {
	var toks []Token
	for {
		var t Token
		p.read(&t)
		switch {
		case p.stopped:
			return nil
		case t.Kind == token.EOL:
			return toks
		}
		toks = append(toks, t)
	}
}

// expandedLine returns the rest of the directive's line after macro expansion.
func (p *preproc) expandedLine() []Token { return p.expandList(p.line()) }

// restOfLine returns the text after #error or #warning, without reading it; the
// caller calls skipLine.
func (p *preproc) restOfLine() string {
	s := p.file.scanner
	text := s.text[s.off:]
	return strings.TrimSpace(text[:lineLen(text)])
}

// end checks that only a comment follows a directive's operands.
func (p *preproc) end(directive string) {
	var t Token
	if p.file.next(&t); t.Kind != token.EOL {
		p.errs.warn(t.Pos, "text after #%s ignored", directive)
	}
}

func (p *preproc) pragma() {
	var t Token
	p.file.next(&t)
	if t.Text != "once" {
		return
	}
	if p.once == nil {
		p.once = make(map[string]bool)
	}
	p.once[p.file.name] = true
}

// lineDirective executes #line N "file": the next line is line N of that file.
func (p *preproc) lineDirective(toks []Token) {
	s := p.file.scanner
	if len(toks) == 0 || !isDecimal(toks[0].Text) {
		p.errorf(s.posAt(s.off), "#line needs a line number")
		return
	}
	n, err := strconv.ParseUint(toks[0].Text, 10, 31)
	if err != nil {
		p.errorf(toks[0].Pos, "line number %s is too large", clip(toks[0].Text))
		return
	}
	name := s.src.Name
	if len(toks) > 1 {
		if !toks[1].IsString() {
			p.errorf(toks[1].Pos, "#line needs a file name in quotes, found %s", toks[1].describe())
			return
		}
		name = unquote(toks[1].Text)
	}
	physical := s.line - s.src.base
	base := uint32(n) - (physical + 1)
	s.src = s.src.renamed(name, base)
	s.line = physical + base
}
