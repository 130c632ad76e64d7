// One table of each kind, one array of each kind: what a client of the Thrift
// interface can change.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct metadata {
    @field_list(1)
    bit<9>  port;
    bit<16> hash16;
    bit<32> hash32;
    bit<2>  color;
    bit<64> seen;
}

struct headers {
    ethernet_t ethernet;
}

struct learned {
    bit<48> src;
    bit<9>  port;
}

parser SessionParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    value_set<bit<16>>(4) types;
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            types: marked;
            default: accept;
        }
    }
    state marked {
        meta.port = 7;
        transition accept;
    }
}

control SessionVerify(inout headers hdr, inout metadata meta) {
    apply {}
}

control SessionIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    action_selector(HashAlgorithm.crc16, 128, 16) ways;
    action_profile(32) shared;
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<2>>(MeterType.bytes) rates;
    counter(8, CounterType.packets_and_bytes) packets;
    meter(4, MeterType.packets) limits;
    register<bit<48>>(16) seen;

    action drop() {
        mark_to_drop(standard);
    }
    action to(bit<9> port) {
        standard.egress_spec = port;
    }
    action rewrite(bit<48> dst, bit<9> port) {
        hdr.ethernet.dst = dst;
        standard.egress_spec = port;
    }
    action metered(bit<9> port) {
        standard.egress_spec = port;
        rates.read(meta.color);
    }

    table exact_one {
        key = { hdr.ethernet.dst: exact; standard.ingress_port: exact; }
        actions = { to; rewrite; drop; }
        default_action = drop();
        counters = hits;
        size = 4;
    }
    table lpm_one {
        key = { hdr.ethernet.src: lpm; }
        actions = { to; drop; NoAction; }
        support_timeout = true;
    }
    table ternary_one {
        key = { hdr.ethernet.dst: ternary; hdr.ethernet.type: exact; }
        actions = { to; drop; }
        default_action = to(3);
    }
    table range_one {
        key = { hdr.ethernet.type: range; hdr.ethernet.src: ternary; }
        actions = { to; drop; }
    }
    table mixed_one {
        key = { hdr.ethernet.type: exact; hdr.ethernet.dst: lpm; }
        actions = { to; drop; }
    }
    table metered_one {
        key = { hdr.ethernet.type: exact; }
        actions = { metered; drop; }
        meters = rates;
    }
    table profile_one {
        key = { hdr.ethernet.type: exact; }
        actions = { to; drop; }
        implementation = shared;
    }
    table selector_one {
        key = { hdr.ethernet.type: exact; hdr.ethernet.dst: selector; hdr.ethernet.src: selector; }
        actions = { to; rewrite; }
        implementation = ways;
    }
    table fixed_one {
        key = { hdr.ethernet.type: exact; }
        actions = { to; drop; }
        const entries = {
            0x800: to(1);
            0x806: drop();
        }
        const default_action = drop();
    }
    table keyless_one {
        actions = { to; drop; }
        default_action = to(5);
    }

    apply {
        exact_one.apply();
        lpm_one.apply();
        ternary_one.apply();
        range_one.apply();
        mixed_one.apply();
        metered_one.apply();
        profile_one.apply();
        selector_one.apply();
        fixed_one.apply();
        keyless_one.apply();
        packets.count((bit<32>) standard.ingress_port);
        limits.execute_meter((bit<32>) meta.port, meta.color);
        hash(meta.hash16, HashAlgorithm.crc16_custom, (bit<16>) 0, { hdr.ethernet.src }, (bit<32>) 65536);
        hash(meta.hash32, HashAlgorithm.crc32_custom, (bit<32>) 0, { hdr.ethernet.dst }, (bit<64>) 4294967296);
        seen.write((bit<32>) meta.hash16 & 15, hdr.ethernet.src);
        digest<learned>(1, { hdr.ethernet.src, standard.ingress_port });
    }
}

control SessionEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    apply {}
}

control SessionCompute(inout headers hdr, inout metadata meta) {
    apply {}
}

control SessionDeparser(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(SessionParser(), SessionVerify(), SessionIngress(), SessionEgress(), SessionCompute(), SessionDeparser()) main;
