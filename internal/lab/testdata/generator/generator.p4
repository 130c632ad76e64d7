#include <core.p4>
#include <tna.p4>
header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header ip_t { bit<64> a; bit<8> ttl; bit<8> proto; bit<16> sum; bit<32> src; bit<32> dst; }
struct h_t { pktgen_timer_header_t timer; eth_t eth; ip_t ip; }
struct m_t {}
struct none_t {}
parser IP(packet_in p, out h_t h, out m_t m, out ingress_intrinsic_metadata_t ig) {
    state start {
        p.extract(ig); p.advance(PORT_METADATA_SIZE);
        transition select(ig.ingress_port) { 68: generated; default: routed; }
    }
    state generated { p.extract(h.timer); transition accept; }
    state routed { p.extract(h.eth); p.extract(h.ip); transition accept; }
}
// Generated packets are counted by batch and dropped.
control I(inout h_t h, inout m_t m, in ingress_intrinsic_metadata_t ig, in ingress_intrinsic_metadata_from_parser_t ip,
          inout ingress_intrinsic_metadata_for_deparser_t d, inout ingress_intrinsic_metadata_for_tm_t tm) {
    Register<bit<32>, bit<16>>(16, 0) made;
    RegisterAction<bit<32>, bit<16>, bit<32>>(made) count = { void apply(inout bit<32> n) { n = n + 1; } };
    action send(bit<9> port, bit<48> mac) { tm.ucast_egress_port = port; h.eth.dst = mac; }
    table routes { key = { h.ip.dst: lpm; } actions = { send; } size = 64; }
    apply {
        if (h.timer.isValid()) { count.execute(h.timer.batch_id); d.drop_ctl = 1; } else { routes.apply(); }
        tm.bypass_egress = 1;
    }
}
control ID(packet_out p, inout h_t h, in m_t m, in ingress_intrinsic_metadata_for_deparser_t d) { apply { p.emit(h); } }
parser EP(packet_in p, out none_t h, out none_t m, out egress_intrinsic_metadata_t eg) { state start { p.extract(eg); transition accept; } }
control E(inout none_t h, inout none_t m, in egress_intrinsic_metadata_t eg, in egress_intrinsic_metadata_from_parser_t ep,
          inout egress_intrinsic_metadata_for_deparser_t d, inout egress_intrinsic_metadata_for_output_port_t o) { apply {} }
control ED(packet_out p, inout none_t h, in none_t m, in egress_intrinsic_metadata_for_deparser_t d) { apply {} }
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
