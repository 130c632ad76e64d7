package codegen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/templates"
)

// A Catalogue contains blocks, and rows composed of them. They are from package templates, and
// optionally also from a user. It is immutable.
type Catalogue struct {
	software *shelf
	hardware func() *shelf
	params   []*Param
	things   map[string]string // descriptions of the information that blocks read and give, for messages
	rows     []Row
	guarded  []string // rows that are also listed with guards
	guards   []string
	rooms    map[string]map[string]room // by architecture and row
}

// A shelf holds the blocks for the architectures that share a folder of templates,
// in the order in which they contribute.
type shelf struct {
	blocks   []*block
	skeleton *block
}

// A room is the number of paths that an architecture supports for a row, if that is
// less than the blocks allow.
type room struct {
	Paths   int    `yaml:"paths"`   // size of the largest group; 0: no program fits
	Lacks   string `yaml:"lacks"`   // the exhausted resource
	Nearest string `yaml:"nearest"` // the row to use instead, if no group size fits
}

// Standard returns p4lb's own catalogue, which is loaded on first use.
var Standard = sync.OnceValue(func() *Catalogue {
	c, err := load("templates", templates.FS)
	if err != nil {
		panic(err) // a test would have found the error
	}
	return c
})

// shelf returns the blocks of a folder.
func (c *Catalogue) shelf(folder string) *shelf {
	if folder == software.folder {
		return c.software
	}
	return c.hardware()
}

// lookup returns a block in its v1model form, which defines its meaning.
func (c *Catalogue) lookup(k kind, name string) *block {
	return c.software.lookup(k, name)
}

// lookup returns a block, or nil if the architecture lacks it.
func (s *shelf) lookup(k kind, name string) *block {
	return lists.First(s.blocks, func(b *block) bool { return b.Kind == k && b.Name == name })
}

// param finds a parameter by name.
func (c *Catalogue) param(name string) *Param {
	return lists.First(c.params, func(p *Param) bool { return p.Name == name })
}

// names lists the blocks of a kind that users can name.
func (c *Catalogue) names(k kind) []string {
	return c.software.names(func(b *block) bool { return b.Kind == k && b.About != "" })
}

// names lists the blocks for which of returns true.
func (s *shelf) names(of func(*block) bool) []string {
	return lists.Map(lists.Filter(s.blocks, of), func(b *block) string { return b.Name })
}

// givers lists the signals that give a kind of information.
func (c *Catalogue) givers(thing string) []string {
	return c.software.names(func(b *block) bool { return b.Kind == signal && slices.Contains(b.Gives, thing) })
}

// Lookup finds a row: a scheme, or one with a guard, such as drill+rlb.
func (c *Catalogue) Lookup(name string) (Row, error) {
	base, guardName, guarded := strings.Cut(name, "+")
	i := slices.IndexFunc(c.rows, func(r Row) bool { return r.Name == base })
	if i < 0 {
		if row, arch, ok := strings.Cut(name, "@"); ok && slices.Contains(c.schemeNames(), row) {
			return Row{}, &unknownError{"scheme", name, nil, []string{row + ", with the architecture " + arch + " apart from it"}}
		}
		return Row{}, unknown("scheme", name, c.schemeNames())
	}
	row := c.rows[i]
	if guarded {
		b := c.lookup(guard, guardName)
		if b == nil || guardName == "none" {
			return Row{}, unknown("guard", guardName, c.names(guard))
		}
		row.Name, row.Guard = name, guardName
		row.title += ", " + b.About
	}
	if err := row.validate(); err != nil {
		return Row{}, err
	}
	row.Title = row.titled(row.defaults())
	return row, nil
}

// Compose returns a row of any blocks; "" means no guard or no signal. If the
// catalogue contains this row, it has the catalogue's name and parameters.
func (c *Catalogue) Compose(granularityName, signalName, choiceName, guardName string) (Row, error) {
	r := Row{Granularity: granularityName, Signal: signalName, Choice: choiceName, Guard: guardName, home: c}
	r.Signal = cmp.Or(r.Signal, "none")
	r.Guard = cmp.Or(r.Guard, "none")
	for _, k := range kinds {
		if b := c.lookup(k, r.named(k)); b == nil || b.About == "" {
			return Row{}, unknown(string(k), r.named(k), c.names(k))
		}
	}
	if err := r.validate(); err != nil {
		return Row{}, err
	}
	for _, known := range c.rows {
		if known.Granularity == r.Granularity && known.Signal == r.Signal && known.Choice == r.Choice {
			return c.Lookup(known.Name + r.suffix())
		}
	}
	r.Name = r.canonical()
	r.Title = fmt.Sprintf("a composition: %s, %s, %s", r.block(granularity).About, r.block(signal).About, r.block(choice).About)
	r.Source = "composed"
	return r, nil
}

// Parse returns the scheme with a name: a row as in Lookup, or a composition such
// as flowlet-queue-grid+rlb.
func (c *Catalogue) Parse(name string) (Row, error) {
	row, err := c.Lookup(name)
	if err == nil {
		return row, nil
	}
	base, guardName, _ := strings.Cut(name, "+")
	for _, g := range c.names(granularity) {
		for _, s := range c.names(signal) {
			for _, ch := range c.names(choice) {
				r := Row{Granularity: g, Signal: s, Choice: ch, Guard: "none"}
				if r.canonical() == base {
					return c.Compose(g, s, ch, guardName)
				}
			}
		}
	}
	return Row{}, err
}

