package codegen

import (
	"fmt"
	"slices"
	"strings"
)

// A Row is a scheme: one block of each kind, with the paper's parameters.
type Row struct {
	Name        string            `json:"name"`
	Title       string            `json:"title"`
	Source      string            `json:"source"` // where it was published
	Granularity string            `json:"granularity"`
	Signal      string            `json:"signal"`
	Choice      string            `json:"choice"`
	Guard       string            `json:"guard"`
	Defaults    map[string]string `json:"defaults,omitempty"` // where they differ from the block's
}

// block returns the row's block of a kind.
func (r Row) block(k kind) *block {
	switch k {
	case granularity:
		if r.Granularity == "flow" && !r.hashes() {
			return lookup(k, "sticky")
		}
		return lookup(k, r.Granularity)
	case signal:
		return lookup(k, r.Signal)
	case choice:
		return lookup(k, r.Choice)
	}
	return lookup(guard, r.Guard)
}

// hashes reports whether the granularity need not remember a flow's path: the
// choice does it, or draws it from the 5-tuple.
func (r Row) hashes() bool {
	c := r.block(choice)
	return c.sees || c.canHash && r.block(signal).fixed
}

// feedsBack reports whether egress tells ingress something.
func (r Row) feedsBack() bool {
	list, err := r.blocks(software, true, false)
	return err == nil && slices.Contains(list, lookup(part, "report"))
}

// canonical is the name of a row that nobody has published.
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

// Lookup finds a row of the catalogue: a scheme, or one with a guard, such as
// drill+rlb.
func Lookup(name string) (Row, error) {
	base, guardName, guarded := strings.Cut(name, "+")
	i := slices.IndexFunc(catalogue, func(r Row) bool { return r.Name == base })
	if i < 0 {
		return Row{}, unknown("scheme", name, schemeNames())
	}
	row := catalogue[i]
	row.Guard = "none"
	if guarded {
		if b := lookup(guard, guardName); b == nil || guardName == "none" {
			return Row{}, unknown("guard", guardName, names(guard))
		}
		row.Name, row.Guard = name, guardName
		row.Title += ", " + lookup(guard, guardName).about
	}
	return row, row.validate()
}

// Compose makes a row of any blocks; "" stands for a guard or a signal of none.
// If the catalogue has the row, its name and its parameters are taken.
func Compose(granularityName, signalName, choiceName, guardName string) (Row, error) {
	r := Row{Granularity: granularityName, Signal: signalName, Choice: choiceName, Guard: guardName}
	if r.Signal == "" {
		r.Signal = "none"
	}
	if r.Guard == "" {
		r.Guard = "none"
	}
	for k, name := range map[kind]string{granularity: r.Granularity, signal: r.Signal, choice: r.Choice, guard: r.Guard} {
		if b := lookup(k, name); b == nil || b.about == "" {
			return Row{}, unknown(string(k), name, names(k))
		}
	}
	if err := r.validate(); err != nil {
		return Row{}, err
	}
	for _, known := range catalogue {
		if known.Granularity == r.Granularity && known.Signal == r.Signal && known.Choice == r.Choice {
			return Lookup(known.Name + r.suffix())
		}
	}
	r.Name = r.canonical()
	r.Title = fmt.Sprintf("a composition: %s, %s, %s", r.block(granularity).about, r.block(signal).about, r.block(choice).about)
	r.Source = "composed"
	return r, nil
}

// Parse reads the name of a scheme as Lookup does, or that of a composition
// such as flowlet-queue-grid+rlb.
func Parse(name string) (Row, error) {
	row, err := Lookup(name)
	if err == nil {
		return row, nil
	}
	base, guardName, _ := strings.Cut(name, "+")
	for _, g := range names(granularity) {
		for _, s := range names(signal) {
			for _, c := range names(choice) {
				r := Row{Granularity: g, Signal: s, Choice: c, Guard: "none"}
				if r.canonical() == base {
					return Compose(g, s, c, guardName)
				}
			}
		}
	}
	return Row{}, err
}

// validate says why a combination has no meaning.
func (r Row) validate() error {
	g, s, c := r.block(granularity), r.block(signal), r.block(choice)
	if len(c.on) > 0 && !slices.Contains(c.on, r.Granularity) {
		return r.refuse("choice %s wants granularity %s: %s", c.name, strings.Join(c.on, " or "), c.why)
	}
	for _, b := range []*block{g, c} {
		if b.reads != "" && !slices.Contains(s.gives, b.reads) {
			return r.refuse("%s %s reads %s, which signal %s does not give; %s would", b.kind, b.name, things[b.reads], s.name, strings.Join(givers(b.reads), ", "))
		}
	}
	if len(s.gives) > 0 && c.reads == "" && g.reads == "" {
		return r.refuse("signal %s would be measured for nobody: choice %s looks at nothing", s.name, c.name)
	}
	return nil
}

func (r Row) refuse(format string, args ...any) error {
	return fmt.Errorf("no scheme %s: %w", r.canonical(), fmt.Errorf(format, args...))
}

// givers lists the signals that give something.
func givers(thing string) []string {
	var list []string
	for _, b := range blocks {
		if b.kind == signal && slices.Contains(b.gives, thing) {
			list = append(list, b.name)
		}
	}
	return list
}

// guarded are the rows that RLB was tried on; it can be put on any.
var guarded = []string{"drill", "presto", "letflow", "hermes"}

// Names lists the catalogue: its rows, and those that a paper guards.
func Names() []string {
	list := schemeNames()
	for _, g := range []string{"rlb", "rlb-star"} {
		for _, name := range guarded {
			list = append(list, name+"+"+g)
		}
	}
	return list
}

func schemeNames() []string {
	var list []string
	for _, r := range catalogue {
		list = append(list, r.Name)
	}
	return list
}

// Catalogue lists the rows of Names.
func Catalogue() []Row {
	var list []Row
	for _, name := range Names() {
		row, err := Lookup(name)
		if err != nil {
			panic(err) // the catalogue names its own rows
		}
		list = append(list, row)
	}
	return list
}

// CatalogueFor lists the rows of Names that exist for an architecture.
func CatalogueFor(arch string) []Row {
	return slices.DeleteFunc(Catalogue(), func(r Row) bool {
		_, err := Generate(r, Params{Arch: arch})
		return err != nil
	})
}

// A Block is one that a row can be composed of.
type Block struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	About string `json:"about"`
}

// Blocks lists what rows can be composed of.
func Blocks() []Block {
	var list []Block
	for _, k := range kinds {
		for _, name := range names(k) {
			list = append(list, Block{string(k), name, lookup(k, name).about})
		}
	}
	return list
}

// Blocks lists the row's own.
func (r Row) Blocks() []Block {
	var list []Block
	for i, name := range []string{r.Granularity, r.Signal, r.Choice, r.Guard} {
		list = append(list, Block{string(kinds[i]), name, lookup(kinds[i], name).about})
	}
	return list
}
