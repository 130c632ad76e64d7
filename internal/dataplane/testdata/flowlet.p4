// Flowlet switching: a gap in a flow lets it choose a new path at random.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> len;
    bit<16> id; bit<3> flags; bit<13> frag;
    bit<8> ttl; bit<8> proto; bit<16> csum;
    bit<32> src; bit<32> dst;
}
header ports_t { bit<16> src; bit<16> dst; }
struct headers_t { ethernet_t eth; ipv4_t ip; ports_t l4; }
struct meta_t { bit<16> flow; bit<48> last; bit<16> path; bit<16> group; bit<16> size; }

parser P(packet_in pkt, out headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    state start {
        pkt.extract(h.eth);
        transition select(h.eth.type) { 0x0800: ip; default: accept; }
    }
    state ip {
        pkt.extract(h.ip);
        transition select(h.ip.proto) { 6: l4; 17: l4; default: accept; }
    }
    state l4 { pkt.extract(h.l4); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    register<bit<48>>(65536) flow_time;
    register<bit<16>>(65536) flow_path;

    action drop() { mark_to_drop(sm); }
    action group(bit<16> id, bit<16> n) { m.group = id; m.size = n; }
    table routes {
        key = { h.ip.dst: lpm; }
        actions = { group; drop; }
        default_action = drop();
        size = 1024;
    }
    action forward(bit<9> port, bit<48> mac) {
        sm.egress_spec = port;
        h.eth.dst = mac;
        h.ip.ttl = h.ip.ttl - 1;
    }
    table members {
        key = { m.group: exact; m.path: exact; }
        actions = { forward; drop; }
        default_action = drop();
        size = 1024;
    }
    apply {
        if (!h.ip.isValid()) { drop(); return; }
        if (routes.apply().hit) {
            hash(m.flow, HashAlgorithm.crc16, 16w0,
                 { h.ip.src, h.ip.dst, h.ip.proto, h.l4.src, h.l4.dst }, 32w65536);
            flow_time.read(m.last, (bit<32>) m.flow);
            flow_path.read(m.path, (bit<32>) m.flow);
            if (sm.ingress_global_timestamp - m.last > 500) {
                random(m.path, 0, m.size - 1);
                flow_path.write((bit<32>) m.flow, m.path);
            }
            flow_time.write((bit<32>) m.flow, sm.ingress_global_timestamp);
            members.apply();
        }
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t h, inout meta_t m) {
    apply {
        update_checksum(h.ip.isValid(),
            { h.ip.version, h.ip.ihl, h.ip.tos, h.ip.len, h.ip.id, h.ip.flags, h.ip.frag,
              h.ip.ttl, h.ip.proto, h.ip.src, h.ip.dst }, h.ip.csum, HashAlgorithm.csum16);
    }
}
control D(packet_out pkt, in headers_t h) { apply { pkt.emit(h.eth); pkt.emit(h.ip); pkt.emit(h.l4); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
