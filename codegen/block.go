package codegen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/template"
)

// A kind is the kind of a block: one of the four that make a scheme, or a part that
// other blocks use.
type kind string

const (
	granularity kind = "granularity" // the amount of traffic for one decision
	signal      kind = "signal"      // the information about the paths
	choice      kind = "choice"      // how a path is chosen
	guard       kind = "guard"       // a rule that overrules the choice
	part        kind = "part"

	skeleton kind = "skeleton" // the program text to which other blocks contribute
)

// kinds lists the four kinds of block of a row.
var kinds = []kind{granularity, signal, choice, guard}

// allKinds lists the kinds of blocks in the order in which they contribute text:
// parts of other blocks first.
var allKinds = append([]kind{part}, kinds...)

// A block is one building block: the header of its file, which describes it for the
// catalogue, and its templates. The v1model file defines the meaning of a block; the
// Tofino file only lists its requirements there.
type block struct {
	Kind  kind   `yaml:"kind"`
	Name  string `yaml:"name"`
	About string `yaml:"about"` // description in one line; "": users cannot name the block

	Like    string `yaml:"like"`    // the block of p4lb of which this is an edited copy; the generator treats both alike
	Cannot  string `yaml:"cannot"`  // why the architecture lacks the block, and the nearest alternative
	Instead string `yaml:"instead"` // the granularity to use if no choice remembers the paths of flows

	Parts  []string `yaml:"parts"`  // blocks of kind part that it uses
	Recirc []string `yaml:"recirc"` // additional parts if state is returned by recirculation
	Ghost  []string `yaml:"ghost"`  // parts to use instead if state is returned by the ghost thread
	// StatePath is a signal's default state path on software switches, "" for recirc.
	StatePath string `yaml:"state-path"`

	// Edge marks a signal that exists only at the edge of the network. Other
	// switches choose paths by a hash, and use the following parts.
	Edge    bool     `yaml:"edge"`
	Transit []string `yaml:"transit"`

	// Reads names the information about paths that a choice or a granularity needs. Gives lists
	// the information that a signal provides.
	Reads string   `yaml:"reads"`
	Gives []string `yaml:"gives"`

	On  []string `yaml:"granularities"` // granularities for which a choice is meaningful
	Why string   `yaml:"why"`           // reason for the restriction

	Sees    bool   `yaml:"sees-to-flows"` // set for a choice that keeps the path of a flow, whatever the granularity
	CanHash bool   `yaml:"can-hash"`      // set for a choice that can take its random draw from the 5-tuple
	Fixed   bool   `yaml:"fixed"`         // set for a signal that never changes, so that a draw from the 5-tuple stays the same
	ByPort  bool   `yaml:"by-port"`       // set for a signal that is looked up by port and not by path
	Holds   string `yaml:"holds"`         // the register that stores the path of a flow

	Load struct { // the register of a signal that measures utilisation
		Register string `yaml:"register"`
		Symbol   string `yaml:"symbol"`
	} `yaml:"load"`

	Check string `yaml:"check"` // name of the check; see proofs

	// Attributes are the values that the block needs for each candidate path.
	Attributes []attribute `yaml:"attributes"`

	Defaults map[string]string `yaml:"defaults"` // defaults of other blocks' parameters that this block overrides

	// Parameters are the block's parameters. A parameter without a unit is declared by another
	// block.
	Parameters []Param `yaml:"parameters"`

	Order map[kind][]string `yaml:"order"` // for a skeleton: order in which blocks contribute

	file    source
	outside bool // set for a block of a user
	once    sync.Once
	text    *template.Template
	err     error
}

// An attribute is a value that the table candidates stores for each path.
type attribute struct {
	Name    string `yaml:"name"`
	Type    string `yaml:"type"`
	Meaning string `yaml:"meaning"`
}

// String returns the name of the block in messages.
func (b *block) String() string { return strings.TrimSpace(string(b.Kind) + " " + b.Name) }

// template returns the parsed text of the block, or nil if it has none.
func (b *block) template() (*template.Template, error) {
	b.once.Do(func() {
		if strings.Contains(b.file.body(), "{{") {
			b.text, b.err = parseTemplate(b.file.name, b.file.padded())
		}
	})
	return b.text, b.err
}

// defines reports whether the block's text has a template.
func (b *block) defines(name string) bool {
	t, err := b.template()
	return err == nil && t != nil && t.Lookup(name) != nil
}

// check runs the block's proof for a row, if it names one.
func (b *block) check(c *composition) error {
	p, ok := proofs[b.Check]
	if !ok {
		return nil
	}
	for _, name := range p.about {
		if _, ok := c.values[name]; !ok {
			return b.file.wrong("$.check", "check %s is about the parameter %s: name it under parameters", b.Check, name)
		}
	}
	return p.of(c)
}

// wants returns the names of the parts that a block uses.
func (b *block) wants(statePath string, transit bool) []string {
	switch {
	case transit && b.Kind == signal:
		return b.Transit
	case statePath == "ghost" && b.Ghost != nil:
		return b.Ghost
	case (statePath == recirculated || statePath == cutCopies) && !transit:
		return slices.Concat(b.Parts, b.Recirc)
	}
	return b.Parts
}

// A source is the text of a file: a YAML header between two lines of dashes, and the
// rest. Messages use the line numbers of the file.
type source struct {
	name string // path of the file
	text string
	end  int // offset of the header's end
}

// fence is the line before and after a header.
const fence = "---\n"

// newSource finds the header of a block file.
func newSource(name, text string) (source, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if strings.HasPrefix(text, fence) {
		if i := strings.Index(text[len(fence)-1:], "\n"+fence); i >= 0 {
			return source{name, text, len(fence) + i}, nil
		}
		return source{}, fmt.Errorf("%s:1: the head does not end: want a line --- behind it", name)
	}
	return source{}, fmt.Errorf("%s:1: want the head of a block first, between two lines ---", name)
}

// head returns the YAML of the header after an empty line, so that line numbers
// match the file.
func (s *source) head() string { return "\n" + s.text[len(fence):s.end] }

// body returns the text after the header.
func (s *source) body() string { return s.text[min(len(s.text), s.end+len(fence)):] }

// padded returns the body after as many empty lines as the header has.
func (s *source) padded() string {
	return strings.Repeat("\n", strings.Count(s.text[:len(s.text)-len(s.body())], "\n")) + s.body()
}

// wrong returns an error about the value at a path of the header, such as
// $.parts[0].
func (s *source) wrong(path, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", s.name, cmp.Or(lineOf(s.head(), path), 1), fmt.Errorf(format, args...))
}

// These are state paths. recirculated is the default, and cutCopies truncates the
// recirculated copies.
const (
	recirculated = "recirc"
	cutCopies    = "recirc-cut"
)
