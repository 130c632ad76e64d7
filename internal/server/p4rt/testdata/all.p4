// Everything that P4Runtime can talk about, for the tests of the server.
#include <core.p4>
#include <v1model.p4>

typedef bit<9> port_t;

@controller_header("packet_in")
header packet_in_t {
    bit<9>  ingress_port;
    bit<7>  reason;
    bit<16> hash;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> pad;
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> length;
    bit<16> id;
    bit<3>  flags;
    bit<13> offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   ethernet;
    ipv4_t       ipv4;
}

struct metadata_t {
    bit<32> color;
    bit<16> count;
}

struct learned_t {
    bit<48> mac;
    bit<9>  port;
}

parser AllParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    value_set<bit<16>>(2) ip_types;

    state start {
        transition select(std.ingress_port) {
            255: from_cpu;
            default: ethernet;
        }
    }
    state from_cpu {
        pkt.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            ip_types: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        pkt.extract(hdr.ipv4);
        transition accept;
    }
}

control AllIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(8, CounterType.packets_and_bytes) seen;
    meter(4, MeterType.bytes) limit;
    direct_counter(CounterType.packets_and_bytes) route_hits;
    direct_meter<bit<32>>(MeterType.packets) route_limit;
    register<bit<32>>(512) sizes;
    register<bit<128>>(4) wide;
    register<int<12>>(4) signs;
    register<bit<16>>(65536) many;
    action_profile(16) plain;
    action_selector(HashAlgorithm.crc16, 32w64, 32w14) choice;

    action forward(port_t port) {
        std.egress_spec = port;
    }
    action metered(port_t port) {
        std.egress_spec = port;
        route_limit.read(meta.color);
    }
    action drop() {
        mark_to_drop(std);
    }
    action flood(bit<16> group) {
        std.mcast_grp = group;
    }
    action copy(bit<32> session) {
        clone(CloneType.I2E, session);
    }
    action learn() {
        digest<learned_t>(1, {hdr.ethernet.src, std.ingress_port});
    }
    action punt() {
        std.egress_spec = 255;
    }
    action mark(bit<16> v) {
        meta.count = v;
    }

    table sources {
        key = { hdr.ethernet.src: exact; }
        actions = { NoAction; @defaultonly learn; }
        default_action = learn();
        size = 8192;
        support_timeout = true;
    }
    table macs {
        key = { hdr.ethernet.dst: exact; std.ingress_port: exact; }
        actions = { forward; flood; copy; punt; @tableonly drop; NoAction; }
        default_action = NoAction();
        size = 4;
    }
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { metered; drop; @defaultonly NoAction; }
        default_action = NoAction();
        counters = route_hits;
        meters = route_limit;
        size = 131072;
    }
    table acl {
        key = {
            hdr.ipv4.src: ternary;
            hdr.ipv4.length: range;
            hdr.ipv4.protocol: optional;
            hdr.ipv4.ttl: exact;
        }
        actions = { drop; NoAction; }
        const default_action = NoAction();
        size = 16384;
    }
    table fixed {
        key = { hdr.ipv4.tos: ternary; }
        actions = { mark; NoAction; }
        const entries = {
            0x10 &&& 0xf0: mark(1);
            _: mark(2);
        }
    }
    table keyless {
        actions = { mark; NoAction; }
        default_action = mark(7);
    }
    table members {
        key = { hdr.ipv4.protocol: exact; }
        actions = { forward; mark; }
        implementation = plain;
        size = 32;
    }
    table groups {
        key = { hdr.ipv4.tos: exact; hdr.ipv4.src: selector; hdr.ipv4.id: selector; }
        actions = { forward; drop; }
        implementation = choice;
        size = 32;
    }

    apply {
        if (hdr.packet_out.isValid()) {
            std.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            seen.count((bit<32>)std.ingress_port);
            sizes.write((bit<32>)std.ingress_port, std.packet_length);
            limit.execute_meter<bit<32>>((bit<32>)std.ingress_port, meta.color);
            sources.apply();
            macs.apply();
            keyless.apply();
            if (hdr.ipv4.isValid()) {
                routes.apply();
                acl.apply();
                fixed.apply();
                members.apply();
                groups.apply();
            }
            bit<128> w;
            wide.read(w, 0);
            wide.write(1, w + 1);
            int<12> i;
            signs.read(i, 0);
            signs.write(1, i - 1);
            bit<16> m;
            many.read(m, 0);
            many.write(1, m + meta.count);
        }
    }
}

control AllEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (std.egress_port == 255) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = std.ingress_port;
            hdr.packet_in.reason = 5;
            hdr.packet_in.hash = 0;
        }
    }
}

control AllVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control AllUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control AllDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.packet_in);
        pkt.emit(hdr.ethernet);
        pkt.emit(hdr.ipv4);
    }
}

V1Switch(AllParser(), AllVerify(), AllIngress(), AllEgress(), AllUpdate(), AllDeparser()) main;
