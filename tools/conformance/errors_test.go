package conformance

import (
	"slices"
	"testing"
)

func TestErrorLines(t *testing.T) {
	const said = `a.p4(3): [--Wwarn=unused] warning: 'x' is unused
const bit x = 1;
          ^
a.p4(1)
#include
^
b.p4(7): [--Werror=type-error] error: cannot
  f(x);
  ^
  ---- Originating from:
a.p4(9): because of error: this
  int f(bit);
        ^
[--Werror=overlimit] error: 1 errors encountered, aborting compilation
a.p4(11):syntax error, unexpected }
}
^
`
	want := []string{"a.p4:11", "a.p4:9", "b.p4:7"}
	if got := errorLines(said); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
