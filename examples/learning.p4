// A learning Ethernet switch: known destinations go out of one port, unknown
// ones are flooded, and each source that is new at its port is reported to the
// controller in a digest, so that it can add the entries for it.
#include <core.p4>
#include <v1model.p4>

// The multicast group that holds all ports.
const bit<16> FLOOD_GROUP = 1;

typedef bit<48> mac_t;
typedef bit<9> port_t;

header ethernet_t {
    mac_t   dst;
    mac_t   src;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {}

// What the controller is told of a source.
struct learned_t {
    mac_t  mac;
    port_t port;
}

parser LearningParser(packet_in pkt,
                      out headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.ethernet);
        transition accept;
    }
}

control LearningIngress(inout headers_t hdr,
                        inout metadata_t meta,
                        inout standard_metadata_t std) {
    action learn() {
        digest<learned_t>(1, {hdr.ethernet.src, std.ingress_port});
    }

    // Hits where the source is known at this very port; a host that has moved
    // misses and is learned again.
    table sources {
        key = {
            hdr.ethernet.src: exact;
            std.ingress_port: exact;
        }
        actions = {
            NoAction;
            @defaultonly learn;
        }
        default_action = learn();
        size = 1024;
    }

    action forward(port_t port) {
        std.egress_spec = port;
    }

    action flood() {
        std.mcast_grp = FLOOD_GROUP;
    }

    table destinations {
        key = {
            hdr.ethernet.dst: exact;
        }
        actions = {
            forward;
            flood;
        }
        default_action = flood();
        size = 1024;
    }

    apply {
        if (!hdr.ethernet.isValid()) {
            mark_to_drop(std);
            return;
        }
        sources.apply();
        destinations.apply();
    }
}

control LearningEgress(inout headers_t hdr,
                       inout metadata_t meta,
                       inout standard_metadata_t std) {
    apply {
        // Nothing goes back to where it came from, flooded or not.
        if (std.egress_port == std.ingress_port) {
            mark_to_drop(std);
        }
    }
}

control LearningVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control LearningUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control LearningDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.ethernet);
    }
}

V1Switch(LearningParser(),
         LearningVerify(),
         LearningIngress(),
         LearningEgress(),
         LearningUpdate(),
         LearningDeparser()) main;
