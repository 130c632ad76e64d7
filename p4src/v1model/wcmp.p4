// wcmp: weighted-cost multi-path.
//
// granularity  a flow keeps its path
// signal       weights that the controller gives
// choice       at random, in proportion to weights
//
// For groups of up to 4 paths, as leaf. After Zhou et al., WCMP, EuroSys 2014.
#include <core.p4>
#include <v1model.p4>

// Types and constants.

typedef bit<48> mac_t;
typedef bit<32> ipv4_addr_t;
typedef bit<9> port_t;
typedef bit<16> gid_t; // a group of paths, all that lead to one destination
typedef bit<8> slot_t; // a path within its group

const bit<16> TYPE_IPV4 = 0x0800;

const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

// Headers.

header ethernet_t {
    mac_t   dst;
    mac_t   src;
    bit<16> type;
}

header ipv4_t {
    bit<4>      version;
    bit<4>      ihl;
    bit<6>      dscp;
    bit<2>      ecn;
    bit<16>     total_len;
    bit<16>     id;
    bit<3>      flags;
    bit<13>     frag_offset;
    bit<8>      ttl;
    bit<8>      protocol;
    bit<16>     checksum;
    ipv4_addr_t src;
    ipv4_addr_t dst;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct metadata_t {
    gid_t   gid;
    slot_t  n;     // paths in the group; 0: there is nothing to choose
    slot_t  slot;  // the path chosen
    bit<16> sport; // of TCP or UDP, else 0
    bit<16> dport;
    bit<32> weight_0; // weights of the group's paths
    bit<32> weight_1;
    bit<32> weight_2;
    bit<32> weight_3;
    bit<32> total; // grids of all paths
    bit<32> grid;  // the one drawn
    bit<32> end_0; // last grid of the path
    bit<32> end_1;
    bit<32> end_2;
    bit<32> end_3;
}

// Parser.

parser LbParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        pkt.extract(hdr.ipv4);
        // Only a first fragment without options has its ports where we look.
        transition select(hdr.ipv4.ihl, hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (5, 0, PROTOCOL_TCP): ports;
            (5, 0, PROTOCOL_UDP): ports;
            default: accept;
        }
    }

    // The ports are only looked at: they stay with the payload.
    state ports {
        bit<32> both = pkt.lookahead<bit<32>>();
        meta.sport = both[31:16];
        meta.dport = both[15:0];
        transition accept;
    }
}

// Checksums.

control LbVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5, {
            hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,
            hdr.ipv4.total_len, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.frag_offset,
            hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst
        }, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control LbUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5, {
            hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,
            hdr.ipv4.total_len, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.frag_offset,
            hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst
        }, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

// Ingress: the route, and the path.

control LbIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action drop() {
        mark_to_drop(std);
    }

    action set_port(port_t port) {
        std.egress_spec = port;
    }

    action forward(port_t port, mac_t dmac, mac_t smac) {
        std.egress_spec = port;
        hdr.ethernet.dst = dmac;
        hdr.ethernet.src = smac;
    }

    action set_group(gid_t gid, slot_t n) {
        meta.gid = gid;
        meta.n = n;
    }

    table ipv4_route {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            set_port;
            forward;
            set_group;
            drop;
        }
        default_action = drop();
        size = 4096;
    }

    table member {
        key = {
            meta.gid: exact;
            meta.slot: exact;
        }
        actions = {
            forward;
            drop;
        }
        default_action = drop();
        size = 4096;
    }

    action set_candidates(bit<32> weight_0, bit<32> weight_1, bit<32> weight_2, bit<32> weight_3) {
        meta.weight_0 = weight_0;
        meta.weight_1 = weight_1;
        meta.weight_2 = weight_2;
        meta.weight_3 = weight_3;
    }

    table candidates {
        key = {
            meta.gid: exact;
        }
        actions = {
            set_candidates;
            drop;
        }
        default_action = drop();
        size = 1024;
    }

    // The grids of one more path follow those of the paths before it (QALL,
    // Alg. 2 and Eq. 5).
    action lay_grids(in slot_t slot, in bit<32> weight, out bit<32> end) {
        bit<32> W = weight;
        meta.total = slot < meta.n ? meta.total + W : meta.total;
        end = meta.total;
    }

    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && std.checksum_error == 0) {
            ipv4_route.apply();
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            if (meta.n != 0) {
                candidates.apply();
                lay_grids(0, meta.weight_0, meta.end_0);
                lay_grids(1, meta.weight_1, meta.end_1);
                lay_grids(2, meta.weight_2, meta.end_2);
                lay_grids(3, meta.weight_3, meta.end_3);
                if (meta.total == 0) { // nothing speaks for any path
                    hash(meta.slot, HashAlgorithm.crc32, 8w0,
                         {hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.sport, meta.dport}, meta.n);
                } else { // grids count from 1
                    hash(meta.grid, HashAlgorithm.crc32, 32w1,
                         {hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.sport, meta.dport}, meta.total);
                    if (meta.grid <= meta.end_0) {
                        meta.slot = 0;
                    } else if (meta.grid <= meta.end_1) {
                        meta.slot = 1;
                    } else if (meta.grid <= meta.end_2) {
                        meta.slot = 2;
                    } else {
                        meta.slot = 3;
                    }
                }
            }
        } else {
            drop();
        }
        if (meta.n != 0) {
            member.apply();
        }
    }
}

// Egress.

control LbEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {}
}

// Deparser.

control LbDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.ethernet);
        pkt.emit(hdr.ipv4);
    }
}

V1Switch(LbParser(), LbVerify(), LbIngress(), LbEgress(), LbUpdate(), LbDeparser()) main;
