// drill+rlb: packets to the least of a few queues, around paths that PFC is
// about to pause.
//
// granularity  each packet for itself
// signal       local queue lengths
// choice       the least of d random paths and m remembered ones
// guard        around paths that PFC is about to pause
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
const bit<8> AGAIN_REROUTE = 2;

const bit<32> EGRESS_CLONE = 2;     // of instance_type
const bit<32> SESSION_REPORT = 500; // leads to a port without an interface
const bit<8> FIELDS_REPORT = 1;

const port_t CPU_PORT = 255; // where the controller's own probes come in

const bit<16> TYPE_PATH_PROBE = 0x88B7;
const bit<8> PROBE_REPLY = 1; // flags of a probe

const bit<16> TYPE_CNM = 0x88B5;
const bit<8> CNM_WARN = 1; // types of a CNM
const bit<8> CNM_CLEAR = 2;
const bit<32> INGRESS_CLONE = 1;  // of instance_type
const bit<32> SESSION_CNM = 1000; // of port 0, each leads to its port
const bit<8> FIELDS_CNM = 3;
const port_t PORT_AGAIN = 501; // has no interface
const port_t PORT_DROP = 511;

// Q_th = d*C, the lower end of [d*C, Q_PFC - d*C*(n-1)] (Section III-B.3), in bytes.
const bit<32> Q_TH = 10000;

const bit<32> PORTS = 512;     // ports of the switch
const bit<32> PATHS = 16384;   // paths: group * 16 + slot
const bit<32> MEMORIES = 4096; // remembered paths: group * m + k

// T_b: a port's state goes to ingress at most this often; tb=1ms. QALL,
// Section IV-E: the updating period trades freshness for overhead, T_b = 1 ms.
const time_us_t T_B = 1000;

// Delta t: how often the growth of an ingress queue is looked at; dt=1ms. RLB,
// Section III-B: the link delay, 2 us; a software switch wants 1 ms.
const time_us_t DT = 1000;

// T_warn: a warning goes out if the queue would reach Q_PFC sooner; twarn=2ms.
// RLB, Section III-B: a given threshold.
const bit<64> T_WARN = 2000;

// Q_PFC: an ingress queue of this length pauses the switch upstream;
// qpfc=256KiB. RLB, Section II-B: 256 KB.
const bit<32> Q_PFC = 262144;

// how long a warning counts, and how soon it may be repeated; hold=2ms. left
// open by RLB: two RTTs.
const time_us_t HOLD = 2000;

// a packet comes round at most so often; rc=8. added to RLB: Algorithm 1 may
// loop for ever.
const bit<8> RC_LIMIT = 8;

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

// A probe goes along one path to a leaf and comes back.
header path_probe_t {
    bit<8>  src;   // leaf that it comes from, by the number of the groups that lead there
    bit<8>  dst;   // leaf that it goes to
    bit<8>  path;  // slot at the leaf that sent it first
    bit<8>  flags; // 1 reply, 2 met a long queue
    bit<48> tx_ts; // when that leaf sent it, us
}

// A congestion notification to the switch upstream (Section III-B.1).
header cnm_t {
    bit<8>  type; // 1 warn, 2 clear
    bit<16> port; // ingress port that will pause
    bit<32> qlen; // its queue in bytes
    bit<32> hold; // how long the warning counts, us
}

// What a recirculated packet remembers.
header rc_t {
    bit<8>  count;     // recirculations
    bit<48> first_ts;  // when the packet came in, us
    bit<16> base_port; // slot of the path that was chosen first
}

struct headers_t {
    report_t     report;
    rc_t         rc;
    ethernet_t   ethernet;
    path_probe_t path_probe;
    cnm_t        cnm;
    ipv4_t       ipv4;
}

