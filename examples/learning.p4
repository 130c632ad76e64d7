// A learning Ethernet switch. It sends frames for known destinations to one port
// and floods frames for unknown ones. If a source is new at its port, it sends a
// digest to the controller, which then adds the entries for this source.
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

// The digest about a new source.
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

    // Hits if the source is known at this port. A host that has moved to another
    // port misses and is learned again.
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
        // Drop frames that would return to the port from which they came.
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
