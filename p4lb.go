// Package p4lb generates, compiles, runs and compares in-network load balancers
// written in P4_16. It offers the functions of the command p4lb to Go programs.
//
//	Build       generates the program of a load balancer by name
//	Compile     compiles any other program for BMv2, Tofino or Tofino 2
//	NewSwitch   runs a program on packets, in memory
//	Run         runs an experiment with networks of such switches in virtual time
//	Experiment  is the same with code of the caller: a controller in Go, failures,
//	            own flows, callbacks per packet and per interval, own metrics
//	Setup       writes the text of an experiment from Go values
//	Metrics     defines the metrics of experiments
//
// The examples show each of them. All functions are deterministic, start no other process,
// and access only the files that they are given.
//
// The module has three more packages for programs: codegen generates programs of the catalogue
// with all options, controller deploys them to switches over P4Runtime, and fitting computes
// congestion indices. Other packages are internal.
package p4lb

import (
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme"
)

// Options configure Build. The zero value selects the papers' settings: a leaf's
// program for BMv2 with groups of up to four paths.
type Options struct {
	Arch      string            // v1model, tna or t2na; "": v1model
	Role      string            // leaf, spine, tor, agg or core; "": leaf
	Paths     int               // paths of the largest group, 2 to 16; 0: 4
	Set       map[string]string // parameters with their units, as in {"gap": "500us"}
	StatePath string            // recirc, recirc-cut, shared or ghost; "": recirc
	IPv6      bool              // also forward IPv6

	// Blocks is a folder with blocks and rows in addition to the catalogue, as described in
	// docs/blocks.md; nil: none.
	Blocks fs.FS
}

// A Program is a compiled program.
type Program struct {
	text     []byte
	compiled *p4.Program
	built    *scheme.Program // nil for one that was compiled from a text
}

// Build generates the program of a load balancer: a row of the catalogue such as
// qall-poly3, a row with a guard such as drill+rlb, or a composition such as
// flowlet-queue-grid. The command p4lb schemes lists the names and their parameters.
func Build(name string, o Options) (*Program, error) {
	library := &scheme.Library{}
	if o.Blocks != nil {
		all, err := codegen.Standard().With("blocks", o.Blocks)
		if err != nil {
			return nil, err
		}
		library.Catalogue = all
	}
	s, err := library.Find(name)
	if err != nil {
		return nil, err
	}
	built, err := s.Build(codegen.Params{Arch: o.Arch, Role: o.Role, Ports: o.Paths, Set: o.Set, StatePath: o.StatePath, IPv6: o.IPv6})
	if err != nil {
		return nil, err
	}
	text, err := built.Text()
	if err != nil {
		return nil, err
	}
	compiled, err := built.Compiled()
	if err != nil {
		return nil, err
	}
	return &Program{text, compiled, built}, nil
}

// Compile compiles a P4_16 program for the architecture that it includes. name is its name in
// messages. An error has a line with the position of each mistake.
func Compile(name string, text []byte) (*Program, error) {
	compiled, err := p4.CompileText(name, text, p4.Options{})
	if err != nil {
		return nil, err
	}
	return &Program{text: text, compiled: compiled}, nil
}

// CompileOptions configure CompileFile.
type CompileOptions struct {
	Arch     string   // v1model, tna or t2na; "": as the program includes it
	Includes []string // folders that are searched for includes, before p4lb's own
	Defines  []string // macros: NAME, which is 1, or NAME=VALUE
}

// CompileFile is Compile for a program in a file, which may include others.
func CompileFile(files fs.FS, name string, o CompileOptions) (*Program, error) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, err
	}
	compiled, err := p4.Compile(files, name, p4.Options{Arch: o.Arch, IncludeDirs: o.Includes, Defines: o.Defines})
	if err != nil {
		return nil, err
	}
	return &Program{text: text, compiled: compiled}, nil
}

// Arch returns the architecture of the program: v1model, tna or t2na.
func (p *Program) Arch() string { return p.compiled.Arch }

// Text returns the program in P4_16.
func (p *Program) Text() []byte { return p.text }

// JSON returns the document that a switch loads: BMv2's format for v1model, and an extension of
// it for Tofino, which NewSwitch and p4lb's switch run.
func (p *Program) JSON() []byte { return p.compiled.JSON() }

// P4Info describes the program to P4Runtime, in the text form of protocol
// buffers.
func (p *Program) P4Info() []byte { return p.compiled.P4InfoText() }

// Manifest returns the description of the registers and tables of a generated program
// as JSON, and nil for a compiled one.
func (p *Program) Manifest() []byte {
	if p.built == nil {
		return nil
	}
	text, err := json.MarshalIndent(&p.built.Manifest, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("a manifest of strings and numbers: %v", err))
	}
	return append(text, '\n')
}
