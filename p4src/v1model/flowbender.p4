// flowbender: flows that congestion makes hash again.
//
// granularity  a flow keeps its path
// signal       the congestion marks that TCP echoes
// choice       a hash that a congested flow changes
//
// For groups of up to 4 paths, as leaf. After Kabbani et al., FlowBender,
// CoNEXT 2014.
#include <core.p4>
#include <v1model.p4>

// Types and constants.

typedef bit<48> mac_t;
typedef bit<32> ipv4_addr_t;
typedef bit<9> port_t;
typedef bit<16> gid_t; // a group of paths, all that lead to one destination
typedef bit<8> slot_t; // a path within its group
typedef bit<48> time_us_t;

const bit<16> TYPE_IPV4 = 0x0800;

const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

const bit<8> TCP_ACK = 0x10;
const bit<8> TCP_ECE = 0x40;

const bit<32> FLOWS = 65536; // slots for flows, by the CRC16 of the 5-tuple

// how long a flow's marks are counted; epoch=1ms. FlowBender: an RTT.
const time_us_t EPOCH = 1000;

// T: a flow of which more acknowledgements are marked moves; marked=5%.
// FlowBender: T = 5 %.
const bit<64> MARKED = 5;

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
    bit<8>  flags; // of TCP
    bit<32> flow;  // slot of the flow
}

// Registers.

register<bit<8>>(FLOWS) fb_v;      // changes the flow's hash, and so its path
register<bit<32>>(FLOWS) fb_acks;  // acknowledgements of the flow in this epoch
register<bit<32>>(FLOWS) fb_marks; // those that echoed a congestion mark
register<time_us_t>(FLOWS) fb_t0;  // when the epoch began

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
            (5, 0, PROTOCOL_TCP): tcp;
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

    state tcp {
        bit<112> head = pkt.lookahead<bit<112>>();
        meta.flags = head[7:0];
        transition ports;
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

    // An acknowledgement speaks of the flow in the other direction. After each
    // epoch of about an RTT the flow moves if more than T of them were marked.
    action heed_echo() {
        bit<32> flow;
        hash(flow, HashAlgorithm.crc16, 32w0,
             {hdr.ipv4.dst, hdr.ipv4.src, hdr.ipv4.protocol, meta.dport, meta.sport}, FLOWS);
        bit<8> v;
        bit<32> acks;
        bit<32> marks;
        time_us_t t0;
        fb_v.read(v, flow);
        fb_acks.read(acks, flow);
        fb_marks.read(marks, flow);
        fb_t0.read(t0, flow);
        acks = acks + 1;
        marks = meta.flags & TCP_ECE != 0 ? marks + 1 : marks;
        bool over = std.ingress_global_timestamp - t0 > EPOCH;
        fb_v.write(flow, over && (bit<64>)marks * 100 > (bit<64>)acks * MARKED ? v + 1 : v);
        fb_acks.write(flow, over ? 0 : acks);
        fb_marks.write(flow, over ? 0 : marks);
        fb_t0.write(flow, over ? std.ingress_global_timestamp : t0);
    }

    action hash_flow() {
        hash(meta.flow, HashAlgorithm.crc16, 32w0,
             {hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.sport, meta.dport}, FLOWS);
        bit<8> v;
        fb_v.read(v, meta.flow);
        hash(meta.slot, HashAlgorithm.crc32, 8w0,
             {hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.sport, meta.dport, v}, meta.n);
    }

    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && std.checksum_error == 0) {
            if (meta.flags & TCP_ACK != 0) {
                heed_echo();
            }
            ipv4_route.apply();
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            if (meta.n != 0) {
                hash_flow();
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