struct metadata_t {
    gid_t  gid;
    slot_t n;    // paths in the group; 0: there is nothing to choose
    slot_t slot; // the path chosen
    @field_list(FIELDS_AGAIN)
    bit<8> again; // why the packet comes round, 0 for one from a port
    @field_list(FIELDS_AGAIN)
    time_us_t now; // the ingress clock stands at 0 for a packet that comes round
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
    port_t port; // that it belongs to
    bit<8> here; // the number of this leaf, for a probe that has arrived
    @field_list(FIELDS_AGAIN, FIELDS_CNM)
    port_t in_port; // where the packet came in first
    @field_list(FIELDS_AGAIN)
    bit<32> bytes; // its length then
    @field_list(FIELDS_AGAIN)
    bit<32> queued; // when it was queued for coming round, us
    @field_list(FIELDS_CNM)
    bit<8> notice; // type of the CNM to send, 0: none
    @field_list(FIELDS_CNM)
    bit<32>   Q;         // queue of the ingress port
    bit<1>    rerouting; // looking for a path
    bit<16>   warned;    // one bit a slot
    bit<8>    base;      // slot of the path that was chosen first
    bit<8>    count;     // recirculations so far
    time_us_t first_ts;  // when the packet came in
    time_us_t loop;      // how long a recirculation takes
    bit<40>   key_0;     // RTT and slot of the path
    bit<40>   key_1;
    bit<40>   key_2;
    bit<40>   key_3;
    bit<40>   key;  // of the path in question
    bit<40>   next; // of the one after it
    bit<40>   fastest;
    bit<32>   least;  // load of the path chosen so far
    bit<16>   held_0; // a path that was the least before
}

// Registers.

register<time_us_t>(PORTS) qe_clone;   // when the port was last reported
register<bit<32>>(PORTS) q_len;        // packets in the port's queue, as last reported
register<bit<32>>(PATHS) rtt;          // round-trip time of the path
register<time_us_t>(PATHS) rtt_ts;     // when it was measured
register<bit<32>>(PORTS) ig_q;         // bytes in the switch that came in at the port
register<bit<32>>(PORTS) ig_q0;        // ig_q when the last interval began
register<time_us_t>(PORTS) ig_t0;      // when that was
register<time_us_t>(PORTS) warn_sent;  // when the switch behind the port was warned last; 0: it no longer is
register<time_us_t>(PORTS) warn_until; // until when the port is expected to be paused
register<time_us_t>(1) t_rc;           // how long the last recirculation took
register<bit<16>>(MEMORIES) dr_mem;    // the 1 paths that were the least before, the latest first

// Parser.

