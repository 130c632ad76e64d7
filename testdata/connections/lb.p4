#include <core.p4>
#include <v1model.p4>
header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header ip_t { bit<8> vi; bit<8> tos; bit<16> len; bit<32> id; bit<8> ttl; bit<8> proto; bit<16> sum; bit<32> src; bit<32> dst; }
header l4_t { bit<16> sport; bit<16> dport; }
header tcp_t { bit<96> mid; bit<16> sum; bit<16> urgent; }
struct h_t { eth_t eth; ip_t ip; l4_t l4; tcp_t tcp; }
struct new_t { bit<32> src; bit<16> sport; bit<32> dst; bit<16> dport; bit<32> server; }
struct m_t { bit<16> service; bit<16> n; bit<16> slot; bit<16> length; }
parser P(packet_in p, out h_t h, inout m_t m, inout standard_metadata_t s) {
    state start { p.extract(h.eth); transition select(h.eth.type) { 0x800: ip; default: accept; } }
    state ip { p.extract(h.ip); p.extract(h.l4); m.length = h.ip.len - 20; transition select(h.ip.proto) { 6: tcp; default: accept; } }
    state tcp { p.extract(h.tcp); transition accept; }
}
control V(inout h_t h, inout m_t m) { apply {} }
control I(inout h_t h, inout m_t m, inout standard_metadata_t s) {
    action pool(bit<16> id, bit<16> n) { m.service = id; m.n = n; }
    action server(bit<32> ip) { h.ip.dst = ip; }
    action masked(bit<32> ip) { h.ip.src = ip; }
    action hop(bit<9> port, bit<48> mac) { s.egress_spec = port; h.eth.src = h.eth.dst; h.eth.dst = mac; h.ip.ttl = h.ip.ttl - 1; }
    action drop() { mark_to_drop(s); }
    table services { key = { h.ip.dst: exact; h.l4.dport: exact; } actions = { pool; NoAction; } default_action = NoAction; size = 64; }
    table servers { key = { m.service: exact; m.slot: exact; } actions = { server; NoAction; } default_action = NoAction; size = 256; }
    table connections { key = { h.ip.src: exact; h.l4.sport: exact; h.ip.dst: exact; h.l4.dport: exact; } actions = { server; NoAction; } default_action = NoAction; size = 1024; }
    table replies { key = { h.ip.src: exact; h.l4.sport: exact; } actions = { masked; NoAction; } default_action = NoAction; size = 256; }
    table routes { key = { h.ip.dst: lpm; } actions = { hop; drop; } default_action = drop; size = 256; }
    apply {
        if (!h.ip.isValid()) { drop(); return; }
        if (services.apply().hit) {
            new_t new = { h.ip.src, h.l4.sport, h.ip.dst, h.l4.dport, 0 };
            if (!connections.apply().hit) {
            hash(m.slot, HashAlgorithm.crc16, 16w0, { h.ip.src, h.ip.dst, h.l4.sport, h.l4.dport }, m.n);
            servers.apply();
            new.server = h.ip.dst;
            digest(1, new);
            }
        } else { replies.apply(); }
        routes.apply();
    }
}
control E(inout h_t h, inout m_t m, inout standard_metadata_t s) { apply {} }
control C(inout h_t h, inout m_t m) { apply {
    update_checksum(h.ip.isValid(), { h.ip.vi, h.ip.tos, h.ip.len, h.ip.id, h.ip.ttl, h.ip.proto, h.ip.src, h.ip.dst }, h.ip.sum, HashAlgorithm.csum16);
    update_checksum_with_payload(h.tcp.isValid(), { h.ip.src, h.ip.dst, 8w0, h.ip.proto, m.length, h.l4.sport, h.l4.dport, h.tcp.mid, h.tcp.urgent }, h.tcp.sum, HashAlgorithm.csum16);
} }
control D(packet_out p, in h_t h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
