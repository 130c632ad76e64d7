// Returns every Ethernet frame to its sender, with swapped addresses.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {}

parser ReflectorParser(packet_in pkt,
                       out headers_t hdr,
                       inout metadata_t meta,
                       inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.ethernet);
        transition accept;
    }
}

control ReflectorIngress(inout headers_t hdr,
                         inout metadata_t meta,
                         inout standard_metadata_t std) {
    apply {
        // Drop frames that are too short for an Ethernet header.
        if (!hdr.ethernet.isValid()) {
            mark_to_drop(std);
            return;
        }
        bit<48> sender = hdr.ethernet.src;
        hdr.ethernet.src = hdr.ethernet.dst;
        hdr.ethernet.dst = sender;
        std.egress_spec = std.ingress_port;
    }
}

control ReflectorEgress(inout headers_t hdr,
                        inout metadata_t meta,
                        inout standard_metadata_t std) {
    apply {}
}

control ReflectorVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control ReflectorUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control ReflectorDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.ethernet);
    }
}

V1Switch(ReflectorParser(),
         ReflectorVerify(),
         ReflectorIngress(),
         ReflectorEgress(),
         ReflectorUpdate(),
         ReflectorDeparser()) main;
