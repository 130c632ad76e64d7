// Every operator, on fields of 8 to 128 bits, signed and not: the results
// replace the operands.
#include <core.p4>
#include <v1model.p4>

header in_t { bit<8> op; bit<8> a8; bit<8> b8; bit<16> a16; bit<16> b16; bit<32> a32; bit<32> b32; bit<64> a64; bit<64> b64; bit<128> a128; bit<128> b128; int<8> s8; int<8> t8; int<32> s32; int<32> t32; int<64> s64; int<64> t64; }
header out_t { bit<8> r8; bit<16> r16; bit<32> r32; bit<64> r64; bit<128> r128; int<8> q8; int<32> q32; int<64> q64; bit<8> flags; }
struct headers_t { in_t i; out_t o; }
struct meta_t { }

parser P(packet_in pkt, out headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    state start { pkt.extract(h.i); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    action add() { h.o.r8 = h.i.a8 + h.i.b8; h.o.r16 = h.i.a16 + h.i.b16; h.o.r32 = h.i.a32 + h.i.b32; h.o.r64 = h.i.a64 + h.i.b64; h.o.r128 = h.i.a128 + h.i.b128; h.o.q8 = h.i.s8 + h.i.t8; h.o.q32 = h.i.s32 + h.i.t32; h.o.q64 = h.i.s64 + h.i.t64; }
    action sub() { h.o.r8 = h.i.a8 - h.i.b8; h.o.r16 = h.i.a16 - h.i.b16; h.o.r32 = h.i.a32 - h.i.b32; h.o.r64 = h.i.a64 - h.i.b64; h.o.r128 = h.i.a128 - h.i.b128; h.o.q8 = h.i.s8 - h.i.t8; h.o.q32 = h.i.s32 - h.i.t32; h.o.q64 = h.i.s64 - h.i.t64; }
    action mul() { h.o.r8 = h.i.a8 * h.i.b8; h.o.r16 = h.i.a16 * h.i.b16; h.o.r32 = h.i.a32 * h.i.b32; h.o.r64 = h.i.a64 * h.i.b64; h.o.r128 = h.i.a128 * h.i.b128; h.o.q8 = h.i.s8 * h.i.t8; h.o.q32 = h.i.s32 * h.i.t32; h.o.q64 = h.i.s64 * h.i.t64; }
    action bits() { h.o.r8 = h.i.a8 & h.i.b8; h.o.r16 = h.i.a16 | h.i.b16; h.o.r32 = h.i.a32 ^ h.i.b32; h.o.r64 = ~h.i.a64; h.o.r128 = (h.i.a128 & ~h.i.b128) | 128w5; h.o.q8 = h.i.s8 & h.i.t8; h.o.q32 = h.i.s32 ^ h.i.t32; h.o.q64 = ~h.i.s64; }
    action left() { h.o.r8 = h.i.a8 << 3; h.o.r16 = h.i.a16 << h.i.b8; h.o.r32 = h.i.a32 << h.i.b8; h.o.r64 = h.i.a64 << h.i.b8; h.o.r128 = h.i.a128 << h.i.b8; h.o.q8 = h.i.s8 << 2; h.o.q32 = h.i.s32 << h.i.b8; h.o.q64 = h.i.s64 << 7; }
    action right() { h.o.r8 = h.i.a8 >> 3; h.o.r16 = h.i.a16 >> h.i.b8; h.o.r32 = h.i.a32 >> h.i.b8; h.o.r64 = h.i.a64 >> h.i.b8; h.o.r128 = h.i.a128 >> h.i.b8; h.o.q8 = h.i.s8 >> 2; h.o.q32 = h.i.s32 >> h.i.b8; h.o.q64 = h.i.s64 >> 7; }
    action sat_add() { h.o.r8 = h.i.a8 |+| h.i.b8; h.o.r16 = h.i.a16 |+| h.i.b16; h.o.r32 = h.i.a32 |+| h.i.b32; h.o.r64 = h.i.a64 |+| h.i.b64; h.o.r128 = h.i.a128 |+| h.i.b128; h.o.q8 = h.i.s8 |+| h.i.t8; h.o.q32 = h.i.s32 |+| h.i.t32; h.o.q64 = h.i.s64 |+| h.i.t64; }
    action sat_sub() { h.o.r8 = h.i.a8 |-| h.i.b8; h.o.r16 = h.i.a16 |-| h.i.b16; h.o.r32 = h.i.a32 |-| h.i.b32; h.o.r64 = h.i.a64 |-| h.i.b64; h.o.r128 = h.i.a128 |-| h.i.b128; h.o.q8 = h.i.s8 |-| h.i.t8; h.o.q32 = h.i.s32 |-| h.i.t32; h.o.q64 = h.i.s64 |-| h.i.t64; }
    action cast() { h.o.r8 = (bit<8>) h.i.a16; h.o.r16 = (bit<16>) (h.i.a8 ++ h.i.b8); h.o.r32 = (bit<32>) h.i.s32; h.o.r64 = h.i.a128[95:32]; h.o.r128 = (bit<128>) h.i.a64 * (bit<128>) h.i.b64; h.o.q8 = (int<8>) h.i.a8; h.o.q32 = (int<32>) h.i.s8; h.o.q64 = (int<64>) (h.i.s32 - (int<32>) h.i.t8); }
    action choose() { h.o.r8 = h.i.a8 > h.i.b8 ? h.i.a8 : h.i.b8; h.o.r16 = h.i.a16 == h.i.b16 ? 16w1 : 16w2; h.o.r32 = -h.i.a32; h.o.r64 = h.i.a128 < h.i.b128 ? h.i.a64 : h.i.b64; h.o.r128 = h.i.a8 == 0 ? h.i.a128 : h.i.b128; h.o.q8 = h.i.s8 < h.i.t8 ? h.i.s8 : h.i.t8; h.o.q32 = -h.i.s32; h.o.q64 = h.i.s64 < 0 ? -h.i.s64 : h.i.s64; }
    table ops {
        key = { h.i.op: exact; }
        actions = { add; sub; mul; bits; left; right; sat_add; sat_sub; cast; choose; NoAction; }
        const entries = { 0: add(); 1: sub(); 2: mul(); 3: bits(); 4: left(); 5: right(); 6: sat_add(); 7: sat_sub(); 8: cast(); 9: choose(); }
    }
    action flag(bit<3> n) { h.o.flags = h.o.flags | (8w1 << n); }
    apply {
        h.o.setValid();
        ops.apply();
        if (h.i.a8 < h.i.b8) { flag(0); }
        if (h.i.a64 >= h.i.b64) { flag(1); }
        if (h.i.a128 > h.i.b128) { flag(2); }
        if (h.i.s8 <= h.i.t8) { flag(3); }
        if (h.i.s64 > h.i.t64) { flag(4); }
        if (h.i.a128 == h.i.b128 || h.i.a32 != h.i.b32 && !(h.i.s32 < 0)) { flag(5); }
        if (h.i.s64 == -1) { flag(6); }
        h.i.setInvalid();
        sm.egress_spec = 1;
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out pkt, in headers_t h) { apply { pkt.emit(h.i); pkt.emit(h.o); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
