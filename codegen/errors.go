package codegen

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// ErrUnknown is wrapped by errors about unknown names of schemes, blocks and parameters.
var ErrUnknown = errors.New("unknown name")

// An unknownError is an unknown name with similar known names.
type unknownError struct {
	what, name string
	have, near []string
}

func (e *unknownError) Error() string { return fmt.Sprintf("there is no %s %q", e.what, e.name) }
func (e *unknownError) Unwrap() error { return ErrUnknown }

// Hint suggests how to correct the error.
func (e *unknownError) Hint() string {
	const few = 30 // number of names that fit on a line
	switch {
	case len(e.near) > 0:
		return "did you mean " + strings.Join(e.near, " or ") + "?"
	case 0 < len(e.have) && len(e.have) <= few:
		return "there are " + strings.Join(e.have, ", ")
	}
	return ""
}

// unknown returns the error about a name that is not in have.
func unknown(what, name string, have []string) error {
	return &unknownError{what, name, have, nearest(name, have)}
}

// near is unknown with the suggestion on the same line, for lists of errors.
func near(what, name string, have []string) error {
	return fmt.Errorf("there is no %s %q%s", what, name, plain.Meant(name, have))
}

// nearest returns up to three names that are similar to a misspelled name, closest
// first.
func nearest(name string, have []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var list []candidate
	for _, h := range have {
		d := plain.Distance(strings.ToLower(name), h)
		if d <= max(2, len(name)/3) || len(name) > 2 && strings.Contains(h, name) {
			list = append(list, candidate{h, d})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	return lists.Map(list[:min(3, len(list))], func(c candidate) string { return c.name })
}
