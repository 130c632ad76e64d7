// The program to which the sessions swap: other tables, and one of the same
// name with another key.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct metadata {
    bit<2> color;
}

struct headers {
    ethernet_t ethernet;
}

parser OtherParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control OtherVerify(inout headers hdr, inout metadata meta) {
    apply {}
}

control SessionIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    register<bit<16>>(4) seen;
    meter(2, MeterType.bytes) limits;

    action to(bit<9> port) {
        standard.egress_spec = port;
    }
    action flood(bit<16> group) {
        standard.mcast_grp = group;
    }
    table exact_one {
        key = { hdr.ethernet.type: exact; }
        actions = { to; flood; }
        default_action = to(9);
    }
    table nested {
        key = { hdr.ethernet.src: lpm; }
        actions = { to; NoAction; }
    }

    apply {
        if (exact_one.apply().hit) {
            nested.apply();
        }
        seen.write(0, hdr.ethernet.type);
        limits.execute_meter((bit<32>) standard.ingress_port & 1, meta.color);
    }
}

control OtherEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    apply {}
}

control OtherCompute(inout headers hdr, inout metadata meta) {
    apply {}
}

control OtherDeparser(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(OtherParser(), OtherVerify(), SessionIngress(), OtherEgress(), OtherCompute(), OtherDeparser()) main;
