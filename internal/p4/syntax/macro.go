package syntax

import (
	"slices"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/token"
)

// A macro is a #define.
type macro struct {
	name     string
	funcLike bool
	variadic bool // the last parameter takes all remaining arguments
	builtin  bool // __FILE__ or __LINE__
	busy     bool // being expanded: a context contains its body
	params   []string
	places   map[string]int // indices of the parameters
	body     []macroToken
}

// A macroToken is one token of a macro's body.
type macroToken struct {
	Token
	param int // the index of the parameter with this name, or -1
	op    macroOp
}

// A macroOp is the set of # and ## operators that apply to a token of a macro's
// body.
type macroOp uint8

const (
	stringize macroOp = 1 << iota // # before it
	paste                         // ## between it and the next one
	pasted                        // ## between it and the one before
)

// define executes #define.
func (p *preproc) define() {
	var t Token
	if p.file.next(&t); !t.IsName() {
		p.errorf(t.Pos, "#define needs a name, found %s", t.describe())
		return
	}
	if t.Text == "defined" || t.Text == "__VA_ARGS__" {
		p.errorf(t.Pos, "%s cannot be a macro", t.Text)
		return
	}
	m := &macro{name: t.Text}
	toks := p.line()
	if len(toks) > 0 && toks[0].Kind == token.Lparen && toks[0].flag&spaced == 0 {
		m.funcLike = true
		var ok bool
		if toks, ok = p.macroParams(m, toks); !ok {
			return
		}
	}
	if !p.macroBody(m, toks) {
		return
	}
	alike := func(a, b macroToken) bool { return a.Text == b.Text && a.op == b.op && a.flag == b.flag }
	if old := p.macros[m.name]; old != nil &&
		(old.funcLike != m.funcLike || !slices.Equal(old.params, m.params) || !slices.EqualFunc(old.body, m.body, alike)) {
		p.errs.warn(t.Pos, "macro %s redefined", m.name)
	}
	p.macros[m.name] = m
}

// macroParams parses (a, b, ...) at the start of toks and returns the rest.
func (p *preproc) macroParams(m *macro, toks []Token) (rest []Token, ok bool) {
	lparen := toks[0].Pos
	m.places = map[string]int{}
	toks = toks[1:]
	if len(toks) > 0 && toks[0].Kind == token.Rparen {
		return toks[1:], true
	}
	for len(toks) > 1 {
		t, after := toks[0], toks[1].Kind
		name := t.Text
		_, twice := m.places[name]
		switch {
		case t.Kind == token.DotDotDot:
			name, m.variadic = "__VA_ARGS__", true
		case !t.IsName():
			p.errorf(t.Pos, "%s in the parameters of macro %s", t.describe(), m.name)
			return nil, false
		case twice:
			p.errorf(t.Pos, "macro %s has two parameters %s", m.name, name)
			return nil, false
		}
		m.places[name] = len(m.params)
		m.params = append(m.params, name)
		toks = toks[2:]
		if after == token.Rparen {
			return toks, true
		}
		if after != token.Comma || m.variadic {
			break
		}
	}
	p.errorf(lparen, "parameters of macro %s do not end in )", m.name)
	return nil, false
}

// macroBody resolves the parameters, # and ## in a macro's body.
func (p *preproc) macroBody(m *macro, toks []Token) bool {
	m.body = make([]macroToken, 0, len(toks))
	var op macroOp
	for i, t := range toks {
		if t.Kind == token.HashHash {
			if len(m.body) == 0 || i == len(toks)-1 {
				p.errorf(t.Pos, "## at an end of macro %s", m.name)
				return false
			}
			m.body[len(m.body)-1].op |= paste
			op |= pasted
			continue
		}
		param, names := m.places[t.Text]
		if !names || !t.IsName() {
			param = -1
		}
		if t.Kind == token.Hash && m.funcLike && i+1 < len(toks) {
			if _, names := m.places[toks[i+1].Text]; names {
				op |= stringize
				continue
			}
		}
		m.body = append(m.body, macroToken{Token: t, param: param, op: op})
		op = 0
	}
	if len(m.body) > 0 {
		m.body[0].flag &^= spaced
	}
	return true
}

