package lower

import (
	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// A code is a flat list of instructions with labels, the first form of every body.
// Actions keep it as jumps, pipelines cut it into nodes of a graph, and parsers
// into states.
type code struct {
	list []*instr
}

// A label is a position in the code.
type label struct {
	name string // a parser state's name, empty for others
	used bool
}

// An instrKind is the kind of an instruction.
type instrKind uint8

const (
	iPrim   instrKind = iota // prim(args)
	iLabel                   // label:
	iJump                    // goto label
	iBranch                  // if !cond goto label
	iApply                   // apply table, then go to the label of the outcome
	iExit                    // leave the pipeline
	iSelect                  // parser: choose the next state
	iAccept                  // parser: end
)

// An instr is one instruction.
type instr struct {
	kind  instrKind
	prim  string
	args  []any // *ex, places, or the reference types in emit.go
	cond  *ex
	label *label
	table *table
	hit   *label // for iApply, if the outcome matters
	miss  *label
	runs  map[string]*label // labels by action; hit is then the default
	cases []selectCase
	keys  []*ex
	at    syntax.Node
}

// A selectCase is one transition of a parser state.
type selectCase struct {
	vset  string    // a value set's name
	bytes []byteKey // nil for default
	next  *label    // nil means accept
}

// A byteKey is the value and mask of one key of a transition.
type byteKey struct {
	value, mask *ex
	width       int
}

// add appends an instruction.
func (l *lowerer) add(i *instr) *instr {
	if i.at == nil {
		i.at = l.at
	}
	l.spend(1 + costOperand*i.operands())
	l.code.list = append(l.code.list, i)
	return i
}

// operands returns the number of operators that the instruction has in the
// document.
func (i *instr) operands() int {
	n := len(i.keys) + len(i.cases)
	if i.cond != nil {
		n += i.cond.size
	}
	for _, a := range i.args {
		if x, ok := a.(*ex); ok {
			n += x.size
		}
	}
	return n
}

// prim appends a primitive.
func (l *lowerer) prim(name string, args ...any) {
	l.add(&instr{kind: iPrim, prim: name, args: args})
}

func (l *lowerer) jump(to *label) {
	to.used = true
	l.add(&instr{kind: iJump, label: to})
}

// branch jumps to els unless c holds.
func (l *lowerer) branch(c *ex, els *label) {
	els.used = true
	l.add(&instr{kind: iBranch, cond: c, label: els})
}

func (l *lowerer) emitLabel(lb *label) { l.add(&instr{kind: iLabel, label: lb}) }

// set assigns e to the field f.
func (l *lowerer) set(f *field, e *ex) {
	if e.op == opField && e.f == f {
		return
	}
	if f.st.varbit {
		l.prim("assign_VL", f, e)
		return
	}
	l.prim("assign", f, e)
	if f.written != nil {
		l.prim("assign", f.written, intEx(1, f.written.st))
	}
}

// mark returns the current end of the code.
func (l *lowerer) mark() int { return len(l.code.list) }

// insert moves the code that f emits to mark m.
func (l *lowerer) insert(m int, f func()) {
	tail := append([]*instr(nil), l.code.list[m:]...)
	l.spend(len(tail))
	l.code.list = l.code.list[:m]
	f()
	l.code.list = append(l.code.list, tail...)
}

// sub runs f and returns the instructions that f emitted, which it removes from the
// code.
func (l *lowerer) sub(f func()) []*instr {
	m := l.mark()
	f()
	got := append([]*instr(nil), l.code.list[m:]...)
	l.spend(len(got))
	l.code.list = l.code.list[:m]
	return got
}

// inCode runs f with an empty code buffer and returns the buffer.
func (l *lowerer) inCode(f func()) *code {
	saved := l.code
	l.code = &code{}
	defer func() { l.code = saved }()
	f()
	return l.code
}

// soleTarget returns the field that a primitive writes, if it writes one field and
// has no other effect.
func soleTarget(i *instr) (*field, bool) {
	switch i.prim {
	case "assign", "register_read", "modify_field_with_hash_based_offset", "modify_field_rng_uniform", "register_entry", "filter_execute", "wred_execute":
		f, ok := i.args[0].(*field)
		return f, ok
	}
	return nil, false
}

// settled returns x in a form that is cheap to use several times and does not
// change: a constant, an action parameter or a temporary.
func (l *lowerer) settled(x *ex) *ex {
	if x.op == opConst || x.op == opParam || x.op == opField && x.f.temp {
		return x
	}
	return l.copyOf(x)
}

// copyOf returns the value of x in a new temporary.
func (l *lowerer) copyOf(x *ex) *ex {
	t := l.temp(x.st)
	l.set(t, x)
	return fieldEx(t)
}
