package program

import (
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// An action is a linked action: a list of instructions.
type action struct {
	name     string
	id       int
	Params   []vector.Param
	argWords int
	code     []instr
	jumps    bool // at least one instruction jumps
	source   *bmv2.SourceInfo
	entry    uintptr // address in machine code
}

// An instr is a step, or a jump to the instruction at target.
type instr struct {
	do     vector.Step
	target int
	when   vector.Test // condition of the jump; nil: always
}

// maxSteps limits the jumps and nodes of a packet in one control. BMv2 would loop endlessly.
const maxSteps = 1 << 20

// run executes a for p with the arguments args.
func (a *action) run(p *vector.State, args []uint64) {
	p.Args = args
	if !a.jumps {
		for i := range a.code {
			a.code[i].do(p)
		}
		return
	}
	for pc := 0; pc < len(a.code) && p.Steps < maxSteps; p.Steps++ {
		in := &a.code[pc]
		pc++
		switch {
		case in.do != nil:
			in.do(p)
		case in.when == nil || in.when(p):
			pc = in.target
		}
	}
}
