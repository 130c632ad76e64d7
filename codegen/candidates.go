package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// candidates describes the data of all paths of a group.
type candidates struct{ *composition }

func (c *composition) candidates() candidates { return candidates{c} }

// GroupPerLeaf reports whether group ids are leaf numbers. Tables by group then
// match a prefix of the id, so that groups with the same paths share entries. It is
// not used with weights, because they depend on the leaf and users' controllers
// write them.
func (c candidates) GroupPerLeaf() bool {
	if c.row.like(signal) == "weights" {
		return false
	}
	return c.In("flood") || c.Edge() && (c.In("overlay") || c.In("pathprobe"))
}

// positive lists the signals whose weights are at least 1.
var positive = []string{"behaviour", "fitted", "queue", "marks"}

// WeightsVanish reports whether the weights of all paths may be 0.
func (c candidates) WeightsVanish() bool { return !slices.Contains(positive, c.runs.Signal) }

// All reports whether the program reads data of all paths at once.
func (c candidates) All() bool { return !c.sampling().First() || c.In("reroute") }

// Attributes returns the values that the table candidates stores for each path, or nil
// without such a table.
func (c candidates) Attributes() []attribute {
	if !c.All() {
		return nil
	}
	return slices.Concat(lists.Map(c.blocks, func(b *block) []attribute { return b.Attributes })...)
}

// Params lists the parameters of set_candidates, with line breaks.
func (c candidates) Params() string {
	var list []string
	for _, a := range c.Attributes() {
		for i := range c.N() {
			list = append(list, fmt.Sprintf("%s %s_%d", a.Type, a.Name, i))
		}
	}
	return inLines(4, list)
}

// inLines joins a list of parameters, n per line.
func inLines(n int, list []string) string {
	var lines []string
	for chunk := range slices.Chunk(list, n) {
		lines = append(lines, strings.Join(chunk, ", "))
	}
	return strings.Join(lines, ",\n")
}

// Subject declares the parameters of an action that handles a path, in addition to its
// slot.
func (c *composition) Subject() string {
	var list []string
	for _, a := range c.candidates().Attributes() {
		if a.Name != "port" || c.runs.block(signal).ByPort {
			list = append(list, "in "+a.Type+" "+a.Name)
		}
	}
	return strings.Join(list, ", ")
}

// Candidate lists the attributes of the path at slot as additional arguments of a
// call.
func (c *composition) Candidate(slot int) string {
	var b strings.Builder
	for _, a := range c.candidates().Attributes() {
		if a.Name != "port" || c.runs.block(signal).ByPort {
			fmt.Fprintf(&b, ", meta.%s_%d", a.Name, slot)
		}
	}
	return b.String()
}
