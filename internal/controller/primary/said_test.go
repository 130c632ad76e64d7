package primary

import (
	"errors"
	"testing"
)

// TestErrorsOfOthers: only texts from a server are escaped for the terminal.
func TestErrorsOfOthers(t *testing.T) {
	if err := errors.New("none of a server's\n"); cleanError(err) != err {
		t.Error("an error of ours is changed")
	}
}
