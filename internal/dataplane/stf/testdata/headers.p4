// Stacks, unions, variable-length headers, lookahead, verify, value sets.
#include <core.p4>
#include <v1model.p4>

error { BadMark }

header cmd_t { bit<8> what; bit<8> n; bit<8> marks; }
header label_t { bit<20> label; bit<3> exp; bit<1> bos; bit<8> ttl; }
header short_t { bit<8> kind; bit<8> v; }
header long_t { bit<8> kind; bit<24> v; }
header_union opt_t { short_t s; long_t l; }
header var_t { bit<8> len; varbit<128> data; bit<8> tail; }
header result_t { bit<32> err; bit<8> last; bit<8> flags; bit<16> peek; }
struct headers_t { result_t r; cmd_t c; label_t[4] labels; opt_t[3] opts; var_t v; }
struct meta_t { bit<16> peek; }

parser P(packet_in pkt, out headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    value_set<bit<8>>(4) extra;
    state start {
        pkt.extract(h.c);
        verify(h.c.marks != 0xff, error.BadMark);
        m.peek = pkt.lookahead<bit<16>>();
        transition select(h.c.what[3:0]) { 0 &&& 1: labels; default: opts; }
    }
    state labels {
        pkt.extract(h.labels.next);
        transition select(h.labels.last.bos) { 0: labels; default: opts; }
    }
    state opts {
        transition select(pkt.lookahead<bit<8>>()) { 1: short; 2: long; 3: var; extra: accept; default: accept; }
    }
    state short { pkt.extract(h.opts.next.s); transition opts; }
    state long { pkt.extract(h.opts.next.l); transition opts; }
    state var {
        pkt.advance(8);
        pkt.extract(h.v, (bit<32>) (pkt.lookahead<bit<8>>()[4:0] ++ 3w0));
        transition accept;
    }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    apply {
        h.r.setValid();
        h.r.peek = m.peek;
        if (sm.parser_error == error.NoError) { h.r.err = 0; }
        else if (sm.parser_error == error.PacketTooShort) { h.r.err = 1; }
        else if (sm.parser_error == error.StackOutOfBounds) { h.r.err = 3; }
        else if (sm.parser_error == error.HeaderTooShort) { h.r.err = 4; }
        else if (sm.parser_error == error.BadMark) { h.r.err = 99; }
        else { h.r.err = 77; }
        sm.egress_spec = 1;
        if (h.c.isValid()) {
            if (h.c.n == 1) { h.labels.push_front(1); h.labels[0].setValid(); h.labels[0].label = 0xabcde; h.labels[0].bos = 0; h.labels[0].ttl = 9; h.labels[0].exp = 5; }
            if (h.c.n == 2) { h.labels.pop_front(1); }
            if (h.c.n == 3) { h.labels.push_front(2); }
            if (h.c.n == 4) { h.labels.pop_front(3); }
            if (h.c.n == 5) { h.labels[1] = h.labels[0]; }
            if (h.c.n == 6) { h.opts[0].s.setInvalid(); }
            if (h.c.n == 7) { h.opts[1].l.setValid(); h.opts[1].l.kind = 2; h.opts[1].l.v = 0x112233; }
            if (h.c.n == 8) { h.labels[2] = { 1, 2, 1, 3 }; }
            if (h.c.n == 9) { h.v.setInvalid(); }
        }
        if (h.labels[0].isValid()) { h.r.flags = h.r.flags | 1; }
        if (h.labels[3].isValid()) { h.r.flags = h.r.flags | 2; }
        if (h.opts[0].s.isValid()) { h.r.flags = h.r.flags | 4; }
        if (h.opts[0].l.isValid()) { h.r.flags = h.r.flags | 8; }
        if (h.labels[0] == h.labels[1]) { h.r.flags = h.r.flags | 16; }
        if (h.v.isValid()) { h.r.flags = h.r.flags | 32; h.r.last = h.v.tail; }
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out pkt, in headers_t h) { apply { pkt.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
