// A program for Tofino with what BfRt's speed is measured on: an exact table, and
// a register of pairs.
#include <core.p4>
#include <tna.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {}

struct pair {
    bit<32> first;
    bit<32> second;
}

parser BenchParser(packet_in packet, out headers_t hdr, out metadata_t md, out ingress_intrinsic_metadata_t ig) {
    state start {
        packet.extract(ig);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control BenchIngress(inout headers_t hdr, inout metadata_t md, in ingress_intrinsic_metadata_t ig,
        in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
        inout ingress_intrinsic_metadata_for_tm_t tm) {
    Register<pair, bit<16>>(65536) pairs;
    RegisterAction<pair, bit<16>, bit<32>>(pairs) count = {
        void apply(inout pair value) {
            value.first = value.first + 1;
        }
    };

    action send(PortId_t port) {
        tm.ucast_egress_port = port;
    }
    action flood() {
        tm.mcast_grp_a = 1;
    }
    table dmac {
        key = {
            hdr.ethernet.dst: exact;
        }
        actions = {
            send;
            flood;
        }
        const default_action = flood();
        size = 16384;
    }

    apply {
        dmac.apply();
        count.execute(hdr.ethernet.type);
    }
}

control BenchIngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t md,
        in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    apply {
        packet.emit(hdr);
    }
}

parser BenchEgressParser(packet_in packet, out headers_t hdr, out metadata_t md, out egress_intrinsic_metadata_t eg) {
    state start {
        packet.extract(eg);
        transition accept;
    }
}

control BenchEgress(inout headers_t hdr, inout metadata_t md, in egress_intrinsic_metadata_t eg,
        in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr,
        inout egress_intrinsic_metadata_for_output_port_t port) {
    apply {}
}

control BenchEgressDeparser(packet_out packet, inout headers_t hdr, in metadata_t md,
        in egress_intrinsic_metadata_for_deparser_t dprsr) {
    apply {
        packet.emit(hdr);
    }
}

Pipeline(BenchParser(), BenchIngress(), BenchIngressDeparser(), BenchEgressParser(), BenchEgress(), BenchEgressDeparser()) pipe;
Switch(pipe) main;
