// Package p4test contains helpers for tests that compile programs.
package p4test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
	"github.com/p4lb/p4lb/p4src"
)

// Check parses and checks a program called program.p4. It fails the test if there
// are errors.
func Check(t testing.TB, program []byte) (*syntax.File, *types.Info) {
	t.Helper()
	fsys := fstest.MapFS{"program.p4": {Data: program}}
	file, perrs := syntax.Parse(fsys, "program.p4", syntax.Options{Includes: p4src.Include()})
	if file == nil {
		t.Fatal(perrs)
	}
	info, errs := types.Check(file)
	if errs.Err() != nil {
		t.Fatal(errs)
	}
	return file, info
}

// FirstDifference shows the first line in which two texts differ, with the lines
// before.
func FirstDifference(got, want []byte) string {
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	i := 0
	for i < len(g) && i < len(w) && g[i] == w[i] {
		i++
	}
	show := func(lines []string) string {
		return strings.Join(lines[max(0, min(i, len(lines))-6):min(i+3, len(lines))], "\n")
	}
	return "got\n" + show(g) + "\nwant\n" + show(w)
}

// V1Model returns a program for v1model with the given locals and body of the
// ingress control, which begin on line 18.
func V1Model(ingress string) []byte { return []byte(programHead + ingress + programTail) }

const (
	programHead = `#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> f; bit<8> g; }
struct headers { h_t h; }
struct meta_t { bit<32> x; }
parser P(packet_in pkt, out headers h, inout meta_t m, inout standard_metadata_t s) { state start { pkt.extract(h.h); transition accept; } }
control Verify(inout headers h, inout meta_t m) { apply {} }
control Update(inout headers h, inout meta_t m) { apply {} }
control Deparse(packet_out pkt, in headers h) { apply { pkt.emit(h.h); } }
control Out(inout headers h, inout meta_t m, inout standard_metadata_t s) { apply {} }
action nop() {}
control Inner() {
    @name(".abs") table t { actions = { nop; } default_action = nop; }
    apply { t.apply(); }
}
control Count(in bit<32> x) { register<bit<32>>(1) r; apply { r.write(0, x); } }
control In(inout headers h, inout meta_t m, inout standard_metadata_t s) {
`
	programTail = `
}
V1Switch(P(), Verify(), In(), Out(), Update(), Deparse()) main;
`
)
