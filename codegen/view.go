package codegen

import (
	"errors"
	"fmt"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// A view is the value that templates receive: the composition, and values for single
// concerns with names and numbers, so that templates need not compute. docs/blocks.md
// lists what users' templates can rely on.
type view struct {
	*composition

	Flow   flows      // packets that share a path
	Draw   sampling   // random draws
	Path   candidates // the paths of a group
	Index  pattern    // QALL's congestion index
	Load   loads      // utilisations
	Probe  probing    // probes and their results
	Report reports    // reports from egress to ingress
	Detour detours    // RLB
	IP     addresses  // versions of IP

	// For Tofino.
	Chip  chip       // ports, units and resolutions
	Baked bakedIndex // the congestion index in tables
	Level levels     // comparison of paths
	Queue queues     // lengths of queues

	types     map[string]int
	places    map[string]string
	body      string
	words     map[string]bool // names in the body
	manifest  manifest.Manifest
	registers []register // registers as declared in the program
	word      string
	using     []string // templates being executed
	steps     int      // number of template steps so far
	err       error    // the first error of a template
}

// A register is a register of the manifest, with its declaration in the program.
type register struct {
	manifest.Register
	Type    string `json:"type"`    // type in the program
	Start   string `json:"start"`   // initial value of all cells in the program
	Local   bool   `json:"local"`   // declared by a control
	Comment string `json:"comment"` // comment in the program; "": the meaning
}

func newView(row Row, p Params) (*view, error) {
	c, err := compose(row, p)
	if err != nil {
		return nil, err
	}
	return &view{
		composition: c,
		Flow:        flows{c}, Draw: sampling{c}, Path: candidates{c}, Index: pattern{c}, Load: loads{c}, Probe: probing{c},
		Report: reports{c}, Detour: detours{c}, IP: addresses{c}, Chip: chip{c}, Baked: bakedIndex{c}, Level: levels{c}, Queue: queues{c},
		places: map[string]string{}, types: map[string]int{},
	}, nil
}

// compose returns the composition of a row, or an error if a parameter is out of range.
func compose(row Row, p Params) (*composition, error) {
	if err := row.validate(); err != nil {
		return nil, err
	}
	if err := p.complete(row); err != nil {
		return nil, err
	}
	arch, err := row.catalogue().architecture(p.Arch)
	if err != nil {
		return nil, err
	}
	if p.StatePath == "ghost" {
		// The ghost thread exists only on Tofino 2, and reads only queue lengths.
		if arch.name != tofino2.name {
			return nil, errors.New("state path ghost: the ghost thread is Tofino 2's, of t2na; want recirc")
		}
		if b := arch.lookup(signal, row.Signal); b == nil || b.Ghost == nil || row.Guard != "none" {
			return nil, fmt.Errorf("state path ghost: it only provides queue lengths, as for drill and qdaps, but %s needs more; want recirc", row.Name)
		}
	}
	if err := arch.hasRoom(row, p.Ports); err != nil {
		return nil, err
	}
	c := &composition{row: row, runs: row, arch: arch, params: p}
	if c.transit() {
		c.runs.Granularity, c.runs.Choice = "flow", "hash"
	}
	if _, err := row.blocks(arch, p.StatePath, false); err != nil {
		return nil, err // also for a row without leaves, because it has no spines either
	}
	if c.blocks, err = c.runs.blocks(arch, p.StatePath, c.transit()); err != nil {
		return nil, err
	}
	if p.IPv6 {
		if err := c.addIPv6(); err != nil {
			return nil, err
		}
	}
	if c.values, err = row.values(arch, p.StatePath, p.Set); err != nil {
		return nil, err
	}
	if row.like(signal) == "fitted" {
		if err := c.fit(); err != nil {
			return nil, err
		}
	}
	for _, b := range c.blocks {
		if err := b.check(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}
