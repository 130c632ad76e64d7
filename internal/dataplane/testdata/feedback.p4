// Queue feedback: egress measures its queue and sends a report, as a clone that
// is recirculated, to the registers of ingress, which choose the path with the
// least.
#include <core.p4>
#include <v1model.p4>

const bit<32> SESSION = 7;
const bit<32> RECIRCULATED = 4;
const bit<32> EGRESS_CLONE = 2;

header report_t { bit<16> level; bit<48> gap; bit<8> trend; bit<8> port; }
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> len;
    bit<16> id; bit<3> flags; bit<13> frag;
    bit<8> ttl; bit<8> proto; bit<16> csum;
    bit<32> src; bit<32> dst;
}
struct headers_t { report_t report; ethernet_t eth; ipv4_t ip; }
struct meta_t {
    @field_list(1) bit<16> level;
    @field_list(1) bit<48> gap;
    @field_list(1) bit<8> trend;
    @field_list(1) bit<8> port;
    bit<16> group;
}

parser P(packet_in pkt, out headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    state start {
        transition select(sm.instance_type) { RECIRCULATED: report; default: ethernet; }
    }
    state report { pkt.extract(h.report); transition accept; }
    state ethernet {
        pkt.extract(h.eth);
        transition select(h.eth.type) { 0x0800: ip; default: accept; }
    }
    state ip { pkt.extract(h.ip); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    register<bit<16>>(512) level;
    register<bit<48>>(512) gap;
    bit<16> a;
    bit<16> b;
    bit<16> sum;
    bit<16> draw;

    action drop() { mark_to_drop(sm); }
    action group(bit<16> id) { m.group = id; }
    table routes {
        key = { h.ip.dst: lpm; }
        actions = { group; drop; }
        default_action = drop();
    }
    apply {
        if (h.report.isValid()) {
            level.write((bit<32>) h.report.port, h.report.level);
            gap.write((bit<32>) h.report.port, h.report.gap);
            drop();
        } else if (h.ip.isValid() && routes.apply().hit) {
            level.read(a, 1);
            level.read(b, 2);
            a = 256 - a;
            b = 256 - b;
            sum = a + b;
            random(draw, 1, sum);
            if (draw <= a) { sm.egress_spec = 1; } else { sm.egress_spec = 2; }
            h.ip.ttl = h.ip.ttl - 1;
        } else {
            drop();
        }
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    register<bit<48>>(512) seen;
    register<bit<8>>(512) before;
    bit<48> last;
    bit<8> old;
    apply {
        if (sm.instance_type == EGRESS_CLONE) {
            h.report.setValid();
            h.report.level = m.level;
            h.report.gap = m.gap;
            h.report.trend = m.trend;
            h.report.port = m.port;
            h.eth.setInvalid();
            h.ip.setInvalid();
            truncate(10);
            recirculate_preserving_field_list(2);
        } else {
            seen.read(last, (bit<32>) sm.egress_port);
            seen.write((bit<32>) sm.egress_port, sm.egress_global_timestamp);
            before.read(old, (bit<32>) sm.egress_port);
            m.level = ((bit<16>) sm.enq_qdepth) << 2;
            m.gap = sm.egress_global_timestamp - last;
            m.trend = m.level > (bit<16>) old ? 8w2 : 8w1;
            m.port = (bit<8>) sm.egress_port;
            before.write((bit<32>) sm.egress_port, (bit<8>) m.level);
            clone_preserving_field_list(CloneType.E2E, SESSION, 1);
        }
    }
}
control C(inout headers_t h, inout meta_t m) {
    apply {
        update_checksum(h.ip.isValid(),
            { h.ip.version, h.ip.ihl, h.ip.tos, h.ip.len, h.ip.id, h.ip.flags, h.ip.frag,
              h.ip.ttl, h.ip.proto, h.ip.src, h.ip.dst }, h.ip.csum, HashAlgorithm.csum16);
    }
}
control D(packet_out pkt, in headers_t h) { apply { pkt.emit(h.report); pkt.emit(h.eth); pkt.emit(h.ip); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
