// NAME: a load balancer to begin with. Each flow takes one of the paths to its
// destination, by a hash; path() is the place for something better.
#include <core.p4>
#include <v1model.p4>

typedef bit<48> mac_t;

header ethernet_t {
    mac_t   dst;
    mac_t   src;
    bit<16> type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> length;
    bit<16> id;
    bit<16> fragment;
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
    ports_t    ports; // of TCP or UDP
}

struct metadata_t {
    bit<16> group; // of paths
    bit<16> count; // how many it has
    bit<16> slot;  // the one to take, from 0
}

parser Read(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        pkt.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.protocol) {
            (5, 6): ports;
            (5, 17): ports;
            default: accept;
        }
    }
    state ports {
        pkt.extract(hdr.ports);
        transition accept;
    }
}

control Trust(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control Forward(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    // Packets by slot: p4lb inspect shows them.
    register<bit<32>>(16) taken;

    action drop() {
        mark_to_drop(std);
    }

    action forward(bit<9> port, mac_t dmac, mac_t smac) {
        std.egress_spec = port;
        hdr.ethernet.dst = dmac;
        hdr.ethernet.src = smac;
    }

    action choose(bit<16> group, bit<16> count) {
        meta.group = group;
        meta.count = count;
    }

    table routes {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            forward;
            choose;
            drop;
        }
        default_action = drop();
        size = 4096;
    }

    table paths {
        key = {
            meta.group: exact;
            meta.slot: exact;
        }
        actions = {
            forward;
            drop;
        }
        default_action = drop();
        size = 4096;
    }

    // The path of a packet: here the hash of its flow.
    action path() {
        hash(meta.slot, HashAlgorithm.crc32, 16w0, {
            hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, hdr.ports.src, hdr.ports.dst
        }, meta.count);
    }

    apply {
        if (!hdr.ipv4.isValid() || hdr.ipv4.ttl <= 1) {
            drop();
            exit;
        }
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        routes.apply();
        if (meta.count > 0) {
            path();
            paths.apply();

            bit<32> n;
            taken.read(n, (bit<32>)meta.slot);
            taken.write((bit<32>)meta.slot, n + 1);
        }
    }
}

control Leave(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {}
}

control Sum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5, {
            hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.length, hdr.ipv4.id,
            hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst
        }, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control Write(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr);
    }
}

V1Switch(Read(), Trust(), Forward(), Leave(), Sum(), Write()) main;
