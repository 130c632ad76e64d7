package codegen

import (
	"errors"
	"fmt"
)

// Archs are the architectures that programs are generated for: BMv2's, and
// those of Tofino 1 and 2.
var Archs = []string{"v1model", "tna", "t2na"}

// An architecture says how a catalogue's blocks are built for a switch. What
// a row is does not depend on it.
type architecture struct {
	machine
	*shelf
	rooms map[string]room // by row
}

// A machine is what is known of the switches of an architecture.
type machine struct {
	name   string
	folder string // of the templates

	software bool // multiplies, divides, and accesses registers as it likes

	// Of Tofino.
	stages     int
	recircPort int // of each pipe
	cellBytes  int // what queue depths count in
	cpuPort    int64
}

// software is what the heads of blocks speak of.
var software = machine{name: "v1model", folder: "v1model", software: true}

var (
	tofino1 = machine{name: "tna", folder: "tna", stages: 12, recircPort: 68, cellBytes: 80, cpuPort: 192}
	tofino2 = machine{name: "t2na", folder: "tna", stages: 20, recircPort: 6, cellBytes: 176, cpuPort: 0}
)

// machineOf finds a machine, software for "".
func machineOf(arch string) (machine, error) {
	switch arch {
	case "", software.name:
		return software, nil
	case tofino1.name:
		return tofino1, nil
	case tofino2.name:
		return tofino2, nil
	}
	return machine{}, unknown("architecture", arch, Archs)
}

// CellBytes is what a queue's depth counts in on an architecture; 0: packets.
func CellBytes(arch string) int {
	m, _ := machineOf(arch)
	return m.cellBytes
}

// on is the catalogue as it is built for a machine.
func (c *Catalogue) on(m machine) *architecture {
	return &architecture{m, c.shelf(m.folder), c.rooms[m.name]}
}

// architecture is the catalogue as it is built for one of Archs, for software
// if that is "".
func (c *Catalogue) architecture(arch string) (*architecture, error) {
	m, err := machineOf(arch)
	if err != nil {
		return nil, err
	}
	return c.on(m), nil
}

// refuse says why a row does not exist for an architecture.
func (a *architecture) refuse(r Row, wanted, built *block) error {
	why := "it is not built for Tofino yet"
	switch {
	case built != nil:
		why = built.Cannot
	case wanted.outside:
		why = fmt.Sprintf("%s says how it is built for v1model, and there is no such file for %s", wanted.file.name, a.folder)
	}
	return fmt.Errorf("no %s for %s: %s: %s", r.Name, a.name, wanted, why)
}

// haunted says why queue lengths cannot come by the ghost thread instead of egress.
func (a *architecture) haunted(r Row) error {
	if a.name != tofino2.name {
		return errors.New("state path ghost: the ghost thread is Tofino 2's, of t2na; want recirc")
	}
	if b := a.lookup(signal, r.Signal); b == nil || b.Ghost == nil || r.Guard != "none" {
		return fmt.Errorf("state path ghost: it knows queue lengths and nothing else that %s asks for, as drill and qdaps do; want recirc", r.Name)
	}
	return nil
}

// hasRoom says what runs out.
func (a *architecture) hasRoom(r Row, paths int) error {
	lack, ok := a.rooms[r.Name]
	switch {
	case !ok || paths <= lack.Paths:
		return nil
	case lack.Paths == 0:
		return fmt.Errorf("no %s for %s: not enough %s; the nearest is %s", r.Name, a.name, lack.Lacks, lack.Nearest)
	}
	return fmt.Errorf("no %s for %s with %d paths: not enough %s; want at most %d", r.Name, a.name, paths, lack.Lacks, lack.Paths)
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
