// The program generate.p4 for Tofino 2, whose applications have numbers of four bits.
#include <core.p4>
#include <t2na.p4>

header arrival_t {
    bit<16> port;
}

struct headers {
    arrival_t arrival;
    pktgen_timer_header_t timer;
}

struct metadata {}

parser InPrs(packet_in pkt, out headers hdr, out metadata md, out ingress_intrinsic_metadata_t ig) {
    state start {
        pkt.extract(ig);
        pkt.advance(PORT_METADATA_SIZE);
        pkt.extract(hdr.timer);
        transition accept;
    }
}

control In(inout headers hdr, inout metadata md, in ingress_intrinsic_metadata_t ig,
        in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
        inout ingress_intrinsic_metadata_for_tm_t tm) {
    Counter<bit<32>, bit<4>>(16, CounterType_t.PACKETS) made;
    apply {
        made.count(hdr.timer.app_id);
        hdr.arrival.setValid();
        hdr.arrival.port = 7w0 ++ ig.ingress_port;
        tm.ucast_egress_port = 1;
        tm.bypass_egress = 1;
    }
}

control InDprs(packet_out pkt, inout headers hdr, in metadata md, in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { pkt.emit(hdr); }
}

parser EgPrs(packet_in pkt, out headers hdr, out metadata md, out egress_intrinsic_metadata_t eg) {
    state start {
        pkt.extract(eg);
        transition accept;
    }
}

control Eg(inout headers hdr, inout metadata md, in egress_intrinsic_metadata_t eg,
        in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr,
        inout egress_intrinsic_metadata_for_output_port_t port) {
    apply {}
}

control EgDprs(packet_out pkt, inout headers hdr, in metadata md, in egress_intrinsic_metadata_for_deparser_t dprsr) {
    apply {}
}

Pipeline(InPrs(), In(), InDprs(), EgPrs(), Eg(), EgDprs()) pipe;
Switch(pipe) main;
