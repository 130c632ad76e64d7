// pdlb: flowcells whose size follows the paths.
//
// granularity  flowcells of as many packets as the delays of the paths suggest
// signal       path delays that probes measure
// choice       any path, all alike
//
// For groups of up to 4 paths, as leaf. After PDLB, with the edge switch in
// the place of the sender.
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

const port_t CPU_PORT = 255; // where the controller's own probes come in

const bit<16> TYPE_PATH_PROBE = 0x88B7;
const bit<8> PROBE_REPLY = 1; // flags of a probe

const bit<32> FLOWS = 65536; // slots for flows, by the CRC16 of the 5-tuple
const bit<32> GROUPS = 1024; // groups of paths
const bit<32> PATHS = 16384; // paths: group * 16 + slot

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

// A probe goes along one path to a leaf and comes back.
header path_probe_t {
    bit<8>  src;   // leaf that it comes from, by the number of the groups that lead there
    bit<8>  dst;   // leaf that it goes to
    bit<8>  path;  // slot at the leaf that sent it first
    bit<8>  flags; // 1 reply, 2 met a long queue
    bit<48> tx_ts; // when that leaf sent it, us
}

struct headers_t {
    ethernet_t   ethernet;
    path_probe_t path_probe;
    ipv4_t       ipv4;
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
    bit<8>  here;  // the number of this leaf, for a probe that has arrived
}

// Registers.

register<bit<32>>(PATHS) rtt;      // round-trip time of the path
register<time_us_t>(PATHS) rtt_ts; // when it was measured
register<bit<16>>(GROUPS) pd_gran; // the size of flowcells to the leaf; 0 counts as 1
register<bit<16>>(FLOWS) fc_cnt;   // packets of the flow's cell so far
register<bit<16>>(FLOWS) fc_port;  // the path of the flow's cell

// Parser.

parser LbParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            TYPE_PATH_PROBE: path_probe;
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

    state path_probe {
        pkt.extract(hdr.path_probe);
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

    // The controller's probe starts along the path that it names.
    action start_probe() {
        hdr.path_probe.tx_ts = std.ingress_global_timestamp;
        meta.gid = (bit<16>)hdr.path_probe.dst;
        meta.slot = hdr.path_probe.path;
        meta.n = hdr.path_probe.path + 1;
    }

    action turn_probe() {
        hdr.path_probe.dst = hdr.path_probe.src;
        hdr.path_probe.src = meta.here;
        hdr.path_probe.flags = hdr.path_probe.flags | PROBE_REPLY;

        std.egress_spec = std.ingress_port;
    }

    // A probe that has come back knows about the path it was sent along.
    action learn_path() {
        bit<32> path = (bit<32>)hdr.path_probe.src << 4 | (bit<32>)hdr.path_probe.path;
        rtt.write(path, (bit<32>)(std.ingress_global_timestamp - hdr.path_probe.tx_ts));
        rtt_ts.write(path, std.ingress_global_timestamp);
        drop();
    }

    action at_home(bit<8> id) {
        meta.here = id;
    }

    table leaf {
        key = {
            hdr.path_probe.dst: exact;
        }
        actions = {
            set_port;
            at_home;
            drop;
        }
        default_action = drop();
        size = 256;
    }

    // Counts the flow's packets: a cell of gran of them is full (Algorithm 1; the
    // controller computes gran, Eq. 10).
    action find_flow() {
        hash(meta.flow, HashAlgorithm.crc16, 32w0,
             {hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.sport, meta.dport}, FLOWS);
        bit<16> held;
        fc_port.read(held, meta.flow);
        meta.slot = held[7:0];
        meta.known = held[15:15] == 1 && held[7:0] < meta.n;
        bit<16> gran;
        bit<16> packets;
        pd_gran.read(gran, (bit<32>)meta.gid);
        fc_cnt.read(packets, meta.flow);
        meta.fresh = !meta.known || packets >= gran;
        fc_cnt.write(meta.flow, meta.fresh ? 1 : packets + 1);
    }

    apply {
        if (hdr.path_probe.isValid()) {
            if (std.ingress_port == CPU_PORT) {
                start_probe();
            } else {
                switch (leaf.apply().action_run) {
                    at_home: {
                        if (hdr.path_probe.flags & PROBE_REPLY == 0) {
                            turn_probe();
                        } else {
                            learn_path();
                        }
                    }
                }
            }
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && std.checksum_error == 0) {
            ipv4_route.apply();
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            if (meta.n != 0) {
                find_flow();
                if (meta.fresh) {
                    random(meta.slot, 8w0, meta.n - 1);
                    fc_port.write(meta.flow, 8w0x80 ++ meta.slot);
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
        pkt.emit(hdr.path_probe);
        pkt.emit(hdr.ipv4);
    }
}

V1Switch(LbParser(), LbVerify(), LbIngress(), LbEgress(), LbUpdate(), LbDeparser()) main;
