// A program with arrays of filters and of early detection (WRED): the destination is the
// value, the source is the index.
#include <core.p4>
#include <tna.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> kind;
}

struct headers {
    ethernet_t ethernet;
}

struct metadata {}

parser InPrs(packet_in pkt, out headers hdr, out metadata md, out ingress_intrinsic_metadata_t ig) {
    state start {
        pkt.extract(ig);
        pkt.advance(PORT_METADATA_SIZE);
        pkt.extract(hdr.ethernet);
        transition accept;
    }
}

control In(inout headers hdr, inout metadata md, in ingress_intrinsic_metadata_t ig,
        in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
        inout ingress_intrinsic_metadata_for_tm_t tm) {
    Lpf<bit<32>, bit<4>>(16) mean;
    Wred<bit<32>, bit<4>>(16, 8w1, 8w0) early;
    apply {
        bit<4> index = hdr.ethernet.src[3:0];
        if (hdr.ethernet.kind == 1) {
            hdr.ethernet.src[31:0] = mean.execute(hdr.ethernet.dst[31:0], index);
        } else {
            hdr.ethernet.src[7:0] = early.execute(hdr.ethernet.dst[31:0], index);
        }
        tm.ucast_egress_port = 2;
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
