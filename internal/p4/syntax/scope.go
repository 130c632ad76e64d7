package syntax

// P4 cannot be parsed without knowing which names are types: (a) - b casts if a is a
// type and subtracts if it is not, and a < b begins a list of type arguments or a
// comparison. The parser records which of the names declared so far are types, and
// leaves the rest to the checker.

// A symKind is the parser's classification of a name.
type symKind uint8

const (
	symNone    symKind = iota // not declared
	symOther                  // a value, action, table, state or function
	symGeneric                // a function with type parameters
	symType
)

// A scope is the table of the visible names. Leaving a block removes the names that
// it declared.
type scope struct {
	kinds map[string]symKind
	undo  []symbol
	open  []int // for each open block, the length of undo at its start
}

// A symbol is a name with its kind before a declaration hid it.
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
