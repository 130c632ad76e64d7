package main

import (
	"slices"
	"strings"

	"github.com/p4lb/p4lb/tools/differential/internal/generator"
	"github.com/p4lb/p4lb/tools/differential/internal/source"
)

// maxTries bounds the programs that shrink compiles.
const maxTries = 250

// shrink removes packets, statements and entries as long as the program still
// differs in the same way.
func shrink(c *generator.Case) { shrinkAs(c, false) }

// shrinkAs is shrink. If wrong is set, compare uses the deliberately wrong evaluator
// of the tool's own test.
func shrinkAs(c *generator.Case, wrong bool) {
	kind := kindOf(compare(c, wrong).err)
	tries := 0
	still := func() bool {
		tries++
		return tries <= maxTries && kindOf(compare(c, wrong).err) == kind
	}
	for i := len(c.Packets) - 1; i >= 0 && len(c.Packets) > 1; i-- {
		old := c.Packets
		c.Packets = slices.Delete(slices.Clone(old), i, i+1)
		if !still() {
			c.Packets = old
		}
	}
	c.Program.Drop(still)
	for again := true; again && tries < maxTries; {
		again = false
		var blocks []*source.Block
		c.Program.Blocks(func(b *source.Block) { blocks = append(blocks, b) })
		for _, b := range blocks {
			for i := len(b.Stmts) - 1; i >= 0; i-- {
				old := b.Stmts
				if old[i].Needed {
					continue
				}
				b.Stmts = slices.Delete(slices.Clone(old), i, i+1)
				if still() {
					again = true
				} else {
					b.Stmts = old
				}
			}
		}
	}
}

// bothEngines is the kind of a difference that occurs in both engines.
const bothEngines = "machine code and closures"

// kindOf classifies a difference, so that shrinking does not turn one into
// another.
func kindOf(err error) string {
	if err == nil {
		return ""
	}
	kind, _, _ := strings.Cut(err.Error(), ":")
	return kind
}
