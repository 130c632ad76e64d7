package codegen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/template"
)

// A kind is one of the four questions that a scheme answers, or a part, which
// other blocks are built on.
type kind string

const (
	granularity kind = "granularity" // how much traffic is decided about at once
	signal      kind = "signal"      // the information about the paths
	choice      kind = "choice"      // how one of them is taken
	guard       kind = "guard"       // overrules the choice
	part        kind = "part"

	skeleton kind = "skeleton" // the text that the others contribute to
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

	Like    string `yaml:"like"`    // the block of p4lb that it is a changed copy of: the generator treats both alike
	Cannot  string `yaml:"cannot"`  // why the architecture has no such block, and the nearest alternative
	Instead string `yaml:"instead"` // the granularity that remembers, where no choice sees to flows

	Parts  []string `yaml:"parts"`  // blocks of kind part that it is built on
	Recirc []string `yaml:"recirc"` // additional parts if state returns by recirculation
	Ghost  []string `yaml:"ghost"`  // parts instead if state returns by the ghost thread
	// StatePath is a signal's default state path on software switches, "" for recirc.
	StatePath string `yaml:"state-path"`

	// Edge marks a signal that exists only at the edge of the network. Other switches choose by a
	// hash, and have the following parts.
	Edge    bool     `yaml:"edge"`
	Transit []string `yaml:"transit"`

	// Reads names the information about paths that a choice or a granularity needs. Gives lists
	// the information that a signal provides.
	Reads string   `yaml:"reads"`
	Gives []string `yaml:"gives"`

	On  []string `yaml:"granularities"` // granularities with which a choice is meaningful
	Why string   `yaml:"why"`           // reason for the restriction

	Sees    bool   `yaml:"sees-to-flows"` // a choice that does, whatever the granularity
	CanHash bool   `yaml:"can-hash"`      // a choice that can take its draw from the 5-tuple
	Fixed   bool   `yaml:"fixed"`         // a signal that stays as it is, so that such a draw stays too
	ByPort  bool   `yaml:"by-port"`       // a signal that is looked up by port, not by path
	Holds   string `yaml:"holds"`         // the register that keeps the path of a flow

	Load struct { // the register of a signal that watches utilisation
		Register string `yaml:"register"`
		Symbol   string `yaml:"symbol"`
	} `yaml:"load"`

	Check string `yaml:"check"` // one of proofs

	// Attributes are the values that the block needs about each candidate path.
	Attributes []attribute `yaml:"attributes"`

	Defaults map[string]string `yaml:"defaults"` // defaults of other blocks' parameters that this block changes

	// Parameters are the block's parameters. A parameter without a unit is declared by another
	// block.
	Parameters []Param `yaml:"parameters"`

	Order map[kind][]string `yaml:"order"` // for a skeleton: order in which blocks contribute

	file    source
	outside bool // the block belongs to a user
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
func (b *block) check(v *view) error {
	p, ok := proofs[b.Check]
	if !ok {
		return nil
	}
	for _, name := range p.about {
		if _, ok := v.values[name]; !ok {
			return b.file.wrong("$.check", "check %s is about the parameter %s: name it under parameters", b.Check, name)
		}
	}
	return p.of(v)
}

// wants returns the parts that a block uses.
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
	name string // name with its folder
	text string
	end  int // end of the head
}

// fence begins and ends a head.
const fence = "---\n"

// newSource finds the head of a block file.
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

// head returns the YAML of the head after an empty line, so that line numbers match the file.
func (s *source) head() string { return "\n" + s.text[len(fence):s.end] }

// body returns the text after the header.
func (s *source) body() string { return s.text[min(len(s.text), s.end+len(fence)):] }

// padded returns the body after as many empty lines as the head has.
func (s *source) padded() string {
	return strings.Repeat("\n", strings.Count(s.text[:len(s.text)-len(s.body())], "\n")) + s.body()
}

// wrong is an error about the value at a path of the head, such as $.parts[0].
func (s *source) wrong(path, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", s.name, cmp.Or(lineOf(s.head(), path), 1), fmt.Errorf(format, args...))
}

// recirculated is the default of StatePaths. cutCopies is the variant with truncated copies.
const (
	recirculated = "recirc"
	cutCopies    = "recirc-cut"
)
