package generator

import (
	"github.com/p4lb/p4lb/tools/differential/internal/source"
)

// externs are the extern objects that statements may use.
type externs struct{}

func (g *generator) declareExterns(c *source.Callable) {}

func (g *generator) externStatement(b *source.Block) { g.assign(b) }

func (g *generator) checksums() {}
