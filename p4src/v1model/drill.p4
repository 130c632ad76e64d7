// drill: packets to the least of a few queues.
//
// granularity  each packet for itself
// signal       local queue lengths
// choice       the least of d random paths and m remembered ones
//
// For groups of up to 4 paths, as leaf. After Ghorbani et al., DRILL, SIGCOMM
// 2017.
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

// The metadata that comes along, and why the packet comes.
const bit<8> FIELDS_AGAIN = 2;
const bit<8> AGAIN_REPORT = 1;

const bit<32> EGRESS_CLONE = 2;     // of instance_type
const bit<32> SESSION_REPORT = 500; // leads to a port without an interface
const bit<8> FIELDS_REPORT = 1;

const bit<32> PORTS = 512;     // ports of the switch
const bit<32> MEMORIES = 4096; // remembered paths: group * m + k

// T_b: a port's state goes to ingress at most this often; tb=1ms. QALL,
// Section IV-E: the updating period trades freshness for overhead, T_b = 1 ms.
const time_us_t T_B = 1000;

// paths that are remembered; m=1. DRILL(d, m): m = 1.
const bit<32> DRILL_M = 1;

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

// What egress tells ingress about a port.
header report_t {
    bit<32> len;  // of the queue, in packets
    bit<16> port; // the egress port
}

struct headers_t {
    report_t   report;
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct metadata_t {
    gid_t  gid;
    slot_t n;    // paths in the group; 0: there is nothing to choose
    slot_t slot; // the path chosen
    @field_list(FIELDS_AGAIN)
    bit<8>    again; // why the packet comes round, 0 for one from a port
    slot_t    draw;
    slot_t    drawn;  // the path that was drawn
    bit<64>   order;  // the paths that have not been drawn yet, four bits each
    port_t    port_0; // egress ports of the group's paths
    port_t    port_1;
    port_t    port_2;
    port_t    port_3;
    time_us_t reported; // when the port was last reported
    @field_list(FIELDS_REPORT)
    bit<32> depth; // of the queue
    @field_list(FIELDS_REPORT)
    port_t  port;   // that it belongs to
    bit<32> least;  // load of the path chosen so far
    bit<16> held_0; // a path that was the least before
}

// Registers.

register<time_us_t>(PORTS) qe_clone; // when the port was last reported
register<bit<32>>(PORTS) q_len;      // packets in the port's queue, as last reported
register<bit<16>>(MEMORIES) dr_mem;  // the 1 paths that were the least before, the latest first

// Parser.

parser LbParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    // What comes round comes from no port. The metadata alone does not say so:
    // simple_switch parses an ingress clone with what another packet left there.
    state start {
        transition select(std.ingress_port, meta.again) {
            (0, AGAIN_REPORT): report;
            default: ethernet;
        }
    }

    state ethernet {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        pkt.extract(hdr.ipv4);
        transition accept;
    }

    state report {
        pkt.extract(hdr.report);
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

    // Draws the k-th path of a shuffle without repeats: the one at place meta.draw
    // goes out, the one at place k comes in for it.
    action shuffle(in slot_t k) {
        bit<8> at = meta.draw << 2;
        meta.drawn = (slot_t)(meta.order >> at) & 15;
        bit<64> first = (meta.order >> (k << 2)) & 15;
        meta.order = meta.order & ~(64w15 << at) | first << at;
    }

    action set_candidates(port_t port_0, port_t port_1, port_t port_2, port_t port_3) {
        meta.port_0 = port_0;
        meta.port_1 = port_1;
        meta.port_2 = port_2;
        meta.port_3 = port_3;
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

    // One more path: taken if it is less loaded than those before it.
    action look_at(in slot_t slot) {
        port_t port = slot == 0 ? meta.port_0 : (slot == 1 ? meta.port_1 : (slot == 2 ? meta.port_2 : meta.port_3));
        bit<32> cost;
        q_len.read(cost, (bit<32>)port);
        meta.slot = cost < meta.least ? slot : meta.slot;
        meta.least = cost < meta.least ? cost : meta.least;
    }

    action recall_least() {
        dr_mem.read(meta.held_0, (bit<32>)meta.gid * DRILL_M + 0);
    }

    action hold_least() {
        dr_mem.write((bit<32>)meta.gid * DRILL_M + 0, 8w0x80 ++ meta.slot);
    }

    apply {
        if (hdr.report.isValid()) {
            q_len.write((bit<32>)hdr.report.port, hdr.report.len);
            drop();
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && std.checksum_error == 0) {
            ipv4_route.apply();
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            if (meta.n != 0) {
                candidates.apply();
                meta.order = 0xFEDCBA9876543210;
                meta.least = 0xFFFFFFFF;

                random(meta.draw, 8w0, meta.n - 1);
                shuffle(0);
                look_at(meta.drawn);

                if (meta.n > 1) {
                    random(meta.draw, 8w1, meta.n - 1);
                    shuffle(1);
                    look_at(meta.drawn);
                }
                recall_least();
                if (meta.held_0[15:15] == 1 && meta.held_0[7:0] < meta.n) {
                    look_at(meta.held_0[7:0]);
                }
                hold_least();
            }
        } else {
            drop();
        }
        if (meta.n != 0) {
            member.apply();
        }
    }
}

// Egress: measure, and report to ingress.

control LbEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    // A copy becomes a report: the headers go, the rest of the packet comes along.
    action make_report() {
        hdr.report.setValid();
        hdr.report.len = meta.depth;
        hdr.report.port = (bit<16>)meta.port;
        hdr.ethernet.setInvalid();

        hdr.ipv4.setInvalid();
        meta.again = AGAIN_REPORT;

        recirculate_preserving_field_list(FIELDS_AGAIN);
    }

    // State return (QALL, Alg. 3): what was measured goes to ingress if the last
    // time is longer ago than T_b. What Alg. 3 collects in between is the latest:
    // the paper does not say how to condense it, and forgets to note the time.
    action find_last_report() {
        qe_clone.read(meta.reported, (bit<32>)std.egress_port);
    }

    action return_state() {
        qe_clone.write((bit<32>)std.egress_port, std.egress_global_timestamp);
        clone_preserving_field_list(CloneType.E2E, SESSION_REPORT, FIELDS_REPORT);
    }

    apply {
        if (std.instance_type == EGRESS_CLONE) {
            make_report();
        } else {
            meta.depth = (bit<32>)std.deq_qdepth;
            meta.port = std.egress_port;
            find_last_report();
            if (std.egress_global_timestamp - meta.reported > T_B) {
                return_state();
            }
        }
    }
}

// Deparser.

control LbDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.report);
        pkt.emit(hdr.ethernet);
        pkt.emit(hdr.ipv4);
    }
}

V1Switch(LbParser(), LbVerify(), LbIngress(), LbEgress(), LbUpdate(), LbDeparser()) main;
