// presto: flowcells in turn.
//
// granularity  so many bytes of a flow, then another path
// choice       the next path in turn
//
// For groups of up to 4 paths, as leaf. After He et al., Presto, SIGCOMM 2015.
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

const bit<32> FLOWS = 65536; // slots for flows, by the CRC16 of the 5-tuple

// the size of a flowcell; cell=64KiB. Presto: 64 KB, the largest segment that
// hosts offload.
const bit<32> CELL_BYTES = 65536;

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
    bit<32> flow;  // slot of the flow
    bool    known; // the slot holds a path of the group
    bool    fresh; // a path is to be chosen
}

// Registers.

register<bit<32>>(FLOWS) fc_bytes; // bytes of the flow's cell so far
register<bit<16>>(FLOWS) fc_slot;  // the path of the flow's cell

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

    // A packet that would not fit into the flow's cell starts the next one.
    action find_flow() {
        hash(meta.flow, HashAlgorithm.crc16, 32w0,
             {hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.sport, meta.dport}, FLOWS);
        bit<16> held;
        fc_slot.read(held, meta.flow);
        meta.slot = held[7:0];
        meta.known = held[15:15] == 1 && held[7:0] < meta.n;
        bit<32> bytes;
        fc_bytes.read(bytes, meta.flow);
        meta.fresh = !meta.known || bytes + std.packet_length > CELL_BYTES;
        fc_bytes.write(meta.flow, meta.fresh ? std.packet_length : bytes + std.packet_length);
    }

    // The path after that of the flow's last flowcell.
    action take_next() {
        meta.slot = meta.slot + 1 < meta.n ? meta.slot + 1 : 0;
    }

    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && std.checksum_error == 0) {
            ipv4_route.apply();
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            if (meta.n != 0) {
                find_flow();
                if (meta.fresh) {
                    if (meta.known) {
                        take_next();
                    } else {
                        random(meta.slot, 8w0, meta.n - 1); // not all flows start on the same path
                    }
                    fc_slot.write(meta.flow, 8w0x80 ++ meta.slot);
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
