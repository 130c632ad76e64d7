package codegen

import (
	"fmt"
	"slices"
)

// Archs are the architectures that programs are generated for: BMv2's, and
// those of Tofino 1 and 2.
var Archs = []string{"v1model", "tna", "t2na"}

// An architecture says how the catalogue's blocks are built for a switch. What
// a row is does not depend on it.
type architecture struct {
	name   string
	folder string   // of the templates
	blocks []*block // in the order in which they contribute

	software bool // multiplies, divides, and accesses registers as it likes

	// Of Tofino.
	stages     int
	recircPort int // of each pipe
	cellBytes  int // what queue depths count in
	cpuPort    int64
}

// software is the architecture that the catalogue itself is written for.
var software = &architecture{name: "v1model", folder: "v1model", blocks: blocks, software: true}

var (
	tofino1 = &architecture{name: "tna", folder: "tna", stages: 12, recircPort: 68, cellBytes: 80, cpuPort: 192}
	tofino2 = &architecture{name: "t2na", folder: "tna", stages: 20, recircPort: 6, cellBytes: 176, cpuPort: 0}
)

// CellBytes is what a queue's depth counts in on an architecture; 0: packets.
func CellBytes(arch string) int {
	a, err := architectureOf(arch)
	if err != nil {
		return 0
	}
	return a.cellBytes
}

// architectureOf finds an architecture, software for "".
func architectureOf(name string) (*architecture, error) {
	a := *software
	switch name {
	case "", software.name:
		return software, nil
	case tofino1.name:
		a = *tofino1
	case tofino2.name:
		a = *tofino2
	default:
		return nil, unknown("architecture", name, Archs)
	}
	a.blocks = hardwareBlocks
	return &a, nil
}

// lookup finds a block as the architecture builds it, nil where it does not.
func (a *architecture) lookup(k kind, name string) *block {
	i := slices.IndexFunc(a.blocks, func(b *block) bool { return b.kind == k && b.name == name })
	if i < 0 {
		return nil
	}
	return a.blocks[i]
}

// refuse says why a row does not exist for an architecture.
func (a *architecture) refuse(r Row, wanted, built *block) error {
	why := "it is not built for Tofino yet"
	if built != nil {
		why = built.cannot
	}
	return fmt.Errorf("no %s for %s: %s %s: %s", r.Name, a.name, wanted.kind, wanted.name, why)
}

// tick is what times count in on Tofino, in ns.
const tick = 1024

// count is the value of a parameter as the program has it.
func (a *architecture) count(p *Param, v Value) int64 {
	if p.Unit == Time && !a.software {
		return (v.Int + tick/2) / tick
	}
	return p.inProgram(v)
}

// typeOf is what the architecture calls a type.
func (a *architecture) typeOf(p4type string) string {
	if p4type == "time_us_t" && !a.software {
		return "ticks_t"
	}
	return p4type
}

// complete adds to the manifest what the program's text does not say.
func (a *architecture) complete(v *view) {
	if a.software {
		v.manifest.Hardware = nil
		return
	}
	m := &v.manifest
	m.Arch, m.PipeScope = a.name, "one program for all pipes, registers apart in each: write them in all, read the one of the port's pipe"
	for i := range m.Registers {
		m.Registers[i].BfRt = "pipe." + m.Registers[i].Name
	}
	for i := range m.Tables {
		m.Tables[i].BfRt = "pipe." + m.Tables[i].Name
	}
	m.Baked = v.baked()
}
