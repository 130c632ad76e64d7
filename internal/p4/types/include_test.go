package types

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

const pipeline = `
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t { bit<8> ttl; bit<8> proto; bit<16> sum; bit<32> src; bit<32> dst; }
struct headers { ethernet_t eth; ipv4_t ip; }
struct metadata { bit<16> flow; bit<32> seen; }

parser Parse(packet_in b, out headers h, inout metadata m, inout standard_metadata_t std) {
    state start {
        b.extract(h.eth);
        transition select(h.eth.type) { 0x800: ip; default: accept; }
    }
    state ip { b.extract(h.ip); transition accept; }
}
control Verify(inout headers h, inout metadata m) {
    apply { verify_checksum(h.ip.isValid(), { h.ip.ttl, h.ip.proto }, h.ip.sum, HashAlgorithm.csum16); }
}
control In(inout headers h, inout metadata m, inout standard_metadata_t std) {
    register<bit<32>>(1024) seen;
    action drop() { mark_to_drop(std); }
    action forward(bit<9> port) { std.egress_spec = port; h.ip.ttl = h.ip.ttl - 1; }
    table route {
        key = { h.ip.dst : lpm; }
        actions = { forward; drop; }
        default_action = drop();
    }
    apply {
        if (!h.ip.isValid()) { drop(); return; }
        hash(m.flow, HashAlgorithm.crc16, 16w0, { h.ip.src, h.ip.dst }, 32w1024);
        seen.read(m.seen, (bit<32>)m.flow);
        seen.write((bit<32>)m.flow, m.seen + 1);
        route.apply();
    }
}
control Out(inout headers h, inout metadata m, inout standard_metadata_t std) { apply { } }
control Update(inout headers h, inout metadata m) {
    apply { update_checksum(h.ip.isValid(), { h.ip.ttl, h.ip.proto }, h.ip.sum, HashAlgorithm.csum16); }
}
control Deparse(packet_out b, in headers h) { apply { b.emit(h.eth); b.emit(h.ip); } }
V1Switch(Parse(), Verify(), In(), Out(), Update(), Deparse()) main;
`

func parsePipeline(t testing.TB) *syntax.File {
	t.Helper()
	fsys := fstest.MapFS{"pipeline.p4": {Data: []byte(pipeline)}}
	file, errs := syntax.Parse(fsys, "pipeline.p4", syntax.Options{Includes: os.DirFS("../../../p4src/include")})
	if file == nil {
		t.Fatal(errs)
	}
	return file
}

// A usual program for v1model, with the library of the project, has neither
// errors nor warnings, and main knows the types of its headers.
func TestV1Model(t *testing.T) {
	info, errs := Check(parsePipeline(t))
	for _, e := range errs {
		t.Errorf("unexpected: %v", e)
	}
	main := info.Top["main"]
	if main == nil || main.Type.String() != "V1Switch<headers, metadata>" {
		t.Errorf("main: %+v", main)
	}
}

func BenchmarkCheck(b *testing.B) {
	file := parsePipeline(b)
	for b.Loop() {
		Check(file)
	}
}
