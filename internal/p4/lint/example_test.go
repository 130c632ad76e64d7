package lint_test

import (
	"fmt"
	"log"

	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/p4/lint"
)

// A program that BMv2 runs may still be too much for a chip.
func ExampleCheck() {
	p, err := p4.CompileText("s.p4", []byte(`#include <core.p4>
#include <v1model.p4>
struct headers_t {}
struct metadata_t { bit<32> a; bit<32> b; }
parser P(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { state start { transition accept; } }
control V(inout headers_t hdr, inout metadata_t meta) { apply {} }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply { meta.a = meta.a * meta.b; } }
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply {} }
control C(inout headers_t hdr, inout metadata_t meta) { apply {} }
control D(packet_out pkt, in headers_t hdr) { apply {} }
V1Switch(P(), V(), I(), E(), C(), D()) main;
`), p4.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lint.Check(p.File, p.Info, lint.Tofino1))
	// Output:
	// s.p4:7:105: multiplication: there is none at run time
}
