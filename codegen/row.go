package codegen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// A Row is a scheme: one block of each kind, with the paper's parameters.
type Row struct {
	Name        string            `json:"name" yaml:"name"`
	Title       string            `json:"title" yaml:"title"`
	Source      string            `json:"source" yaml:"source"` // publication
	Granularity string            `json:"granularity" yaml:"granularity"`
	Signal      string            `json:"signal" yaml:"signal"`
	Choice      string            `json:"choice" yaml:"choice"`
	Guard       string            `json:"guard" yaml:"guard"`
	Defaults    map[string]string `json:"defaults,omitempty" yaml:"defaults"` // defaults that differ from the blocks'

	home  *Catalogue // nil: p4lb's own catalogue
	title string     // may contain parameter names in braces
}

// catalogue returns the catalogue of the row.
func (r Row) catalogue() *Catalogue {
	if r.home == nil {
		return Standard()
	}
	return r.home
}

// defaults returns the default values of the row's parameters, for titles that contain
// them.
func (r Row) defaults() map[string]string {
	values := map[string]string{}
	if strings.Contains(r.title, "{") {
		for _, p := range r.Parameters() {
			values[p.Name] = p.Default
		}
	}
	return values
}

// titled returns the title with the values of parameters.
func (r Row) titled(values map[string]string) string {
	title := r.title
	if title == "" {
		return r.Title
	}
	for name, text := range values {
		title = strings.ReplaceAll(title, "{"+name+"}", text)
	}
	return title
}

// statePath returns the default state path of a row on an architecture.
func (r Row) statePath(arch string) string {
	if arch == "" || arch == software.name {
		return cmp.Or(r.block(signal).StatePath, recirculated)
	}
	return recirculated
}

// named returns the name of the row's block of a kind.
func (r Row) named(k kind) string {
	switch k {
	case granularity:
		return r.Granularity
	case signal:
		return r.Signal
	case choice:
		return r.Choice
	}
	return r.Guard
}

// block returns the row's block of a kind. If no choice remembers the paths of
// flows, the granularity is one that does.
func (r Row) block(k kind) *block {
	b := r.catalogue().lookup(k, r.named(k))
	if k == granularity && b.Instead != "" && !r.hashes() {
		return r.catalogue().lookup(k, b.Instead)
	}
	return b
}

// like returns the name of the row's block of a kind. For an edited copy, it
// returns the name of the original block.
func (r Row) like(k kind) string {
	if b := r.catalogue().lookup(k, r.named(k)); b != nil && b.Like != "" {
		return b.Like
	}
	return r.named(k)
}

// hashes reports whether the granularity does not remember the paths of flows: the choice
// remembers them, or computes them from the 5-tuple.
func (r Row) hashes() bool {
	c := r.block(choice)
	return c.Sees || c.CanHash && r.block(signal).Fixed
}

// canonical returns the name of a composition that is not a row of the catalogue.
func (r Row) canonical() string {
	name := r.Granularity + "-" + r.Signal + "-" + r.Choice
	if r.Signal == "none" {
		name = r.Granularity + "-" + r.Choice
	}
	return name + r.suffix()
}

func (r Row) suffix() string {
	if r.Guard == "none" {
		return ""
	}
	return "+" + r.Guard
}

// validate returns an error if a combination of blocks has no meaning.
func (r Row) validate() error {
	g, s, c := r.block(granularity), r.block(signal), r.block(choice)
	if len(c.On) > 0 && !slices.Contains(c.On, r.like(granularity)) {
		return r.refuse("choice %s wants granularity %s: %s", c.Name, strings.Join(c.On, " or "), c.Why)
	}
	for _, b := range []*block{g, c} {
		if b.Reads != "" && !slices.Contains(s.Gives, b.Reads) {
			all := r.catalogue()
			return r.refuse("%s %s reads %s, which signal %s does not give; %s would", b.Kind, b.Name, all.things[b.Reads], s.Name, strings.Join(all.givers(b.Reads), ", "))
		}
	}
	if len(s.Gives) > 0 && c.Reads == "" && g.Reads == "" {
		return r.refuse("signal %s is not used: choice %s looks at nothing", s.Name, c.Name)
	}
	return nil
}

func (r Row) refuse(format string, args ...any) error {
	return fmt.Errorf("no scheme %s: %w", r.canonical(), fmt.Errorf(format, args...))
}

// Outside lists the row's blocks that belong to the user.
func (r Row) Outside() []string {
	var list []string
	for _, k := range kinds {
		if b := r.block(k); b.outside {
			list = append(list, b.String())
		}
	}
	return list
}

// Blocks lists the row's blocks.
func (r Row) Blocks() []Block {
	return lists.Map(kinds, func(k kind) Block { return Block{string(k), r.named(k), r.catalogue().lookup(k, r.named(k)).About} })
}

// These functions use p4lb's own catalogue.

// Lookup calls Catalogue.Lookup of the standard catalogue.
func Lookup(name string) (Row, error) { return Standard().Lookup(name) }

// Compose calls Catalogue.Compose of the standard catalogue.
func Compose(granularity, signal, choice, guard string) (Row, error) {
	return Standard().Compose(granularity, signal, choice, guard)
}

// Parse calls Catalogue.Parse of the standard catalogue.
func Parse(name string) (Row, error) { return Standard().Parse(name) }

// Names calls Catalogue.Names of the standard catalogue.
func Names() []string { return Standard().Names() }

// Rows calls Catalogue.Rows of the standard catalogue.
func Rows() []Row { return Standard().Rows() }

// RowsFor lists the rows that exist for an architecture.
func RowsFor(arch string) []Row {
	return slices.DeleteFunc(Rows(), func(r Row) bool {
		_, err := Generate(r, Params{Arch: arch})
		return err != nil
	})
}

// Blocks calls Catalogue.Blocks of the standard catalogue.
func Blocks() []Block { return Standard().Blocks() }
