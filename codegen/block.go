package codegen

// A kind is one of the four questions that a scheme answers, or a part, which
// other blocks are built on.
type kind string

const (
	granularity kind = "granularity" // how much traffic is decided about at once
	signal      kind = "signal"      // what is known about the paths
	choice      kind = "choice"      // how one of them is taken
	guard       kind = "guard"       // what may overrule that
	part        kind = "part"
)

// kinds are those that a row names.
var kinds = []kind{granularity, signal, choice, guard}

// A block is one building block: what the catalogue knows of it. Its text is
// the template of its kind and name.
type block struct {
	kind  kind
	name  string
	about string // one line; "" for what users do not name

	parts  []string // blocks of kind part that it is built on
	recirc []string // further ones where state comes back by recirculation
	params []string

	defaults map[string]string // of parameters, where the block changes them

	attributes []attribute // what it wants to be told of each candidate
	textless   bool        // it has no template

	// A choice or a granularity reads something about the paths; a signal
	// gives several things.
	reads string
	gives []string

	on  []string // the granularities that a choice makes sense with
	why string   // and the reason

	holds   string // the register that keeps the path of a flow
	sees    bool   // a choice that sees to the flow itself, whatever the granularity
	canHash bool   // a choice that can take its draw from the 5-tuple
	fixed   bool   // a signal that stays as it is, so that such a draw stays too
	port    bool   // a signal that is looked up by port, not by path

	// A signal that exists between the edges of the network alone: elsewhere
	// switches hash, and do what these parts do.
	edge    bool
	transit []string

	load, symbol string // the register of a signal that watches utilisation

	cannot string // why the architecture has none, and what comes nearest

	check func(*view) error // proves the arithmetic, or says what is wrong
}

// An attribute is something that the table candidates says of each path.
type attribute struct{ Name, Type, Meaning string }

// lookup finds a block.
func lookup(k kind, name string) *block {
	for _, b := range blocks {
		if b.kind == k && b.name == name {
			return b
		}
	}
	return nil
}

// names lists the blocks of a kind that users can name.
func names(k kind) []string {
	var list []string
	for _, b := range blocks {
		if b.kind == k && b.about != "" {
			list = append(list, b.name)
		}
	}
	return list
}

// things says what blocks read and give.
var things = map[string]string{
	"cost":    "the load of each path",
	"weight":  "a weight for each path",
	"hop":     "the best next hop",
	"delay":   "the delay of each path",
	"waiting": "the queueing delay of each path",
	"classes": "the delay and the marks of each path",
	"echo":    "the congestion that receivers echo",
}
