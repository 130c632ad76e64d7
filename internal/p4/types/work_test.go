package types

import (
	"testing"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// TestSpend checks that a program that exceeds the steps of checking gets one error,
// and that work after the checks, for the lowering, does not count.
func TestSpend(t *testing.T) {
	info, errs := Check(&syntax.File{})
	if info == nil || len(errs) != 0 {
		t.Fatal(errs)
	}
	c := &checker{said: map[said]bool{}, work: maxWork - 1}
	end := func(steps int) (ended bool) {
		defer func() { ended = recover() != nil }()
		c.spend(syntax.Pos{}, steps)
		return false
	}
	if end(1) || !end(1) || len(c.errs) != 1 {
		t.Errorf("at %d steps of %d: %v", c.work, maxWork, c.errs)
	}
	if c.done = true; end(1) || len(c.errs) != 1 {
		t.Errorf("after the checking: %v", c.errs)
	}
}