// undef executes #undef.
func (p *preproc) undef() {
	var t Token
	if p.file.next(&t); !t.IsName() {
		p.errorf(t.Pos, "#undef needs a name, found %s", t.describe())
		return
	}
	delete(p.macros, t.Text)
	p.end("undef")
}

// expand starts the expansion of m at its use t. It returns false if t is not
// replaced: a function-like macro without arguments.
func (p *preproc) expand(m *macro, t Token) bool {
	var args [][]Token
	switch {
	case m.builtin:
		p.ctxs = append(p.ctxs, context{toks: []Token{builtinValue(m.name, t)}})
		return true
	case m.funcLike:
		next := p.lex()
		if next.Kind != token.Lparen {
			p.unread, p.hasUnread = next, true
			return false
		}
		var ok bool
		if args, ok = p.macroArgs(m, t); !ok {
			return true
		}
	}
	if p.stopped {
		return true
	}
	toks := p.substitute(m, args, t)
	if p.spent += len(toks) + 1; p.spent > maxExpansion {
		p.stop(t.Pos, "macros use more than %d tokens (docs/limits.md)", maxExpansion)
		return true
	}
	if len(p.ctxs) >= maxContext {
		p.stop(t.Pos, "macros nest more than %d deep (docs/limits.md)", maxContext)
		return true
	}
	m.busy = true
	p.ctxs = append(p.ctxs, context{toks, m})
	return true
}

func builtinValue(name string, t Token) Token {
	if name == "__LINE__" {
		t.Kind, t.Text = token.Int, strconv.Itoa(t.Pos.Line())
	} else {
		t.Kind, t.Text = token.String, quote(t.Pos.File())
	}
	t.flag |= fromMacro
	return t
}

// macroArgs collects the arguments of a use of m after its opening parenthesis.
func (p *preproc) macroArgs(m *macro, use Token) (args [][]Token, ok bool) {
	defer func(old bool) { p.inArgs = old }(p.inArgs)
	p.inArgs = true
	var arg []Token
	for depth := 0; ; {
		t := p.lex()
		switch t.Kind {
		case token.EOF:
			if p.stopped {
				return nil, false
			}
			p.errorf(use.Pos, "arguments of macro %s do not end in )", m.name)
			return nil, false
		case token.Lparen:
			depth++
		case token.Rparen:
			if depth--; depth < 0 {
				args = append(args, arg)
				return p.checkArgs(m, args, use)
			}
		case token.Comma:
			if depth == 0 && !(m.variadic && len(args) == len(m.params)-1) {
				args = append(args, arg)
				arg = nil
				continue
			}
		}
		arg = append(arg, t)
		if p.spent++; p.spent > maxExpansion {
			p.stop(use.Pos, "macros use more than %d tokens (docs/limits.md)", maxExpansion)
		}
	}
}

