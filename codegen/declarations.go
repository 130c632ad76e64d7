package codegen

import (
	"fmt"
	"strings"

	"github.com/p4lb/p4lb/manifest"
	"github.com/p4lb/p4lb/p4/syntax"
	"github.com/p4lb/p4lb/plain"
)

// indexes says what registers are indexed by.
var indexes = []struct {
	name     manifest.Index
	constant string
	size     int
	meaning  string
}{
	{manifest.ByPort, "PORTS", 512, "ports of the switch"},
	{manifest.ByFlow, "FLOWS", 65536, "slots for flows, by the CRC16 of the 5-tuple"},
	{manifest.ByGroup, "GROUPS", 1024, "groups of paths"},
	{manifest.ByPath, "PATHS", 16384, "paths: group * 16 + slot"},
	{manifest.ByMemory, "MEMORIES", 4096, "remembered paths: group * m + k"},
	{manifest.ByQueue, "QUEUES", 2048, "queues of a pipe"},
	{manifest.BySwitch, "", 1, "the switch"},
}

// Registers are the registers to declare.
func (v *view) Registers() []register { return v.registers }

// SizeOf is how the program writes the size of a register.
func (v *view) SizeOf(r register) string {
	for _, x := range indexes {
		if x.name == r.Index && x.constant != "" {
			return x.constant
		}
	}
	return "1"
}

// cellsOf is the number of cells of a register with an index.
func (v *view) cellsOf(index manifest.Index, usual int) int {
	if index == manifest.ByFlow {
		return v.flowSlots(usual)
	}
	return usual
}

// A sizeConstant is the number of cells of registers with one index.
type sizeConstant struct {
	Constant string
	Size     int
	Meaning  string
}

// Sizes are those that the program names.
func (v *view) Sizes() []sizeConstant {
	var list []sizeConstant
	for _, x := range indexes {
		if x.constant != "" && v.Names(x.constant) {
			list = append(list, sizeConstant{x.constant, v.cellsOf(x.name, x.size), x.meaning})
		}
	}
	return list
}

// A constant is a parameter as the program declares it.
type constant struct {
	Type, Name string
	Value      int64
	Comment    []string
}

// Constants are the parameters that the program names.
func (v *view) Constants() []constant {
	var list []constant
	for _, p := range v.row.parameters(v.arch, v.params.StatePath) {
		if p.Constant != "" && v.Names(p.Constant) {
			val := v.values[p.Name]
			text := fmt.Sprintf("%s; %s=%s. %s.", p.Meaning, p.Name, val.Text, p.Source)
			list = append(list, constant{v.arch.typeOf(p.Type), p.Constant, v.arch.count(&p, val), wrap(text)})
		}
	}
	return list
}

// wrap breaks a comment into lines.
func wrap(text string) []string { return plain.Wrap(text, 76) }

// About is the comment at the top of the program.
func (v *view) About() []string {
	r := v.row
	lines := wrap(fmt.Sprintf("%s: %s.", r.Name, v.title()))
	lines = append(lines, "")
	for _, k := range kinds {
		b := v.runs.block(k)
		if b.Name != "none" {
			for i, line := range plain.Wrap(b.About, 63) {
				if i == 0 {
					lines = append(lines, fmt.Sprintf("%-12s %s", k, line))
				} else {
					lines = append(lines, strings.Repeat(" ", 13)+line)
				}
			}
		}
	}
	lines = append(lines, "")
	about := fmt.Sprintf("For groups of up to %d paths, as %s.", v.N(), v.params.Role)
	if v.transit() {
		about = fmt.Sprintf("For groups of up to %d paths, as %s: the leaves choose, this switch hashes.", v.N(), v.params.Role)
	}
	lines = append(lines, wrap(about+" After "+r.Source+".")...)
	return lines
}

// EgressAbout says what egress does.
func (v *view) EgressAbout() string {
	if v.In("report") {
		return "measure, and report to ingress"
	}
	return ""
}

// Mention is a name that a comment speaks of, so that it is declared.
func (v *view) Mention(name string) string {
	v.mentioned = append(v.mentioned, name)
	return name
}

// Names reports whether the program names something, or a comment mentions it.
func (v *view) Names(name string) bool {
	if v.words == nil {
		v.words = map[string]bool{}
		for _, m := range v.mentioned {
			v.words[m] = true
		}
		const file = "body.p4"
		tokens, _ := syntax.Scan(syntax.OneFile(file, []byte(v.body)), file, syntax.Options{}) // what is wrong the parser says
		for _, t := range tokens {
			if t.IsName() {
				v.words[t.Text] = true
			}
		}
	}
	return v.words[name]
}
