// qall-poly8: packets spread by a polynomial of degree 8 in queue behaviour.
//
// granularity  each packet for itself
// signal       local queue behaviour, by a fitted polynomial
// choice       at random, in proportion to weights
//
// For groups of up to 4 paths, as leaf. After Liu et al., QALL, Section V.
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

const bit<8> RISING = 2; // values of V
const bit<8> FALLING = 1;

// The maximum that the controller scales the polynomial to.
const bit<32> C_MAX = 1000;
const bit<32> W_MIN = 3; // the least weight

const bit<32> PORTS = 512; // ports of the switch

// T_b: a port's state goes to ingress at most this often; tb=1ms. QALL,
// Section IV-E: the updating period trades freshness for overhead, T_b = 1 ms.
const time_us_t T_B = 1000;

// tau: the dequeue interval that counts as idle; tau=10ms. QALL, Section IV-C:
// of the order of the end-to-end delay and longer than T, about 10 ms.
const time_us_t TAU = 10000;

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

// What egress tells ingress about a port (Fig. 6).
header report_t {
    bit<16> L;    // queue occupancy, 255 is full
    bit<48> T;    // dequeue interval, us
    bit<8>  V;    // queuing trend, 2 rising, 1 falling
    bit<8>  port; // the egress port
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
    bit<8> again; // why the packet comes round, 0 for one from a port
    @field_list(FIELDS_AGAIN)
    time_us_t now;    // the ingress clock stands at 0 for a packet that comes round
    port_t    port_0; // egress ports of the group's paths
    port_t    port_1;
    port_t    port_2;
    port_t    port_3;
    time_us_t reported; // when the port was last reported
    bit<24>   rl;       // 255*2^16 / (capacity of the queue - 1)
    @field_list(FIELDS_REPORT)
    bit<8> L; // queue occupancy, 255 is full
    @field_list(FIELDS_REPORT)
    time_us_t T; // dequeue interval
    @field_list(FIELDS_REPORT)
    bit<8> V; // queuing trend
    @field_list(FIELDS_REPORT)
    port_t  port;  // that these are of
    int<32> c_0_0; // of 1
    int<32> c_1_0; // of l
    int<32> c_0_1; // of t
    int<32> c_2_0; // of l2
    int<32> c_1_1; // of l*t
    int<32> c_0_2; // of t2
    int<32> c_3_0; // of l3
    int<32> c_2_1; // of l2*t
    int<32> c_1_2; // of l*t2
    int<32> c_0_3; // of t3
    int<32> c_4_0; // of l4
    int<32> c_3_1; // of l3*t
    int<32> c_2_2; // of l2*t2
    int<32> c_1_3; // of l*t3
    int<32> c_0_4; // of t4
    int<32> c_5_0; // of l5
    int<32> c_4_1; // of l4*t
    int<32> c_3_2; // of l3*t2
    int<32> c_2_3; // of l2*t3
    int<32> c_1_4; // of l*t4
    int<32> c_0_5; // of t5
    int<32> c_6_0; // of l6
    int<32> c_5_1; // of l5*t
    int<32> c_4_2; // of l4*t2
    int<32> c_3_3; // of l3*t3
    int<32> c_2_4; // of l2*t4
    int<32> c_1_5; // of l*t5
    int<32> c_0_6; // of t6
    int<32> c_7_0; // of l7
    int<32> c_6_1; // of l6*t
    int<32> c_5_2; // of l5*t2
    int<32> c_4_3; // of l4*t3
    int<32> c_3_4; // of l3*t4
    int<32> c_2_5; // of l2*t5
    int<32> c_1_6; // of l*t6
    int<32> c_0_7; // of t7
    int<32> c_8_0; // of l8
    int<32> c_7_1; // of l7*t
    int<32> c_6_2; // of l6*t2
    int<32> c_5_3; // of l5*t3
    int<32> c_4_4; // of l4*t4
    int<32> c_3_5; // of l3*t5
    int<32> c_2_6; // of l2*t6
    int<32> c_1_7; // of l*t7
    int<32> c_0_8; // of t8
    bit<32> total; // grids of all paths
    bit<32> grid;  // the one drawn
    bit<32> end_0; // last grid of the path
    bit<32> end_1;
    bit<32> end_2;
    bit<32> end_3;
}