// checkArgs checks the number of arguments and adjusts it where C allows that.
func (p *preproc) checkArgs(m *macro, args [][]Token, use Token) ([][]Token, bool) {
	want := len(m.params)
	if want == 0 && len(args) == 1 && len(args[0]) == 0 {
		return nil, true
	}
	if m.variadic && len(args) == want-1 {
		args = append(args, nil)
	}
	if len(args) != want {
		p.errorf(use.Pos, "macro %s takes %s, has %d", m.name, plural(want, "argument"), len(args))
		return nil, false
	}
	return args, true
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// substitute returns the body of m with its parameters replaced. Tokens of the body
// get the position of the macro's use; arguments keep theirs.
func (p *preproc) substitute(m *macro, args [][]Token, use Token) []Token {
	out := make([]Token, 0, len(m.body))
	empty := false // the operand before the next ## is empty
	for i := range m.body {
		b := &m.body[i]
		start := len(out)
		out = p.appendOperand(out, b, args, use)
		none := start == len(out)
		switch {
		case b.op&pasted == 0:
			empty = none
		case m.variadic && b.param == len(m.params)-1 && start > 0 && out[start-1].Kind == token.Comma:
			// As in GNU C, the comma before an empty variadic argument is removed.
			if none {
				out = out[:start-1]
			}
			empty = none
		default:
			if !none && !empty {
				out = pasteAt(out, start)
			}
			empty = empty && none
		}
		if p.spent+len(out) > maxExpansion {
			break
		}
	}
	if len(out) > 0 {
		out[0].flag = out[0].flag&^(spaced|bol) | use.flag&(spaced|bol)
	}
	return out
}

// appendOperand appends the tokens that replace one token of a body.
func (p *preproc) appendOperand(out []Token, b *macroToken, args [][]Token, use Token) []Token {
	space := b.flag & spaced
	switch {
	case b.param < 0:
		return append(out, Token{Kind: b.Kind, Text: b.Text, Pos: use.Pos, flag: space | fromMacro})
	case b.op&stringize != 0:
		text := stringized(args[b.param])
		return append(out, Token{Kind: token.String, Text: text, Pos: use.Pos, flag: space | fromMacro})
	}
	arg := args[b.param]
	if b.op&(paste|pasted) == 0 {
		arg = p.expandList(arg)
	}
	start := len(out)
	out = append(out, arg...)
	if start < len(out) {
		out[start].flag = out[start].flag&^(spaced|bol) | space
	}
	return out
}

// pasteAt joins the token before out[at] with out[at] if the two form one token.
func pasteAt(out []Token, at int) []Token {
	l, r := out[at-1], out[at]
	text := l.Text + r.Text
	sc := newScanner(newSource("", text, Pos{}), func(Pos, string, ...any) {})
	var t Token
	if sc.next(&t); sc.off != len(text) || t.Kind == token.EOF {
		out[at].flag &^= spaced | bol
		return out
	}
	t.Pos, t.flag = l.Pos, l.flag&(spaced|bol)|fromMacro
	out[at-1] = t
	return slices.Delete(out, at, at+1)
}

// stringized returns an argument as a string literal. A backslash at its end would
// escape the closing quote. As in C, of an odd number of such backslashes the last
// one is omitted.
func stringized(arg []Token) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, t := range arg {
		if i > 0 && t.flag&(spaced|bol) != 0 {
			b.WriteByte(' ')
		}
		if t.Kind == token.String {
			if endsInEscape(b.String()) {
				b.WriteByte('\\') // otherwise the backslash would escape the quote
			}
			b.WriteString(escaper.Replace(t.Text))
		} else {
			b.WriteString(t.Text)
		}
	}
	text := b.String()
	if endsInEscape(text) {
		text = text[:len(text)-1]
	}
	return text + `"`
}

// endsInEscape reports whether the last backslash of a text would escape the next
// character.
func endsInEscape(text string) bool {
	return (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1
}

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// spell returns the text of tokens. It writes one space where the source had white
// space, and where two tokens would otherwise merge.
func spell(toks []Token) string {
	var b strings.Builder
	for i, t := range toks {
		if i > 0 && (t.flag&(spaced|bol) != 0 || token.RunTogether(toks[i-1].Text, t.Text)) {
			b.WriteByte(' ')
		}
		b.WriteString(t.Text)
	}
	return b.String()
}

// expandList expands the macros in a separate list of tokens.
func (p *preproc) expandList(toks []Token) []Token {
	if !slices.ContainsFunc(toks, func(t Token) bool { return t.IsName() && p.macros[t.Text] != nil }) {
		return toks
	}
	if p.nested++; p.nested > maxNested {
		p.stop(toks[0].Pos, "macro arguments nest more than %d deep (docs/limits.md)", maxNested)
		return nil
	}
	defer func() { p.nested-- }()
	ctxs, isolated, unread, hasUnread := p.ctxs, p.isolated, p.unread, p.hasUnread
	p.ctxs, p.isolated, p.hasUnread = []context{{toks: toks}}, true, false
	var out []Token
	for {
		t := p.next()
		if t.Kind == token.EOF {
			break
		}
		out = append(out, t)
	}
	p.ctxs, p.isolated, p.unread, p.hasUnread = ctxs, isolated, unread, hasUnread
	return out
}
