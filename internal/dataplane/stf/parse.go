package stf

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// A Script is a parsed test.
type Script struct {
	name  string
	stmts []stmt
	ports map[uint32]bool // the ports that take part
	// outlets are the ports with expected packets.
	outlets map[uint32]bool
}

// A stmt is one statement.
type stmt struct {
	line int
	op   string
	port uint32   // packet, expect
	data string   // packet, expect: digits, * and a final $
	any  bool     // expect without data
	args []string // other statements: the tokens
}

// Parse reads a test; name appears in messages.
func Parse(name, text string) (*Script, error) {
	s := &Script{name: name, ports: map[uint32]bool{}, outlets: map[uint32]bool{}}
	var begun strings.Builder // a line continued by \
	first := 0
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if begun.Len() == 0 {
			first = i + 1
		}
		part, broken := strings.CutSuffix(strings.TrimSpace(line), `\`)
		begun.WriteString(part + " ")
		if broken {
			continue
		}
		line = begun.String()
		begun.Reset()
		for line := range strings.SplitSeq(line, ";") {
			if strings.TrimSpace(line) == "" {
				continue
			}
			st, err := parseLine(line)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, first, err)
			}
			st.line = first
			s.stmts = append(s.stmts, st)
			if st.op == "packet" || st.op == "expect" {
				s.ports[st.port] = true
				s.outlets[st.port] = s.outlets[st.port] || st.op == "expect"
			}
		}
	}
	if strings.TrimSpace(begun.String()) != "" {
		return nil, fmt.Errorf(`%s:%d: the last line ends in \`, name, first)
	}
	return s, nil
}

func parseLine(line string) (stmt, error) {
	fields := strings.Fields(line)
	st := stmt{op: strings.ToLower(fields[0])}
	if st.op != "packet" && st.op != "expect" {
		var err error
		st.args, err = tokens(line[strings.Index(line, fields[0])+len(fields[0]):])
		return st, err
	}
	if len(fields) < 2 {
		return st, fmt.Errorf("%s: no port: want %[1]s PORT DATA", st.op)
	}
	port, err := strconv.ParseUint(fields[1], 10, 32)
	if err != nil {
		return st, fmt.Errorf("port %q is not a number", fields[1])
	}
	st.port = uint32(port)
	st.data = strings.ToUpper(strings.Join(fields[2:], ""))
	st.any = st.op == "expect" && st.data == ""
	return st, st.checkData()
}

var (
	packetData = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([0-9A-F]{2})*$`)
	})
	expectData = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[0-9A-F*]*\$?$`)
	})
)

func (st *stmt) checkData() error {
	switch {
	case st.op == "packet" && !packetData().MatchString(st.data):
		return fmt.Errorf("packet data %q: want bytes of two hexadecimal digits each", st.data)
	case st.op == "expect" && !expectData().MatchString(st.data):
		return fmt.Errorf("expected data %q has characters other than digits, * and a final $", st.data)
	}
	return nil
}

// token matches a quoted name, a comparison, a punctuation mark, or a word:
// names with dots and brackets, numbers with wildcards, prefixes, masks,
// ranges and decimals.
var token = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"[^"]*"|==|!=|<=|>=|[<>=:(),]|[^\s"=:(),<>!]*->[^\s"=:(),<>!]*|[^\s"=:(),<>!]+`)
})

func tokens(s string) ([]string, error) {
	var list []string
	for rest := strings.TrimSpace(s); rest != ""; rest = strings.TrimSpace(rest) {
		loc := token().FindStringIndex(rest)
		if loc == nil || loc[0] != 0 || loc[1] == 0 {
			return nil, fmt.Errorf("cannot read %q", rest)
		}
		list = append(list, strings.Trim(rest[:loc[1]], `"`))
		rest = rest[loc[1]:]
	}
	return list, nil
}

// A binding is NAME:VALUE.
type binding struct{ name, value string }

// An invocation is ACTION(ARG:VALUE, …).
type invocation struct {
	action string
	args   []binding
}

// A cursor reads tokens one by one.
type cursor struct{ list []string }

func (c *cursor) peek(n int) string {
	if n < len(c.list) {
		return c.list[n]
	}
	return ""
}

func (c *cursor) next() string {
	t := c.peek(0)
	if len(c.list) > 0 {
		c.list = c.list[1:]
	}
	return t
}

func (c *cursor) want(t string) error {
	if got := c.next(); got != t {
		return fmt.Errorf("expected %q, found %q", t, got)
	}
	return nil
}

// bindings reads NAME:VALUE as often as it occurs.
func (c *cursor) bindings() []binding {
	var list []binding
	for c.peek(1) == ":" {
		b := binding{name: c.next()}
		c.next()
		b.value = c.next()
		list = append(list, b)
		if c.peek(0) == "," {
			c.next()
		}
	}
	return list
}

func (c *cursor) invocation() (invocation, error) {
	inv := invocation{action: c.next()}
	if inv.action == "" {
		return inv, fmt.Errorf("expected an action")
	}
	if len(c.list) == 0 { // an action without parameters
		return inv, nil
	}
	if err := c.want("("); err != nil {
		return inv, err
	}
	inv.args = c.bindings()
	return inv, c.want(")")
}

// done returns an error unless all tokens have been read.
func (c *cursor) done() error {
	if len(c.list) > 0 {
		return fmt.Errorf("unexpected %q", strings.Join(c.list, " "))
	}
	return nil
}
