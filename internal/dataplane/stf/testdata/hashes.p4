// All hash algorithms, registers narrow and wide, counters.
#include <core.p4>
#include <v1model.p4>

header in_t { bit<8> a; bit<16> b; bit<4> c; bit<12> d; bit<48> e; bit<128> f; bit<8> index; }
header out_t { bit<16> crc16; bit<32> crc32; bit<16> csum; bit<16> xor16; bit<64> ident; bit<16> crc16c; bit<32> crc32c; bit<16> based; bit<128> was; bit<24> count; }
struct headers_t { in_t i; out_t o; }
struct meta_t { bit<128> wide; bit<24> narrow; }

parser P(packet_in pkt, out headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    state start { pkt.extract(h.i); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    register<bit<128>>(16) wide;
    register<bit<24>>(16) narrow;
    counter(16, CounterType.packets_and_bytes) packets;
    apply {
        if (!h.i.isValid()) { mark_to_drop(sm); exit; }
        h.o.setValid();
        hash(h.o.crc16, HashAlgorithm.crc16, 16w0, { h.i.a, h.i.b, h.i.c, h.i.d, h.i.e }, 32w65536);
        hash(h.o.crc32, HashAlgorithm.crc32, 32w0, { h.i.e, h.i.c, h.i.f }, 64w0x100000000);
        hash(h.o.csum, HashAlgorithm.csum16, 16w0, { h.i.a, h.i.b, h.i.f }, 32w65536);
        hash(h.o.xor16, HashAlgorithm.xor16, 16w0, { h.i.a, h.i.e }, 32w65536);
        hash(h.o.ident, HashAlgorithm.identity, 64w0, { h.i.e, h.i.b }, 64w0x7fffffffffffffff);
        hash(h.o.crc16c, HashAlgorithm.crc16_custom, 16w0, { h.i.a, h.i.b }, 32w65536);
        hash(h.o.crc32c, HashAlgorithm.crc32_custom, 32w0, { h.i.a, h.i.b, 8w7 }, 64w0x100000000);
        hash(h.o.based, HashAlgorithm.crc32, 16w100, { h.i.e }, 16w13);
        wide.read(m.wide, (bit<32>) h.i.index);
        h.o.was = m.wide;
        wide.write((bit<32>) h.i.index, h.i.f);
        narrow.read(m.narrow, (bit<32>) h.i.index);
        h.o.count = m.narrow;
        narrow.write((bit<32>) h.i.index, m.narrow + (bit<24>) h.i.a);
        packets.count((bit<32>) h.i.index);
        h.i.setInvalid();
        sm.egress_spec = 1;
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out pkt, in headers_t h) { apply { pkt.emit(h.i); pkt.emit(h.o); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
