// Clones, multicast, resubmit, recirculate, truncate, drop, and what the
// metadata says afterwards.
#include <core.p4>
#include <v1model.p4>

header cmd_t { bit<8> what; bit<8> n; bit<16> mark; }
header trace_t { bit<8> type; bit<16> port; bit<16> rid; bit<16> len; bit<16> mark; bit<8> kept; bit<8> lost; bit<8> more; }
struct headers_t { trace_t[6] t; cmd_t c; }
struct meta_t { @field_list(1, 2) bit<8> kept; bit<8> lost; @field_list(2) bit<8> more; }

parser P(packet_in pkt, out headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    state start {
        m.more = m.more + 16;
        transition select(pkt.lookahead<bit<8>>()) { 0xee: traces; default: cmd; }
    }
    state traces {
        pkt.extract(h.t.next);
        pkt.advance(0);
        transition select(pkt.lookahead<bit<8>>()) { 0xee: traces; default: cmd; }
    }
    state cmd { pkt.extract(h.c); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    apply {
        m.lost = m.lost + 1;
        sm.egress_spec = 1;
        if (!h.c.isValid()) { mark_to_drop(sm); }
        else if (sm.instance_type == 0) {
            m.kept = 0x33;
            m.more = m.more + 1;
            if (h.c.what == 1) { clone_preserving_field_list(CloneType.I2E, 5, 1); }
            if (h.c.what == 2) { clone(CloneType.I2E, 5); mark_to_drop(sm); }
            if (h.c.what == 3) { resubmit_preserving_field_list(2); }
            if (h.c.what == 4) { sm.mcast_grp = (bit<16>) h.c.n; }
            if (h.c.what == 5) { clone_preserving_field_list(CloneType.I2E, 6, 2); }
            if (h.c.what == 6) { truncate(20); }
            if (h.c.what == 7) { sm.mcast_grp = 1; truncate(12); }
            if (h.c.what == 8) { clone(CloneType.I2E, 99); }
            if (h.c.what == 9) { mark_to_drop(sm); resubmit_preserving_field_list(1); }
            if (h.c.what == 20) { clone_preserving_field_list(CloneType.I2E, 5, 2); exit; }
        } else if (sm.instance_type == 6) {
            h.c.mark = 0x6666;
        }
        h.c.mark = h.c.mark + 1;
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    apply {
        h.t.push_front(1);
        h.t[0].setValid();
        h.t[0].type = 0xee;
        h.t[0].port = (bit<16>) sm.egress_port;
        h.t[0].rid = sm.egress_rid;
        h.t[0].len = (bit<16>) sm.packet_length;
        h.t[0].mark = (bit<16>) sm.instance_type;
        h.t[0].kept = m.kept;
        h.t[0].lost = m.lost;
        h.t[0].more = m.more;
        if (h.c.isValid() && !h.t[1].isValid()) {
            if (sm.instance_type == 0) {
                if (h.c.what == 10) { clone_preserving_field_list(CloneType.E2E, 5, 1); }
                if (h.c.what == 11) { clone_preserving_field_list(CloneType.E2E, 6, 2); mark_to_drop(sm); }
                if (h.c.what == 12) { recirculate_preserving_field_list(2); }
                if (h.c.what == 13) { truncate(10); recirculate_preserving_field_list(1); }
                if (h.c.what == 14) { truncate(9); }
                if (h.c.what == 15) { mark_to_drop(sm); recirculate_preserving_field_list(1); }
                if (h.c.what == 16) { clone(CloneType.E2E, 5); truncate(14); }
                if (h.c.what == 17) { h.c.setInvalid(); h.t[1].setValid(); h.t[1].type = 0xee; clone(CloneType.E2E, 5); }
            }
        }
        m.kept = m.kept + 1;
    }
}
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out pkt, in headers_t h) { apply { pkt.emit(h.t); pkt.emit(h.c); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
