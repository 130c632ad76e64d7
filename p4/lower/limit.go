package lower

import (
	"github.com/p4lb/p4lb/p4/syntax"
)

// The limits of one program. Inlining makes programs grow: a few lines of
// nested calls can ask for more code than any machine holds. What is beyond a
// limit is refused at the place where it is passed; docs/limits.md lists them.
const (
	// maxSteps bounds the statements after inlining.
	maxSteps = 1 << 20
	// maxWork bounds what the lowering does, in steps about as long as looking
	// at one expression or emitting one operand: it ends what is bounded by
	// nothing else within about a second.
	maxWork = 1 << 23
	// maxOperators bounds one expression after inlining.
	maxOperators = 1 << 16
	// maxNesting bounds how deep an expression of the document nests; deeper
	// ones are computed in pieces, through variables. simple_switch's parser
	// of JSON ends at 1000 levels, of which an operator takes two.
	maxNesting = 128
	// maxKeysets bounds what the ranges of one case of a select become.
	maxKeysets = 1 << 16
)

// What some things cost, in the steps of maxWork.
const (
	costCall     = 32 // of anything that is inlined
	costVariable = 8
	costStmt     = 4
)

// spend counts n steps of work.
func (l *lowerer) spend(n int) {
	if l.work += n; l.work > maxWork {
		l.unsupported(l.at, "a program that takes more than %d steps to lower: calls, copies of structs or the like multiply here", maxWork)
	}
}

// bounded refuses an expression that has grown too large, and lets a variable
// hold one that nests too deep.
func (l *lowerer) bounded(x *ex, at syntax.Node) *ex {
	if x.size > maxOperators {
		l.unsupported(at, "an expression that has more than %d operators once its calls are inlined", maxOperators)
	}
	if x.depth > maxNesting && x.st.width > 0 && !x.st.varbit {
		return l.settled(x)
	}
	return x
}