parser LbParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    // What comes round comes from no port. The metadata alone does not say so:
    // simple_switch parses an ingress clone with what another packet left there.
    state start {
        transition select(std.ingress_port, meta.again) {
            (0, AGAIN_REPORT): report;
            (0, AGAIN_REROUTE): rc;
            default: ethernet;
        }
    }

    state ethernet {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            TYPE_PATH_PROBE: path_probe;
            TYPE_CNM: cnm;
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

    state path_probe {
        pkt.extract(hdr.path_probe);
        transition accept;
    }

    state rc {
        pkt.extract(hdr.rc);
        transition ethernet;
    }

    state cnm {
        pkt.extract(hdr.cnm);
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

    // The port that a CNM comes in at leads to the switch that will pause it. The
    // paper leaves open when a warning ends: after a time, or when it is lifted.
    action heed_warning() {
        warn_until.write((bit<32>)std.ingress_port,
                         hdr.cnm.type == CNM_WARN ? std.ingress_global_timestamp + (bit<48>)hdr.cnm.hold : 0);
    }

    // A packet from a port, or one that has been round.
    action begin_first() {
        meta.first_ts = std.ingress_global_timestamp;
        meta.in_port = std.ingress_port;
        meta.bytes = std.packet_length;
    }

    action begin_again() {
        meta.base = (bit<8>)hdr.rc.base_port;
        meta.slot = (bit<8>)hdr.rc.base_port;
        meta.count = hdr.rc.count;
        meta.first_ts = hdr.rc.first_ts;
        meta.again = 0;
        hdr.rc.setInvalid();
    }

    // PFC prediction (Section III-B.1): every DT the growth of the ingress queue says
    // whether it reaches Q_PFC within T_WARN.
    action count_in() {
        bit<32> port = (bit<32>)meta.in_port;
        bit<32> Q;
        time_us_t sent;
        ig_q.read(Q, port);
        warn_sent.read(sent, port);
        bit<32> Q0;
        time_us_t t0;
        ig_q0.read(Q0, port);
        ig_t0.read(t0, port);
        Q = Q + meta.bytes;
        ig_q.write(port, Q);
        bool due = meta.now - t0 >= DT;
        bit<32> growth = Q > Q0 ? Q - Q0 : 0;
        bit<32> room = Q < Q_PFC ? Q_PFC - Q : 0;
        // (Q_PFC - Q)/(dQ/dt) < T_warn
        bool near = due && Q > Q_TH && growth > 0 && (bit<64>)room * (bit<64>)DT < (bit<64>)growth * T_WARN;
        ig_q0.write(port, due ? Q : Q0);
        ig_t0.write(port, due ? meta.now : t0);
        bool warn = near && (sent == 0 || meta.now - sent > HOLD);
        bool clear = sent != 0 && Q <= Q_TH;
        meta.notice = clear ? CNM_CLEAR : 0;
        meta.notice = warn ? CNM_WARN : meta.notice;
        warn_sent.write(port, warn ? meta.now : (clear ? 0 : sent));
        meta.Q = Q;
    }

    // The copy goes back to where the packet came from.
    action notify() {
        clone_preserving_field_list(CloneType.I2E, SESSION_CNM + (bit<32>)meta.in_port, FIELDS_CNM);
    }

    // A path's place in the order of RTTs, and whether its port may be paused.
    action rank_path(in slot_t slot, in port_t port, out bit<40> key) {
        bit<32> t;
        time_us_t until;
        rtt.read(t, (bit<32>)meta.gid << 4 | (bit<32>)slot);
        warn_until.read(until, (bit<32>)port);

        bool expected = until != 0 && until != meta.now && (until - meta.now)[47:47] == 0;
        bool paused = expected;
        meta.warned = paused ? meta.warned | 16w1 << slot : meta.warned;
        key = slot < meta.n ? t ++ slot : 0xFFFFFFFFFF;
        meta.fastest = key < meta.fastest ? key : meta.fastest;
        meta.key = slot == meta.slot ? key : meta.key;
    }

    // Whether the path chosen may be paused (Algorithm 1, line 3).
    action find_warning() {
        slot_t slot = meta.slot;
        port_t port = slot == 0 ? meta.port_0 : (slot == 1 ? meta.port_1 : (slot == 2 ? meta.port_2 : meta.port_3));
        time_us_t until;
        warn_until.read(until, (bit<32>)port);

        bool expected = until != 0 && until != meta.now && (until - meta.now)[47:47] == 0;
        meta.rerouting = expected ? 1w1 : 1w0;
    }

    // The first choice is looked at again after a round.
    action look_further() {
        meta.base = meta.slot;
        meta.fastest = 0xFFFFFFFFFF;
        t_rc.read(meta.loop, 0);
    }

    // One turn of Algorithm 1, lines 3 to 8, while no path is found. The next one in
    // the order of RTTs is the suboptimal path; after the slowest comes the fastest.
    // If it is so much slower that the packet had better come round once more, the
    // packet does; else the path is taken unless it may be paused as well. There is
    // one turn for each other path of the group: the paper may loop for ever.
    action consider_next(in slot_t turn) {
        meta.next = 0xFFFFFFFFFF;
        meta.next = meta.key_0 > meta.key && meta.key_0 < meta.next ? meta.key_0 : meta.next;
        meta.next = meta.key_1 > meta.key && meta.key_1 < meta.next ? meta.key_1 : meta.next;
        meta.next = meta.key_2 > meta.key && meta.key_2 < meta.next ? meta.key_2 : meta.next;
        meta.next = meta.key_3 > meta.key && meta.key_3 < meta.next ? meta.key_3 : meta.next;
        bool looking = meta.rerouting == 1 && turn < meta.n;
        bool slower = meta.next != 0xFFFFFFFFFF;
        meta.next = slower ? meta.next : meta.fastest;
        bit<48> gain = slower ? (bit<48>)(meta.next[39:8] - meta.key[39:8]) : 0;
        bool again = looking && gain > meta.loop
            && meta.count < RC_LIMIT;
        meta.again = again ? AGAIN_REROUTE : meta.again;
        meta.key = looking && !again ? meta.next : meta.key;
        meta.slot = meta.key[7:0];
        bool open = meta.warned >> meta.slot & 1 == 0;
        meta.rerouting = looking && (again || open) ? 0 : meta.rerouting;
    }

    // To a port that leads round; the next pass decides again, and counts the TTL.
    action come_again() {
        meta.n = 0;
        std.egress_spec = PORT_AGAIN;
        hdr.ipv4.ttl = hdr.ipv4.ttl + 1;
        hdr.rc.setValid();
        hdr.rc.count = meta.count + 1;
        hdr.rc.first_ts = meta.first_ts;
        hdr.rc.base_port = (bit<16>)meta.base;
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
        if (meta.again == 0) {
            meta.now = std.ingress_global_timestamp;
        }
        if (hdr.report.isValid()) {
            q_len.write((bit<32>)hdr.report.port, hdr.report.len);
            drop();
        } else if (hdr.path_probe.isValid()) {
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
        } else if (hdr.cnm.isValid()) {
            heed_warning();
            drop();
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && std.checksum_error == 0) {
            if (hdr.rc.isValid()) {
                begin_again();
            } else {
                begin_first();
            }
            ipv4_route.apply();
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            if (meta.n != 0) {
                candidates.apply();
                if (meta.count == 0) {
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
                find_warning();
                if (meta.rerouting == 1) {
                    look_further();
                    rank_path(0, meta.port_0, meta.key_0);
                    rank_path(1, meta.port_1, meta.key_1);
                    rank_path(2, meta.port_2, meta.key_2);
                    rank_path(3, meta.port_3, meta.key_3);
                    consider_next(1);
                    consider_next(2);
                    consider_next(3);
                    if (meta.again == AGAIN_REROUTE) {
                        come_again();
                    } else if (meta.rerouting == 1) {
                        meta.slot = meta.base; // all may be paused: the first choice
                    }
                }
            }
        } else {
            drop();
        }
        if (meta.n != 0) {
            member.apply();
        }
        if (hdr.ipv4.isValid() && meta.count == 0 && std.egress_spec != PORT_DROP) {
            count_in();
            if (meta.notice != 0) {
                notify();
            }
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
        hdr.path_probe.setInvalid();
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

    action make_cnm() {
        hdr.cnm.setValid();
        hdr.cnm.type = meta.notice;
        hdr.cnm.port = (bit<16>)meta.in_port;
        hdr.cnm.qlen = meta.Q;
        hdr.cnm.hold = (bit<32>)HOLD;
        hdr.ethernet.type = TYPE_CNM;
        hdr.path_probe.setInvalid();
        hdr.ipv4.setInvalid();
        truncate(25); // Ethernet and the CNM
    }

    // The recirculation delay is what passes between one queueing and the next.
    action time_round() {
        t_rc.write(0, (bit<48>)(std.enq_timestamp - meta.queued));
    }

    action go_round() {
        meta.queued = std.enq_timestamp;
        meta.now = std.egress_global_timestamp;
        meta.again = AGAIN_REROUTE;
        recirculate_preserving_field_list(FIELDS_AGAIN);
    }

    // The packet leaves the ingress queue that count_in put it into.
    action count_out() {
        bit<32> Q;
        ig_q.read(Q, (bit<32>)meta.in_port);
        ig_q.write((bit<32>)meta.in_port, Q > meta.bytes ? Q - meta.bytes : 0);
    }

    apply {
        if (std.instance_type == EGRESS_CLONE) {
            make_report();
        } else if (std.instance_type == INGRESS_CLONE) {
            make_cnm();
        } else if (std.egress_port == PORT_AGAIN) {
            if (meta.queued != 0) {
                time_round();
            }
            go_round();
        } else {
            meta.depth = (bit<32>)std.deq_qdepth;
            meta.port = std.egress_port;
            find_last_report();
            if (std.egress_global_timestamp - meta.reported > T_B) {
                return_state();
            }
            if (meta.queued != 0) {
                time_round();
            }
            if (meta.bytes != 0) {
                count_out();
            }
        }
    }
}

// Deparser.

control LbDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.report);
        pkt.emit(hdr.rc);
        pkt.emit(hdr.ethernet);
        pkt.emit(hdr.path_probe);
        pkt.emit(hdr.cnm);
        pkt.emit(hdr.ipv4);
    }
}

V1Switch(LbParser(), LbVerify(), LbIngress(), LbEgress(), LbUpdate(), LbDeparser()) main;