// Registers.

register<time_us_t>(PORTS) qe_clone; // when the port was last reported
register<time_us_t>(PORTS) qe_last;  // when the port's last packet left its queue
register<bit<8>>(PORTS) qe_L;        // occupancy that the port's last packet met
register<bit<8>>(PORTS) qe_V;        // 2: the occupancy was rising last, 1: falling
register<bit<8>>(PORTS) q_L;         // queue occupancy as last reported
register<time_us_t>(PORTS) q_T;      // dequeue interval as last reported
register<bit<8>>(PORTS) q_V;         // queuing trend as last reported: 2 rising, 1 falling
register<time_us_t>(PORTS) q_upd;    // when the port was last reported
register<bit<32>>(PORTS) q_C;        // congestion index

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

    // The paths to the destination. Alg. 1, line 5, finds them by the ingress port,
    // which says nothing about that in a leaf with hosts of its own.
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

    // The behaviour of a port's queue, and the congestion index that follows.
    action learn(in bit<8> L, in time_us_t T, in bit<8> V, in bit<32> port) {
        q_L.write(port, L);
        q_T.write(port, T);
        q_V.write(port, V);
        q_upd.write(port, meta.now);
        // The pattern that the controller gives. l and t are bytes that mean fractions
        // of 256: the terms are shifted to one scale.
        int<128> l = (int<128>)(bit<128>)L;
        // The paper does not say how it normalises T. 0 to 255 stand for 0 to 10000
        // us, by 255*2^16/10000.
        bit<48> waited = T < 10000 ? T : 10000;
        int<128> t = (int<128>)(bit<128>)(waited * 1671 >> 16);
        int<128> l2 = l * l;
        int<128> t2 = t * t;
        int<128> l3 = l2 * l;
        int<128> t3 = t2 * t;
        int<128> l4 = l3 * l;
        int<128> t4 = t3 * t;
        int<128> l5 = l4 * l;
        int<128> t5 = t4 * t;
        int<128> l6 = l5 * l;
        int<128> t6 = t5 * t;
        int<128> l7 = l6 * l;
        int<128> t7 = t6 * t;
        int<128> l8 = l7 * l;
        int<128> t8 = t7 * t;
        int<128> sum = ((int<128>)meta.c_0_0 << 64)
            + (((int<128>)meta.c_1_0 * l + (int<128>)meta.c_0_1 * t) << 56)
            + (((int<128>)meta.c_2_0 * l2 + (int<128>)meta.c_1_1 * l * t + (int<128>)meta.c_0_2 * t2) << 48)
            + (((int<128>)meta.c_3_0 * l3 + (int<128>)meta.c_2_1 * l2 * t + (int<128>)meta.c_1_2 * l * t2
                + (int<128>)meta.c_0_3 * t3) << 40)
            + (((int<128>)meta.c_4_0 * l4 + (int<128>)meta.c_3_1 * l3 * t + (int<128>)meta.c_2_2 * l2 * t2
                + (int<128>)meta.c_1_3 * l * t3 + (int<128>)meta.c_0_4 * t4) << 32)
            + (((int<128>)meta.c_5_0 * l5 + (int<128>)meta.c_4_1 * l4 * t + (int<128>)meta.c_3_2 * l3 * t2
                + (int<128>)meta.c_2_3 * l2 * t3 + (int<128>)meta.c_1_4 * l * t4 + (int<128>)meta.c_0_5 * t5) << 24)
            + (((int<128>)meta.c_6_0 * l6 + (int<128>)meta.c_5_1 * l5 * t + (int<128>)meta.c_4_2 * l4 * t2
                + (int<128>)meta.c_3_3 * l3 * t3 + (int<128>)meta.c_2_4 * l2 * t4 + (int<128>)meta.c_1_5 * l * t5
                + (int<128>)meta.c_0_6 * t6) << 16)
            + (((int<128>)meta.c_7_0 * l7 + (int<128>)meta.c_6_1 * l6 * t + (int<128>)meta.c_5_2 * l5 * t2
                + (int<128>)meta.c_4_3 * l4 * t3 + (int<128>)meta.c_3_4 * l3 * t4 + (int<128>)meta.c_2_5 * l2 * t5
                + (int<128>)meta.c_1_6 * l * t6 + (int<128>)meta.c_0_7 * t7) << 8)
            + ((int<128>)meta.c_8_0 * l8 + (int<128>)meta.c_7_1 * l7 * t + (int<128>)meta.c_6_2 * l6 * t2
               + (int<128>)meta.c_5_3 * l5 * t3 + (int<128>)meta.c_4_4 * l4 * t4 + (int<128>)meta.c_3_5 * l3 * t5
               + (int<128>)meta.c_2_6 * l2 * t6 + (int<128>)meta.c_1_7 * l * t7 + (int<128>)meta.c_0_8 * t8);
        sum = sum >> 64;
        // Far from the data the polynomial may be negative, or explode.
        bit<32> C = sum < (int<128>)(bit<128>)C_MAX ? (bit<32>)(bit<128>)sum : C_MAX;
        C = sum > 0 ? C : 0;
        q_C.write(port, C);
    }

    action set_pattern(int<32> c_0_0, int<32> c_1_0, int<32> c_0_1, int<32> c_2_0,
                       int<32> c_1_1, int<32> c_0_2, int<32> c_3_0, int<32> c_2_1,
                       int<32> c_1_2, int<32> c_0_3, int<32> c_4_0, int<32> c_3_1,
                       int<32> c_2_2, int<32> c_1_3, int<32> c_0_4, int<32> c_5_0,
                       int<32> c_4_1, int<32> c_3_2, int<32> c_2_3, int<32> c_1_4,
                       int<32> c_0_5, int<32> c_6_0, int<32> c_5_1, int<32> c_4_2,
                       int<32> c_3_3, int<32> c_2_4, int<32> c_1_5, int<32> c_0_6,
                       int<32> c_7_0, int<32> c_6_1, int<32> c_5_2, int<32> c_4_3,
                       int<32> c_3_4, int<32> c_2_5, int<32> c_1_6, int<32> c_0_7,
                       int<32> c_8_0, int<32> c_7_1, int<32> c_6_2, int<32> c_5_3,
                       int<32> c_4_4, int<32> c_3_5, int<32> c_2_6, int<32> c_1_7,
                       int<32> c_0_8) {
        meta.c_0_0 = c_0_0;
        meta.c_1_0 = c_1_0;
        meta.c_0_1 = c_0_1;
        meta.c_2_0 = c_2_0;
        meta.c_1_1 = c_1_1;
        meta.c_0_2 = c_0_2;
        meta.c_3_0 = c_3_0;
        meta.c_2_1 = c_2_1;
        meta.c_1_2 = c_1_2;
        meta.c_0_3 = c_0_3;
        meta.c_4_0 = c_4_0;
        meta.c_3_1 = c_3_1;
        meta.c_2_2 = c_2_2;
        meta.c_1_3 = c_1_3;
        meta.c_0_4 = c_0_4;
        meta.c_5_0 = c_5_0;
        meta.c_4_1 = c_4_1;
        meta.c_3_2 = c_3_2;
        meta.c_2_3 = c_2_3;
        meta.c_1_4 = c_1_4;
        meta.c_0_5 = c_0_5;
        meta.c_6_0 = c_6_0;
        meta.c_5_1 = c_5_1;
        meta.c_4_2 = c_4_2;
        meta.c_3_3 = c_3_3;
        meta.c_2_4 = c_2_4;
        meta.c_1_5 = c_1_5;
        meta.c_0_6 = c_0_6;
        meta.c_7_0 = c_7_0;
        meta.c_6_1 = c_6_1;
        meta.c_5_2 = c_5_2;
        meta.c_4_3 = c_4_3;
        meta.c_3_4 = c_3_4;
        meta.c_2_5 = c_2_5;
        meta.c_1_6 = c_1_6;
        meta.c_0_7 = c_0_7;
        meta.c_8_0 = c_8_0;
        meta.c_7_1 = c_7_1;
        meta.c_6_2 = c_6_2;
        meta.c_5_3 = c_5_3;
        meta.c_4_4 = c_4_4;
        meta.c_3_5 = c_3_5;
        meta.c_2_6 = c_2_6;
        meta.c_1_7 = c_1_7;
        meta.c_0_8 = c_0_8;
    }

    table pattern {
        actions = {
            set_pattern;
            drop;
        }
        default_action = drop();
    }

    // The grids of one more path follow those of the paths before it (QALL,
    // Alg. 2 and Eq. 5).
    action lay_grids(in slot_t slot, in port_t port, out bit<32> end) {
        bit<32> C;
        q_C.read(C, (bit<32>)port);
        // Eq. 6, but at least W_MIN: a port without traffic would never be measured
        // again.
        bit<32> W = C + W_MIN < C_MAX ? C_MAX - C : W_MIN;
        meta.total = slot < meta.n ? meta.total + W : meta.total;
        end = meta.total;
    }

    apply {
        if (hdr.report.isValid()) {
            pattern.apply();
            learn((bit<8>)hdr.report.L, hdr.report.T, hdr.report.V, (bit<32>)hdr.report.port);
            drop();
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && std.checksum_error == 0) {
            ipv4_route.apply();
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            if (meta.n != 0) {
                candidates.apply();
                lay_grids(0, meta.port_0, meta.end_0);
                lay_grids(1, meta.port_1, meta.end_1);
                lay_grids(2, meta.port_2, meta.end_2);
                lay_grids(3, meta.port_3, meta.end_3);
                if (meta.total == 0) { // nothing speaks for any path
                    random(meta.slot, 8w0, meta.n - 1);
                } else { // grids count from 1
                    random(meta.grid, 32w1, meta.total);
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

// Egress: measure, and report to ingress.

control LbEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action drop() {
        mark_to_drop(std);
    }

    // A copy becomes a report: the headers go, the rest of the packet comes along.
    action make_report() {
        hdr.report.setValid();
        hdr.report.L = (bit<16>)meta.L;
        hdr.report.T = meta.T;
        hdr.report.V = meta.V;
        hdr.report.port = (bit<8>)meta.port;
        hdr.ethernet.setInvalid();

        hdr.ipv4.setInvalid();
        meta.again = AGAIN_REPORT;
        meta.now = std.egress_global_timestamp;
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

    // State collection (QALL, Alg. 3). L is the share of the queue that the packet
    // met, its division by the capacity a product with rl. The first packet of a
    // port has waited for ever, which is tau. While L stays equal, V keeps: the
    // paper leaves that open.
    action measure() {
        bit<32> port = (bit<32>)std.egress_port;
        bit<48> L = (bit<48>)std.enq_qdepth * (bit<48>)meta.rl >> 16;
        meta.L = L < 255 ? (bit<8>)L : 255;
        time_us_t last;
        qe_last.read(last, port);
        qe_last.write(port, std.egress_global_timestamp);
        meta.T = last == 0 ? TAU : std.egress_global_timestamp - last;
        bit<8> L_before;
        bit<8> V_before;
        qe_L.read(L_before, port);
        qe_V.read(V_before, port);
        meta.V = meta.L < L_before || V_before == 0 ? FALLING : V_before;
        meta.V = meta.L > L_before ? RISING : meta.V;
        qe_L.write(port, meta.L);
        qe_V.write(port, meta.V);
        meta.port = std.egress_port;
    }

    action set_port_cfg(bit<24> rl) {
        meta.rl = rl;
    }

    table port_cfg {
        key = {
            std.egress_port: exact;
        }
        actions = {
            set_port_cfg;
            drop;
        }
        default_action = drop();
        size = PORTS;
    }

    apply {
        if (std.instance_type == EGRESS_CLONE) {
            make_report();
        } else {
            if (port_cfg.apply().hit) {
                measure();
                find_last_report();
                if (std.egress_global_timestamp - meta.reported > T_B) {
                    return_state();
                }
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
