package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// Diagnose prints compiler errors, including warnings between them. It returns
// other errors unchanged.
func (c *Console) Diagnose(err error) error {
	var list syntax.Errors
	if !errors.As(err, &list) {
		return err
	}
	for _, e := range list {
		c.diagnostic(e)
	}
	return ErrReported
}

// Warn prints warnings, or prints them as errors and fails if strict is set.
func (c *Console) Warn(list syntax.Errors, strict bool) error {
	for _, e := range list {
		if strict {
			e = &syntax.Error{Pos: e.Pos, Msg: e.Msg, Class: e.Class}
		}
		c.diagnostic(e)
	}
	if strict && len(list) > 0 {
		return ErrReported
	}
	return nil
}

// diagnostic prints one compiler message: with the source line and a caret
// below the position, or as a line of JSON.
func (c *Console) diagnostic(e *syntax.Error) {
	switch {
	case e.Warning && c.Quiet:
	case c.LogJSON:
		say := c.Log.Error
		if e.Warning {
			say = c.Log.Warn
		}
		facts := []any{"file", e.Pos.File(), "line", e.Pos.Line(), "col", e.Pos.Col()}
		if e.Class != syntax.Wrong {
			facts = append(facts, "class", e.Class)
		}
		say(e.Msg, facts...)
	case !e.Pos.IsKnown() && e.Warning:
		c.Warning("%s", e.Msg)
	case !e.Pos.IsKnown():
		fmt.Fprintf(c.Err, "%s %s\n", c.Paint.red("error:"), tame(e.Msg))
	default:
		var b strings.Builder
		syntax.Errors{e}.Print(&b)
		head, rest, _ := strings.Cut(tame(b.String()), "\n")
		fmt.Fprintf(c.Err, "%s\n%s", c.Paint.Bold(head), rest)
	}
}
