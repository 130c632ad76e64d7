// All kinds of match, priorities, action profiles and selectors, and the ways
// on after a table.
#include <core.p4>
#include <v1model.p4>

header key_t { bit<8> e; bit<32> l; bit<16> t; bit<16> r; bit<8> o; bit<128> w; }
header res_t { bit<8> exact_; bit<8> lpm_; bit<8> tern; bit<8> rng; bit<8> opt; bit<8> wide; bit<8> sel; bit<8> hits; bit<8> mixed; }
struct headers_t { key_t k; res_t r; }
struct meta_t { }

parser P(packet_in pkt, out headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    state start { pkt.extract(h.k); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    action set_exact(bit<8> v) { h.r.exact_ = v; }
    action set_lpm(bit<8> v) { h.r.lpm_ = v; }
    action set_tern(bit<8> v) { h.r.tern = v; }
    action set_rng(bit<8> v) { h.r.rng = v; }
    action set_opt(bit<8> v) { h.r.opt = v; }
    action set_wide(bit<8> v) { h.r.wide = v; }
    action set_mixed(bit<8> v) { h.r.mixed = v; }
    action miss() { h.r.hits = h.r.hits + 16; }
    table t_exact { key = { h.k.e: exact; h.k.isValid(): exact; } actions = { set_exact; miss; } default_action = miss(); }
    table t_lpm { key = { h.k.l: lpm; h.k.e: exact; } actions = { set_lpm; miss; } default_action = miss(); }
    table t_tern { key = { h.k.t: ternary; h.k.e: ternary; } actions = { set_tern; miss; } default_action = set_tern(0xff); }
    table t_rng {
        key = { h.k.r: range; h.k.e: ternary; }
        actions = { set_rng; miss; }
        default_action = miss();
        const entries = { (0x10..0x20, 0 &&& 0): set_rng(1); (0x18..0x40, 1): set_rng(2); (0..0xffff, 7): set_rng(3); (0x1f..0x300, _): set_rng(4); }
    }
    table t_opt {
        key = { h.k.o: optional; h.k.e: optional; }
        actions = { set_opt; miss; }
        default_action = miss();
        const entries = { (1, 2): set_opt(1); (1, _): set_opt(2); (_, 3): set_opt(3); }
    }
    table t_wide { key = { h.k.w: lpm; } actions = { set_wide; miss; } default_action = miss(); }
    table t_mixed {
        key = { h.k.w: ternary; h.k.l: lpm; h.k.e: exact; h.k.t & 0xff0: ternary; }
        actions = { set_mixed; miss; }
        default_action = miss();
        const entries = {
            (128w0x100000000000000000000000000000ff &&& 128w0xf00000000000000000000000000000ff, 32w0x0a000000 &&& 32w0xff000000, 1, 0 &&& 0): set_mixed(1);
            (_, _, 1, 0x120): set_mixed(2);
            (_, 32w0x0b000000 &&& 32w0xffff0000, 2, _): set_mixed(3);
        }
    }
    apply {
        h.r.setValid();
        if (t_exact.apply().hit) { h.r.hits = h.r.hits | 1; }
        switch (t_lpm.apply().action_run) { set_lpm: { h.r.hits = h.r.hits | 2; } default: { h.r.hits = h.r.hits | 4; } }
        t_tern.apply();
        t_rng.apply();
        t_opt.apply();
        t_wide.apply();
        t_mixed.apply();
        h.k.setInvalid();
        sm.egress_spec = 1;
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out pkt, in headers_t h) { apply { pkt.emit(h.k); pkt.emit(h.r); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
