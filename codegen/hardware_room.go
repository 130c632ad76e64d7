package codegen

import (
	"errors"
	"fmt"
	"slices"
)

// A room is what an architecture has room for of a row, where that is less than
// the blocks allow: as the compiler found, see testdata/oracle/tofino.tsv.
type room struct {
	paths   int    // of the largest group; 0: there is no program
	lacks   string // what runs out
	nearest string // a row that does exist, if no size does
}

// rooms are those of the catalogue, by architecture and row.
var rooms = map[string]map[string]room{
	"tna": {
		"wcmp":       {8, "containers (PHV)", ""},
		"drill":      {8, "containers (PHV)", ""},
		"conga":      {5, "stages: 13 of 12", ""},
		"clove":      {8, "stages: 15 of 12", ""},
		"qdaps":      {4, "stages: 13 of 12", ""},
		"qdaps-star": {0, "containers (PHV)", "qdaps, or t2na"},
		"hermes":     {0, "stages: 15 of 12 even for 2 paths", "clove, or t2na"},

		"letflow+rlb": {8, "containers (PHV)", ""},
		"presto+rlb":  {0, "stages: 14 of 12", "letflow+rlb, or t2na"},
		"drill+rlb":   {0, "stages: 16 of 12 even for 2 paths", "letflow+rlb, or t2na"},
		"hermes+rlb":  {0, "stages: 22 of 12 even for 2 paths", "letflow+rlb, or t2na"},

		"letflow+rlb-star": {0, "comparisons in a stateful ALU: 3 of 2", "letflow+rlb, or t2na"},
		"presto+rlb-star":  {0, "comparisons in a stateful ALU: 3 of 2", "letflow+rlb, or t2na"},
		"drill+rlb-star":   {0, "comparisons in a stateful ALU: 3 of 2", "letflow+rlb, or t2na"},
		"hermes+rlb-star":  {0, "comparisons in a stateful ALU: 3 of 2", "letflow+rlb, or t2na"},
	},
	"t2na": {
		"wcmp":       {8, "containers (PHV)", ""},
		"drill":      {8, "containers (PHV)", ""},
		"conga":      {6, "containers (PHV)", ""},
		"hermes":     {5, "containers (PHV)", ""},
		"clove":      {8, "containers (PHV)", ""},
		"qdaps":      {8, "containers (PHV)", ""},
		"qdaps-star": {4, "containers (PHV)", ""},

		"letflow+rlb": {8, "containers (PHV)", ""},
		"presto+rlb":  {8, "containers (PHV)", ""},
		"drill+rlb":   {8, "containers (PHV)", ""},
		"hermes+rlb":  {4, "containers (PHV)", ""},

		"letflow+rlb-star": {6, "containers (PHV)", ""},
		"presto+rlb-star":  {4, "containers (PHV)", ""},
		"drill+rlb-star":   {4, "containers (PHV)", ""},
		"hermes+rlb-star":  {4, "containers (PHV)", ""},
	},
}

// haunted has queue lengths come by the ghost thread instead of egress.
func (a *architecture) haunted(r Row) error {
	switch {
	case a.name != tofino2.name:
		return errors.New("state path ghost: the ghost thread is Tofino 2's, of t2na; want recirc")
	case r.Signal != "queue" || r.Guard != "none":
		return fmt.Errorf("state path ghost: it knows queue lengths and nothing else that %s asks for, as drill and qdaps do; want recirc", r.Name)
	}
	a.blocks = slices.Clone(a.blocks)
	for i, b := range a.blocks {
		if b.kind == signal && b.name == "queue" {
			queue := *b
			queue.parts = []string{"ghost"}
			a.blocks[i] = &queue
		}
	}
	return nil
}

// hasRoom says what runs out.
func (a *architecture) hasRoom(r Row, paths int) error {
	lack, ok := rooms[a.name][r.Name]
	switch {
	case !ok || paths <= lack.paths:
		return nil
	case lack.paths == 0:
		return fmt.Errorf("no %s for %s: not enough %s; the nearest is %s", r.Name, a.name, lack.lacks, lack.nearest)
	}
	return fmt.Errorf("no %s for %s with %d paths: not enough %s; want at most %d", r.Name, a.name, paths, lack.lacks, lack.paths)
}
