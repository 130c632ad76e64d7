package syntax

// P4 cannot be parsed without knowing which names are types. For example, (a) - b
// is a cast if a is a type, and a subtraction if it is not; the < in a < b starts
// type arguments or is a comparison. The parser records which of the declared names
// are types, and leaves everything else to the checker.

// A symKind is the parser's class of a name.
type symKind uint8

const (
	symNone    symKind = iota // not declared
	symOther                  // a value, action, table, state or function
	symGeneric                // a function with type parameters
	symType
)

// A scope is the set of visible names. Leaving a block removes the names declared
// in it.
type scope struct {
	kinds map[string]symKind
	undo  []symbol
	open  []int // for each open block, the length of undo at its start
}

// A symbol is a name and its kind before an inner declaration hid it.
type symbol struct {
	name string
	kind symKind
}

func (s *scope) declare(name *Name, kind symKind) {
	if name == nil || name.Value == "" {
		return
	}
	if len(s.open) > 0 {
		s.undo = append(s.undo, symbol{name.Value, s.kinds[name.Value]})
	}
	s.kinds[name.Value] = kind
}

func (s *scope) openScope() { s.open = append(s.open, len(s.undo)) }

func (s *scope) closeScope() {
	mark := s.open[len(s.open)-1]
	s.open = s.open[:len(s.open)-1]
	for i := len(s.undo) - 1; i >= mark; i-- {
		s.kinds[s.undo[i].name] = s.undo[i].kind
	}
	s.undo = s.undo[:mark]
}

// global returns the kind of a name at top level.
func (s *scope) global(name string) symKind {
	for _, hidden := range s.undo {
		if hidden.name == name {
			return hidden.kind
		}
	}
	return s.kinds[name]
}

// declareTypes declares type parameters.
func (s *scope) declareTypes(names []*Name) {
	for _, n := range names {
		s.declare(n, symType)
	}
}

func (s *scope) declareParams(params []*Param) {
	for _, p := range params {
		s.declare(p.Name, symOther)
	}
}
