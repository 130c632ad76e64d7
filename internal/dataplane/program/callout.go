package program

import (
	"unsafe"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/internal/dataplane/code"
	"github.com/p4lb/p4lb/internal/dataplane/lookup"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A program is linked twice: to closures (Linker), which implement all of BMv2, and
// to machine code if the machine allows it. The code implements the common
// operations over the same vector, registers and tables. For every other operation
// it returns the number of a callout. A Go function, usually the closure, then runs
// the operation and continues the code after it. A return to Go and back takes less
// time than a table lookup, so only operations that profiles show need machine
// code.
//
// The code finds in its registers
//
//	BX   the packet's vector of headers and metadata
//	R12  refs: the addresses of register cells, counters and the like
//	R13  the State, whose fields it reads and writes
//	DI   the arguments of the running action
//
// The code contains no address of a switch, so switches with the same program share
// the code and its cache lines.
//
// The code of a control is a chain of jumps between nodes. An action of a table
// exists once. It ends with a jump to the address in State.Next, which apply
// sets to the next node.
//
// Hostile input: none. refs holds addresses of arrays and tables, none of
// packets.
type compiled struct {
	prog *Program
	Code *asm.Code
	refs []unsafe.Pointer
	outs []callout
	end  uintptr // code at the end of a run

	Ingress, Parse, Egress, deparse uintptr
}

// A callout is a request of the code to Go, with the position at which the code
// continues. Exactly one of the functions is set.
type callout struct {
	do     vector.Step
	parse  parserOp    // an error ends the parser
	next   *parseState // selects the next state
	test   vector.Test // continue at other if it is true
	table  *Table      // selects the next action and node
	inside bool        // inside an inlined action, with these arguments
	args   []uint64    //

	fallback *fallback

	resume, other uintptr
}

// Run runs the code for a packet, starting at an address.
//
// Hostile input: none. The switch gives each State the words of the program's
// layout, and entry is the address of a label.
func (c *compiled) Run(p *vector.State, entry uintptr) {
	for {
		n := asm.Call(entry, unsafe.Pointer(unsafe.SliceData(p.W)), unsafe.Pointer(unsafe.SliceData(c.refs)), unsafe.Pointer(p))
		if n == 0 {
			return
		}
		out := &c.outs[n-1]
		if asm.Debug {
			out.fallback.taken.Add(1)
		}
		entry = out.run(c, p)
	}
}

// run carries out a request of the code and returns the address at which the
// code continues.
func (o *callout) run(c *compiled, p *vector.State) uintptr {
	if o.inside {
		p.Args = o.args
	}
	switch {
	case o.table != nil:
		return c.apply(o.table, p)
	case o.test != nil:
		if o.test(p) {
			return o.other
		}
	case o.next != nil:
		if st := o.next.next(p); st != nil {
			return st.entry
		}
		return o.other
	case o.parse != nil:
		if code := o.parse(p); code != noError {
			p.ParserError = uint64(code)
			return o.other
		}
	default:
		o.do(p)
	}
	return o.resume
}

// apply looks p up in a table and returns the address of the action, which
// continues at State.Next.
func (c *compiled) apply(t *Table, p *vector.State) uintptr {
	slot := t.Find(p)
	if t.runsOnly && slot != lookup.None {
		r := &t.runs[slot]
		p.Entry, p.Next, p.Args = slot, r.next, r.args
		return r.action
	}
	k, next := t.chosen(slot, c.prog, p)
	p.Next = c.end
	if next != nil {
		p.Next = next.entry
	}
	if k == nil || k.Action == nil {
		return p.Next
	}
	p.Args = k.Args
	return k.Action.entry
}

// A compiler compiles a program to machine code. A method that returns false
// has written nothing.
type compiler struct {
	*code.Writer
	prog *Program

	outs    []callout
	resumes []outLabels // parallel to outs

	end, parse, parsed       asm.Label
	ingress, egress, deparse asm.Label
	nodes                    map[*node]asm.Label
	states                   map[*parseState]asm.Label
	actions                  map[*action]asm.Label // labels of the actions of tables
	queue                    []*action             // actions of tables that have not been written
	sources                  map[*action]*bmv2.Action
	entries                  map[*uintptr]asm.Label // labels of the parts of a Tofino program
	argWords                 int                    // number of argument words of the current action
	exits                    bool                   // the current action may exit
	result                   *compiled
	toGo                     func(from string) // passes the current primitive to Go
}

// An outLabels holds the positions at which the code continues after a callout.
type outLabels struct{ resume, other asm.Label }

// out returns to Go with a callout. from names the kind of fallback. The code
// continues at resume, which follows the callout. A callout with a decision may
// instead continue at other.
func (k *compiler) out(from string, o callout, other asm.Label) {
	o.fallback = fallbackNamed(from)
	k.outs = append(k.outs, o)
	resume := k.NewLabel()
	k.resumes = append(k.resumes, outLabels{resume, other})
	k.Set(asm.AX, uint64(len(k.outs)))
	k.Return()
	k.Enter(other)
	k.Entry(resume)
}

// call passes a step to Go.
func (k *compiler) call(from string, do vector.Step) {
	k.out(from, callout{do: do, args: k.Known, inside: k.InPlace}, k.end)
	k.loadArgs()
}

// loadArgs loads the address of the running action's arguments, at its beginning
// and after each return from Go.
//
// Hostile input: a packet selects the entry, and so the arguments. Each entry has as
// many words of arguments as its action takes.
func (k *compiler) loadArgs() {
	if k.argWords > 0 && !k.InPlace {
		k.LoadAddress(code.ArgData, code.StateArgs, 8*k.argWords)
	}
}

// maxCode is the size of code above which primitives are passed to Go. The code of
// one primitive may have a part for each member of its header or union.
const maxCode = 32 << 20

// leaves reports whether operations are passed to Go although code supports them:
// because the code is too long, or for a test.
func (k *compiler) leaves() bool { return k.Len() > maxCode || k.prog.opts.LeaveToGo }
