// Sends packets to the shorter of two queues, by feedback.
//
// Ingress chooses the port, but only egress knows the length of its queue. So
// egress clones each packet. The clone carries the length of the queue and is
// recirculated. Ingress stores the length and drops the clone.
#include <core.p4>
#include <v1model.p4>

const bit<9> UPLINK_A = 1;
const bit<9> UPLINK_B = 2;

// The port of this session has no link: clones only pass through its queue.
const bit<32> FEEDBACK_SESSION = 250;

const bit<32> INSTANCE_EGRESS_CLONE = 2;
const bit<32> INSTANCE_RECIRCULATED = 4;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
}

// The report that a clone carries.
struct metadata_t {
    @field_list(1)
    bit<9> port;
    @field_list(1)
    bit<19> depth;
}

parser FeedbackParser(packet_in pkt,
                      out headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.ethernet);
        transition accept;
    }
}

control FeedbackIngress(inout headers_t hdr,
                        inout metadata_t meta,
                        inout standard_metadata_t std) {
    // The length of the queue of each port, in packets, from its last report.
    register<bit<19>>(512) depths;

    action store_report() {
        depths.write((bit<32>)meta.port, meta.depth);
        mark_to_drop(std);
    }

    action choose() {
        bit<19> a;
        bit<19> b;
        depths.read(a, (bit<32>)UPLINK_A);
        depths.read(b, (bit<32>)UPLINK_B);
        std.egress_spec = a <= b ? UPLINK_A : UPLINK_B;
    }

    apply {
        if (std.instance_type == INSTANCE_RECIRCULATED) {
            store_report();
        } else {
            choose();
        }
    }
}

control FeedbackEgress(inout headers_t hdr,
                       inout metadata_t meta,
                       inout standard_metadata_t std) {
    apply {
        if (std.instance_type == INSTANCE_EGRESS_CLONE) {
            recirculate_preserving_field_list(1);
        } else {
            meta.port = std.egress_port;
            meta.depth = std.enq_qdepth;
            clone_preserving_field_list(CloneType.E2E, FEEDBACK_SESSION, 1);
        }
    }
}

control FeedbackVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control FeedbackUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control FeedbackDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.ethernet);
    }
}

V1Switch(FeedbackParser(),
         FeedbackVerify(),
         FeedbackIngress(),
         FeedbackEgress(),
         FeedbackUpdate(),
         FeedbackDeparser()) main;
