/* A program for Tofino 2 with what ConWeave's public program needs of a network: a loopback
 * port that the manifest chooses, a register with an initial value, a table of connections,
 * and RoCE headers. Data packets of known connections go through the loopback port once. */
#include <core.p4>
#include <t2na.p4>

header ethernet_h { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_h {
    bit<8> version_ihl; bit<8> tos; bit<16> len; bit<16> id; bit<16> frag;
    bit<8> ttl; bit<8> protocol; bit<16> checksum; bit<32> src; bit<32> dst;
}
header udp_h { bit<16> sport; bit<16> dport; bit<16> len; bit<16> checksum; }
header bth_h {
    bit<8> opcode; bit<8> flags; bit<16> pkey; bit<8> reserved; bit<24> qp; bit<1> ask; bit<7> reserved2; bit<24> psn;
}
struct headers_t { ethernet_h ethernet; ipv4_h ipv4; udp_h udp; bth_h bth; }
struct metadata_t { PortId_t loop; bit<1> known; }

parser IngressParser(packet_in p, out headers_t h, out metadata_t m, out ingress_intrinsic_metadata_t ig) {
    state start {
        p.extract(ig);
        p.advance(PORT_METADATA_SIZE);
        m.loop = 0;
        m.known = 0;
        p.extract(h.ethernet);
        transition select(h.ethernet.type) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 {
        p.extract(h.ipv4);
        transition select(h.ipv4.protocol) { 17: udp; default: accept; }
    }
    state udp {
        p.extract(h.udp);
        transition select(h.udp.dport) { 4791: bth; default: accept; }
    }
    state bth { p.extract(h.bth); transition accept; }
}

control Ingress(inout headers_t h, inout metadata_t m, in ingress_intrinsic_metadata_t ig,
        in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
        inout ingress_intrinsic_metadata_for_tm_t tm) {
    Register<bit<16>, bit<1>>(1, 0) loop_port;
    RegisterAction<bit<16>, bit<1>, bit<16>>(loop_port) read_loop = {
        void apply(inout bit<16> cell, out bit<16> port) { port = cell; }
    };
    action forward(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    action know() { m.known = 1; }
    table routes {
        key = { h.ipv4.dst: exact; }
        actions = { forward; drop; }
        const default_action = drop();
        size = 64;
    }
    table connections {
        key = { h.ipv4.src: exact; h.ipv4.dst: exact; h.udp.sport: exact; }
        actions = { know; NoAction; }
        const default_action = NoAction();
        size = 256;
    }
    apply {
        routes.apply();
        if (h.bth.isValid() && h.bth.opcode < 5) {
            connections.apply();
        }
        m.loop = (PortId_t)read_loop.execute(0);
        if (m.known == 1 && ig.ingress_port != m.loop) {
            tm.ucast_egress_port = m.loop;
        }
    }
}

control IngressDeparser(packet_out p, inout headers_t h, in metadata_t m, in ingress_intrinsic_metadata_for_deparser_t d) {
    apply { p.emit(h); }
}

parser EgressParser(packet_in p, out headers_t h, out metadata_t m, out egress_intrinsic_metadata_t eg) {
    state start { p.extract(eg); m.loop = 0; m.known = 0; transition accept; }
}
control Egress(inout headers_t h, inout metadata_t m, in egress_intrinsic_metadata_t eg,
        in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr,
        inout egress_intrinsic_metadata_for_output_port_t oport) { apply { } }
control EgressDeparser(packet_out p, inout headers_t h, in metadata_t m, in egress_intrinsic_metadata_for_deparser_t d) {
    apply { p.emit(h); }
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
