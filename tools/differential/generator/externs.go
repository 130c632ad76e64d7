package generator

import (
	. "github.com/p4lb/p4lb/tools/differential/source"
)

// externs are the extern objects that statements may use.
type externs struct{}

func (g *generator) declareExterns(c *Callable) {}

func (g *generator) externStatement(b *Block) { g.assign(b) }

func (g *generator) checksums() {}
