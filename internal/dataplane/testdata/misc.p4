// Selectors, direct and indirect counters and meters, idle timeouts, digests,
// messages, assertions, value sets, priorities.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> what; bit<8> member; bit<16> flow; }
struct headers_t { h_t h; }
struct meta_t { bit<2> color; }
struct seen_t { bit<8> what; bit<12> flow; bit<9> port; }

parser P(packet_in pkt, out headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    value_set<bit<8>>(4) known;
    state start {
        transition select(pkt.lookahead<bit<8>>()) { known: take; default: accept; }
    }
    state take { pkt.extract(h.h); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    counter(8, CounterType.packets_and_bytes) per_kind;
    meter(8, MeterType.packets) limit;
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<2>>(MeterType.bytes) entry_limit;

    action drop() { mark_to_drop(sm); }
    action out_port(bit<9> port) { sm.egress_spec = port; }
    action_selector(HashAlgorithm.identity, 16, 16) sel;
    table paths {
        key = { h.h.what: exact; h.h.flow: selector; }
        actions = { out_port; drop; }
        implementation = sel;
    }
    action_profile(8) shared;
    table profile {
        key = { h.h.member: exact; }
        actions = { out_port; drop; NoAction; }
        implementation = shared;
    }
    action marked(bit<9> port) { sm.egress_spec = port; hits.count(); entry_limit.read(m.color); }
    table direct {
        key = { h.h.flow: ternary; }
        actions = { marked; drop; NoAction; }
        counters = hits;
        meters = entry_limit;
        support_timeout = true;
        size = 4;
    }
    action fixed_(bit<9> port) { sm.egress_spec = port; }
    table fixed {
        key = { h.h.member: exact; }
        actions = { fixed_; drop; }
        const entries = { 9: fixed_(9); }
        const default_action = drop();
    }
    apply {
        if (!h.h.isValid()) { drop(); }
        else {
            if (h.h.what == 1) { paths.apply(); }
            else if (h.h.what == 2) { profile.apply(); }
            else if (h.h.what == 3) { direct.apply(); h.h.member = (bit<8>) m.color; }
            else if (h.h.what == 4) {
                digest<seen_t>(1, { h.h.what, h.h.flow[11:0], sm.ingress_port });
                log_msg("flow {} of {}", { h.h.flow, h.h.what });
                sm.egress_spec = 1;
            } else if (h.h.what == 5) {
                assert(h.h.flow != 0);
                sm.egress_spec = 1;
            } else if (h.h.what == 6) {
                limit.execute_meter((bit<32>) h.h.member, m.color);
                h.h.member = (bit<8>) m.color;
                sm.egress_spec = 1;
            } else if (h.h.what == 7) {
                sm.priority = (bit<3>) h.h.member;
                sm.egress_spec = 1;
            } else { fixed.apply(); }
            per_kind.count((bit<32>) h.h.what);
        }
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    apply {
        if (h.h.what == 7) { h.h.flow = ((bit<16>) sm.enq_qdepth) << 8 | (bit<16>) sm.deq_qdepth; }
    }
}
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out pkt, in headers_t h) { apply { pkt.emit(h.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
