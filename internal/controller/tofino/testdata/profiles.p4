// The routes are groups of an action selector, and the marks are members of an action
// profile. The profiles hold little more than the entries of one plan need.
#include <core.p4>
#include <tna.p4>
header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header ip_t { bit<64> a; bit<8> ttl; bit<8> proto; bit<16> sum; bit<32> src; bit<32> dst; }
struct h_t { eth_t eth; ip_t ip; }
struct m_t { bit<8> mark; bit<16> rest; }
struct none_t {}
parser IP(packet_in p, out h_t h, out m_t m, out ingress_intrinsic_metadata_t ig) {
    Checksum() sum;
    state start {
        p.extract(ig); p.advance(PORT_METADATA_SIZE); m.mark = 0; p.extract(h.eth); p.extract(h.ip);
        sum.subtract({h.ip.ttl, h.ip.proto, h.ip.sum}); sum.subtract_all_and_deposit(m.rest);
        transition accept;
    }
}
control I(inout h_t h, inout m_t m, in ingress_intrinsic_metadata_t ig, in ingress_intrinsic_metadata_from_parser_t ip,
          inout ingress_intrinsic_metadata_for_deparser_t d, inout ingress_intrinsic_metadata_for_tm_t tm) {
    ActionProfile(20) hops;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) hash;
    ActionSelector(hops, hash, SelectorMode_t.FAIR, 8, 10) choice;
    ActionProfile(8) marks;
    action send(bit<9> port, bit<48> mac) { tm.ucast_egress_port = port; h.eth.dst = mac; h.ip.ttl = h.ip.ttl - 1; }
    action mark(bit<8> x) { m.mark = x; }
    table routes {
        key = { h.ip.dst: lpm; h.ip.src: selector; h.ip.proto: selector; }
        actions = { send; }
        implementation = choice;
        size = 64;
    }
    table kinds {
        key = { ig.ingress_port: exact; }
        actions = { mark; }
        implementation = marks;
        size = 64;
    }
    apply { kinds.apply(); if (m.mark != 9) { routes.apply(); } tm.bypass_egress = 1; }
}
control ID(packet_out p, inout h_t h, in m_t m, in ingress_intrinsic_metadata_for_deparser_t d) {
    Checksum() sum;
    apply { h.ip.sum = sum.update({h.ip.ttl, h.ip.proto, m.rest}); p.emit(h); }
}
parser EP(packet_in p, out none_t h, out none_t m, out egress_intrinsic_metadata_t eg) { state start { p.extract(eg); transition accept; } }
control E(inout none_t h, inout none_t m, in egress_intrinsic_metadata_t eg, in egress_intrinsic_metadata_from_parser_t ep,
          inout egress_intrinsic_metadata_for_deparser_t d, inout egress_intrinsic_metadata_for_output_port_t o) { apply {} }
control ED(packet_out p, inout none_t h, in none_t m, in egress_intrinsic_metadata_for_deparser_t d) { apply {} }
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