// Names lists the rows, including guarded rows of papers.
func (c *Catalogue) Names() []string {
	list := c.schemeNames()
	for _, g := range c.guards {
		for _, name := range c.guarded {
			list = append(list, name+"+"+g)
		}
	}
	return list
}

func (c *Catalogue) schemeNames() []string {
	return lists.Map(c.rows, func(r Row) string { return r.Name })
}

// Rows lists the rows of Names.
func (c *Catalogue) Rows() []Row {
	var list []Row
	for _, name := range c.Names() {
		row, err := c.Lookup(name)
		if err != nil {
			panic(err) // the catalogue contains its own rows
		}
		list = append(list, row)
	}
	return list
}

// A Block describes a block from which rows can be composed.
type Block struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	About string `json:"about"`
}

// Blocks lists the blocks for composing rows.
func (c *Catalogue) Blocks() []Block {
	var list []Block
	for _, k := range kinds {
		for _, name := range c.names(k) {
			list = append(list, Block{string(k), name, c.lookup(k, name).About})
		}
	}
	return list
}

// Archs are the architectures of generated programs: v1model for BMv2, tna for Tofino
// 1 and t2na for Tofino 2.
var Archs = []string{"v1model", "tna", "t2na"}

// An architecture is the catalogue for one machine. It does not change the meaning
// of a row.
type architecture struct {
	machine
	*shelf
	rooms map[string]room // by row
}

// A machine describes the switches of an architecture.
type machine struct {
	name   string
	folder string // folder of its templates

	software bool // can multiply, divide, and access registers several times

	// For Tofino.
	stages     int
	recircPort int // recirculation port of each pipe
	cellBytes  int // unit of queue depths in bytes
	cpuPort    int64
}

// software is the machine for which block headers are written.
var software = machine{name: "v1model", folder: "v1model", software: true}

var (
	tofino1 = machine{name: "tna", folder: "tna", stages: 12, recircPort: 68, cellBytes: 80, cpuPort: 192}
	tofino2 = machine{name: "t2na", folder: "tna", stages: 20, recircPort: 6, cellBytes: 176, cpuPort: 0}
)

// machineOf returns a machine; "" means software.
func machineOf(arch string) (machine, error) {
	for _, m := range []machine{software, tofino1, tofino2} {
		if m.name == cmp.Or(arch, software.name) {
			return m, nil
		}
	}
	return machine{}, &unknownError{what: "architecture", name: arch, have: Archs} // suggestions for such short names would mislead
}

// CellBytes returns the size of a queue cell on an architecture, or 0 if queues count
// packets.
func CellBytes(arch string) int {
	m, _ := machineOf(arch)
	return m.cellBytes
}

// on returns the catalogue for a machine.
func (c *Catalogue) on(m machine) *architecture {
	return &architecture{m, c.shelf(m.folder), c.rooms[m.name]}
}

// architecture returns the catalogue for one of Archs; "" means v1model.
func (c *Catalogue) architecture(arch string) (*architecture, error) {
	m, err := machineOf(arch)
	if err != nil {
		return nil, err
	}
	return c.on(m), nil
}

// refuse returns the reason why a row does not exist for an architecture, or nil.
func (a *architecture) refuse(r Row, wanted, built *block) error {
	why := "it is not built for Tofino yet"
	switch {
	case built != nil:
		why = built.Cannot
	case wanted.outside:
		why = fmt.Sprintf("it is only in %s; add a file for %s", wanted.file.name, a.folder)
	}
	return fmt.Errorf("%s cannot be generated for %s: %s: %s", r.Name, a.name, wanted, why)
}

// hasRoom returns an error that names the exhausted resource.
func (a *architecture) hasRoom(r Row, paths int) error {
	lack, ok := a.rooms[r.Name]
	switch {
	case !ok || paths <= lack.Paths:
		return nil
	case lack.Paths == 0:
		return fmt.Errorf("%s does not fit %s: not enough %s; the nearest alternative is %s", r.Name, a.name, lack.Lacks, lack.Nearest)
	}
	return fmt.Errorf("%s does not fit %s with %d paths: not enough %s; want at most %d paths", r.Name, a.name, paths, lack.Lacks, lack.Paths)
}

// tick is the unit of time on Tofino in ns.
const tick = 1024

// count converts the value of a parameter to the unit of the program.
func (a *architecture) count(p *Param, v Value) int64 {
	if p.Unit == Time && !a.software {
		return (v.Int + tick/2) / tick
	}
	// Other programs count time in µs.
	switch {
	case p.Unit == Time:
		return v.Int / 1000
	case p.Of != 0:
		return v.Int * p.Of / 100
	}
	return v.Int
}

// typeOf returns the architecture's name of a type.
func (a *architecture) typeOf(p4type string) string {
	if p4type == "time_us_t" && !a.software {
		return "ticks_t"
	}
	return p4type
}
