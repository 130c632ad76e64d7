// A program with everything that the control plane's speed is measured on: a
// large table of routes, a large access list, a small and a large register.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<64> start;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header ports_t {
    bit<16> src;
    bit<16> dst;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ports_t    ports;
}

struct metadata_t {
}

parser BenchParser(packet_in pkt,
                   out headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.ethernet);
        pkt.extract(hdr.ipv4);
        pkt.extract(hdr.ports);
        transition accept;
    }
}

control BenchVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control BenchIngress(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t std) {
    register<bit<32>>(512) small;
    register<bit<32>>(65536) large;

    action drop() {
        mark_to_drop(std);
    }

    action forward(bit<9> port, bit<48> mac) {
        std.egress_spec = port;
        hdr.ethernet.dst = mac;
    }

    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; drop; }
        default_action = drop();
        size = 131072;
    }

    table acl {
        key = {
            hdr.ipv4.src: ternary;
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: ternary;
            hdr.ports.src: ternary;
            hdr.ports.dst: ternary;
        }
        actions = { drop; NoAction; }
        default_action = NoAction();
        size = 16384;
    }

    apply {
        routes.apply();
        acl.apply();
        small.write((bit<32>)std.ingress_port, std.packet_length);
        large.write((bit<32>)hdr.ports.src, std.packet_length);
    }
}

control BenchEgress(inout headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t std) {
    apply { }
}

control BenchCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control BenchDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr);
    }
}

V1Switch(BenchParser(), BenchVerify(), BenchIngress(), BenchEgress(), BenchCompute(), BenchDeparser()) main;
