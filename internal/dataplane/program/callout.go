package program

import (
	"unsafe"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/internal/dataplane/code"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A program is linked twice: to closures (linker), which do all that BMv2 can,
// and where the machine allows it once more, to machine code. The code does the
// common things over the same vector, registers and tables as the closures; for
// each other thing it returns with the number of a callout, a Go function does
// it, mostly the closure, and calls the code again behind it. Going out and in
// takes less than a table lookup, so nothing has to be compiled for the rest to
// be worth it, and what is compiled is what a profile asks for.
//
// The code finds in its registers
//
//	BX   the packet's vector of headers and metadata
//	R12  refs: the addresses of register cells, counters and the like
//	R13  the Packet, fields of which it reads and writes where they are
//	DI   the arguments of the running action
//
// It names no address of one switch, so that switches with the same program
// share it, and their part of the cache.
//
// A control runs as a chain of jumps: a node leads to the next. Actions that
// tables pick are there once and end with a jump to Packet.next, where the one
// who picked them has put the address of the node that follows.
type compiled struct {
	prog *Program
	Code *asm.Code
	refs []unsafe.Pointer
	outs []callout
	end  uintptr // ends a run

	Ingress, Parse, Egress, deparse uintptr
}

// A callout is what the code has Go do, and where it goes on. One of the
// functions is set.
type callout struct {
	do     vector.Step
	parse  parserOp    // an error ends the parser
	next   *parseState // decides where the parser goes
	test   vector.Test // true: other
	table  *Table      // decides where the control goes
	inside bool        // of an action that is compiled in place, which has
	args   []uint64    //

	fallback *fallback

	resume, other uintptr
}

// Run runs the code for a packet from an address on until its end.
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

// run does what the code cannot, and returns where it goes on.
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

// apply looks p up in a table. The action that this leads to goes on at the
// node behind it.
func (c *compiled) apply(t *Table, p *vector.State) uintptr {
	k, next := t.choose(c.prog, p)
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

// A compiler is a program on its way to machine code. What its methods return
// false for they have written nothing for.
type compiler struct {
	*code.Writer
	prog *Program

	outs    []callout
	resumes []outLabels // of outs

	end, parse, parsed       asm.Label
	ingress, egress, deparse asm.Label
	nodes                    map[*node]asm.Label
	states                   map[*parseState]asm.Label
	actions                  map[*action]asm.Label // that tables pick
	queue                    []*action             // of these, not written yet
	sources                  map[*action]*bmv2.Action
	entries                  map[*uintptr]asm.Label // of the parts of a program for Tofino
	argWords                 int                    // of the action being compiled
	exits                    bool                   // the action being compiled may exit
	result                   *compiled
	toGo                     func(from string) // has Go do the primitive being compiled
}

// outLabels are where a callout goes on.
type outLabels struct{ resume, other asm.Label }

// out returns to Go with a callout, from a place named in fallbacks. The code
// continues behind it, at resume; a callout that decides may also go to other.
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

// call has Go do a step.
func (k *compiler) call(from string, do vector.Step) {
	k.out(from, callout{do: do, args: k.Known, inside: k.InPlace}, k.end)
	k.loadArgs()
}

// loadArgs loads the address of the running action's arguments, at its beginning
// and after each return from Go.
//
// What does a packet control here? Which entry it hits, and so which arguments:
// each entry has as many words of them as its action takes.
func (k *compiler) loadArgs() {
	if k.argWords > 0 && !k.InPlace {
		k.LoadAddress(code.ArgData, code.StateArgs, 8*k.argWords)
	}
}

// maxCode is the size from which on primitives are left to Go. One primitive may
// take as much code as its header or union has members.
const maxCode = 32 << 20

// leaves reports whether the code leaves to Go what it can, because it is long
// already or a test wants it.
func (k *compiler) leaves() bool { return k.Len() > maxCode || k.prog.opts.LeaveToGo }
