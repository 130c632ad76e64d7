package codegen

import "fmt"

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
		"conga":      {4, "stages: 14 for 8 paths, of 12", ""},
		"qdaps":      {4, "containers (PHV)", ""},
		"clove":      {8, "containers (PHV)", ""},
		"qdaps-star": {0, "stages: 16, of 12", "qdaps, or t2na"},
		"hermes":     {0, "stages: 16, of 12, and comparisons of a stateful ALU: 3, of 2", "clove, or t2na"},

		"letflow+rlb": {8, "containers (PHV)", ""},
		"presto+rlb":  {0, "stages: 14, of 12", "letflow+rlb, or t2na"},
		"drill+rlb":   {0, "stages: 12 and 5 that cannot share them", "letflow+rlb, or t2na"},
		"hermes+rlb":  {0, "stages: 17, of 12", "letflow+rlb, or t2na"},

		"letflow+rlb-star": {0, "stages: 14, of 12", "letflow+rlb, or t2na"},
		"presto+rlb-star":  {0, "stages: 17, of 12", "letflow+rlb, or t2na"},
		"drill+rlb-star":   {0, "stages: 18, of 12", "letflow+rlb, or t2na"},
		"hermes+rlb-star":  {0, "stages: 17, of 12", "letflow+rlb, or t2na"},
	},
	"t2na": {
		"wcmp":        {8, "containers (PHV)", ""},
		"drill":       {8, "containers (PHV)", ""},
		"conga":       {4, "containers (PHV)", ""},
		"qdaps":       {8, "containers (PHV)", ""},
		"letflow+rlb": {8, "containers (PHV)", ""},
		"presto+rlb":  {8, "containers (PHV)", ""},
	},
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
