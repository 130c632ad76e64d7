package codegen_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/codegen"
)

// TestCompositions tries every combination of blocks: it compiles, or is
// refused with a reason that names two of its blocks.
func TestCompositions(t *testing.T) {
	leftToPlainRun(t)
	kinds := map[string][]string{}
	for _, b := range codegen.Blocks() {
		kinds[b.Kind] = append(kinds[b.Kind], b.Name)
	}
	made, refused := 0, 0
	for _, g := range kinds["granularity"] {
		for _, s := range kinds["signal"] {
			for _, c := range kinds["choice"] {
				row, err := codegen.Compose(g, s, c, "none")
				if err != nil {
					refused++
					checkRefusal(t, err, g, s, c)
					continue
				}
				made++
				_, text := generate(t, row, codegen.Params{})
				compile(t, row.Name, text)
				checkText(t, row.Name, text)
				again, err := codegen.Parse(row.Name)
				if err != nil {
					t.Errorf("its own name: %v", err)
				} else if again.Granularity != g || again.Signal != s || again.Choice != c {
					t.Errorf("%s is read as %v", row.Name, again)
				}
			}
		}
	}
	if made < 40 || refused < 400 {
		t.Errorf("%d combinations made, %d refused", made, refused)
	}
}

func checkRefusal(t *testing.T, err error, blocks ...string) {
	t.Helper()
	named := 0
	_, reason, _ := strings.Cut(err.Error(), ": ")
	for _, b := range blocks {
		if strings.Contains(reason, b) {
			named++
		}
	}
	if named < 1 || len(reason) < 20 {
		t.Errorf("no reason in %q", err)
	}
}

// TestComposedRow: a composition that is in the catalogue equals that row, with its
// parameters.
func TestComposedRow(t *testing.T) {
	row, err := codegen.Compose("flowlet", "behaviour", "grid", "rlb")
	if err != nil {
		t.Fatal(err)
	}
	if row.Name != "qall-flowlet+rlb" || row.Defaults["gap"] != "10ms" {
		t.Errorf("got %v", row)
	}
	if row, err = codegen.Compose("flowlet", "queue", "grid", "rlb"); err != nil || row.Name != "flowlet-queue-grid+rlb" {
		t.Errorf("got %v, %v", row, err)
	}
}

// TestRefusals checks the messages for impossible requests and their alternatives.
func TestRefusals(t *testing.T) {
	set := func(s ...string) codegen.Params {
		p := codegen.Params{Set: map[string]string{}}
		for _, s := range s {
			name, value, _ := strings.Cut(s, "=")
			p.Set[name] = value
		}
		return p
	}
	for _, c := range []struct {
		scheme string
		params codegen.Params
		want   string // expected in the message
		hint   string
	}{
		{scheme: "letfow", want: `there is no scheme "letfow"`, hint: "did you mean letflow?"},
		{scheme: "qall-poly11", want: `there is no scheme "qall-poly11"`, hint: "did you mean qall-poly1"},
		{scheme: "zzzzzz", want: `there is no scheme "zzzzzz"`},
		{scheme: "drill+rbl", want: `there is no guard "rbl"`, hint: "did you mean rlb?"},
		{scheme: "drill+none", want: `there is no guard "none"`},
		{scheme: "packet-queue-uniform", want: "signal queue is not used"},
		{scheme: "letflow", params: set("gab=1ms"), want: `there is no parameter "gab"`, hint: "did you mean gap?"},
		{scheme: "letflow", params: set("quantum=1ms"), want: `there is no parameter "quantum"`, hint: "there are "},
		{scheme: "letflow", params: set("gap=1KB"), want: `gap="1KB": want a time such as 1ms`},
		{scheme: "letflow", params: set("gap=5"), want: `gap="5": want a time such as 1ms`},
		{scheme: "letflow", params: set("gap=0us"), want: "gap=0us: want at least 1us"},
		{scheme: "letflow", params: set("gap=101s"), want: "gap=101s: want at most 100s"},
		{scheme: "letflow", params: set("gap=1500ns"), want: "the switch's clock counts in us"},
		{scheme: "letflow+rlb", params: set("predict=guess"), want: "predict=guess: want derivative or threshold"},
		{scheme: "letflow", params: codegen.Params{Ports: 17}, want: "17 paths: want 2 to 16"},
		{scheme: "letflow", params: codegen.Params{Ports: 1}, want: "1 paths: want 2 to 16"},
		{scheme: "letflow", params: codegen.Params{Role: "spin"}, want: `there is no role "spin"`, hint: "did you mean spine?"},
		{scheme: "letflow", params: codegen.Params{StatePath: "share"}, want: `there is no state path "share"`, hint: "did you mean shared?"},
		{scheme: "letflow", params: codegen.Params{Runtime: true}, want: "letflow has no polynomial"},
		{scheme: "letflow", params: codegen.Params{Printed: true}, want: "letflow has none that could be kept"},
		{scheme: "qall-poly2", params: codegen.Params{Printed: true}, want: "qall-poly2 has none that could be kept, a polynomial of degree 3 has"},
		{scheme: "qall-poly3", params: codegen.Params{Printed: true, Runtime: true}, want: "the coefficients are not the paper's"},
		{scheme: "qall-pkt", params: codegen.Params{MaxPort: 256}, want: "port 256: QALL's report (Fig. 6) has 8 bits"},
		{scheme: "qall-poly2", params: codegen.Params{MaxPort: 300}, want: "port 300: QALL's report (Fig. 6) has 8 bits"},
		{scheme: "qall-pkt", params: set("tau=9s"), want: "L*(tau - T)*V reaches 4590000000, more than the 4294967295 of 32 bits"},
		{scheme: "qall-pkt", params: set("tau=5s"), want: "4*W reaches 10200000000, more than the 4294967295 of 32 bits"},
		{scheme: "drill+rlb", params: set("link=100G", "incast=64"), want: "[d*C, Q_PFC - d*C*(n-1)] is [25000, -1312856] bytes with d=2us, C=100Gbps, n=64, Q_PFC=256KiB; give one, such as qth=25000B"},
		{scheme: "drill+rlb", params: set("qth=256KiB"), want: "want less than Q_PFC, which is 256KiB"},
	} {
		row, err := codegen.Parse(c.scheme)
		if err == nil {
			_, err = codegen.Generate(row, c.params)
		}
		if err == nil {
			t.Errorf("%s %+v is not refused", c.scheme, c.params)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %q, want %q", c.scheme, err, c.want)
		}
		var h interface{ Hint() string }
		hint := ""
		if errors.As(err, &h) {
			hint = h.Hint()
		}
		if !strings.HasPrefix(hint, c.hint) {
			t.Errorf("%s: got the hint %q, want %q", c.scheme, hint, c.hint)
		}
	}
}

// TestQThBoundary: the largest accepted incast leaves a range for Q_th, the next one does
// not: n*d*C <= Q_PFC, which is 26 senders at 40 Gb/s and 2 us.
func TestQThBoundary(t *testing.T) {
	row, err := codegen.Lookup("letflow+rlb")
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[string]bool{"25": true, "26": true, "27": false} {
		_, err := codegen.Generate(row, codegen.Params{Set: map[string]string{"incast": n}})
		if got := err == nil; got != want {
			t.Errorf("n=%s: %v", n, err)
		}
	}
}
