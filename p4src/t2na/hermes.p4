// hermes: flows that move with caution.
//
// granularity  a flow keeps its path
// signal       path delays and marks that probes measure
// choice       by classes of paths; a flow moves for a notably better one only
//
// For groups of up to 4 paths, as leaf. After Zhang et al., Hermes, SIGCOMM
// 2017.
#include <core.p4>
#include <t2na.p4>

// Types and constants.

typedef bit<48> mac_t;
typedef bit<32> ipv4_addr_t;
typedef bit<16> gid_t;   // a group of paths, all that lead to one destination
typedef bit<8> slot_t;   // a path within its group
typedef bit<16> level_t; // of congestion
typedef bit<32> ticks_t; // time in 1024 ns
typedef bit<16> delay_t; // a delay in 1024 ns
typedef int<32> span_t;  // between two times: only signed differences wrap in a stateful ALU

const bit<16> TYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

const PortId_t CPU_PORT = 0;

// Port 6 of each pipe leads round within the switch.
const PortId_t RECIRCULATION = 6;
const PortId_t PORT_OF_PIPE = 0x7F; // mask

const bit<8> AGAIN = 0xFE; // first byte of a packet that comes round

const MirrorType_t MIRROR_REPORT = 1;
const MirrorId_t SESSION_REPORT = 1; // leads to RECIRCULATION
const bit<8> REPORT = 0xFF;          // first byte of a report

const bit<16> TYPE_PATH_PROBE = 0x88B7;
const bit<8> PROBE_REPLY = 1; // flags of a probe
const bit<8> PROBE_CE = 2;    // it met a long queue

// ecnk=20 packets of 1500 bytes, in cells of 176 bytes.
const bit<19> ECN_CELLS = 170;
const level_t MARK = 0xFF00; // all probes are marked

const level_t CLOSED = 0xF000; // no path is as bad

const level_t GOOD = 0; // classes of paths; congested ones are CLOSED
const level_t GREY = 0x1000;

// 30% of 400Mbps for 2^10 us, in bytes.
const bit<32> RATE_LIMIT = 15360;
const ticks_t WINDOW = 1000; // 2^10 us

const bit<32> PORTS = 512;   // ports of the switch
const bit<32> FLOWS = 32768; // slots for flows, by the CRC16 of the 5-tuple
const bit<32> GROUPS = 1024; // groups of paths
const bit<32> PATHS = 16384; // paths: group * 16 + slot

// a flow that pauses for longer is new; timeout=10ms. Hermes, Algorithm 2: a
// timeout; 10 ms is TCP's least.
const ticks_t FLOW_TIMEOUT = 9766;

// T_ECN: the share of marks, in 255ths, that separates good from bad paths;
// tecn=40%. Hermes, Table 4: T_ECN = 40 %.
const bit<8> T_ECN = 102;

// T_RTT_low: a good path is faster; low=60us. Hermes, Table 4: 20 to 40 us
// above the base RTT, here 60 us.
const bit<32> T_RTT_LOW = 59;

// T_RTT_high: a congested path is slower; high=180us. Hermes, Table 4: 1.5
// hops of queueing above the base RTT, here 180 us.
const bit<32> T_RTT_HIGH = 176;

// Delta_RTT: a notably better path is so much faster; drtt=100us. Hermes,
// Table 4: one hop of queueing, here 100 us.
const bit<32> DELTA_RTT = 98;

// Delta_ECN: and has so many fewer marks, in 255ths; decn=5%. Hermes, Table 4:
// 3 to 10 %.
const bit<16> DELTA_ECN = 12;

// S: a flow moves if it has sent more; sent=600KiB. Hermes, Table 4: S = 600
// KB.
const bit<32> S_SENT = 614400;

// T_b: a port's state goes to ingress at most this often; tb=1ms. QALL,
// Section IV-E: the updating period trades freshness for overhead, T_b = 1 ms.
const ticks_t T_B = 977;

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

// What TCP and UDP begin with.
header ports_t {
    bit<16> sport;
    bit<16> dport;
}

// What a packet that comes round remembers.
header again_t {
    bit<8> type; // AGAIN
    slot_t slot; // the path that the flow gets
}

// What egress tells ingress about a port.
header report_t {
    bit<8>   type; // REPORT
    bit<7>   pad;
    PortId_t port;
    level_t  level;
}

// A probe goes along one path to a leaf and comes back.
header path_probe_t {
    gid_t   src;   // leaf that it comes from, by the number of the groups that lead there
    gid_t   dst;   // leaf that it goes to
    bit<8>  path;  // slot at the leaf that sent it first
    bit<8>  flags; // 1 reply, 2 met a long queue
    bit<32> tx_ts; // when that leaf sent it, in 1024 ns
}

struct headers_t {
    pktgen_timer_header_t generated;
    again_t               again;
    report_t              report;
    ethernet_t            ethernet;
    path_probe_t          path_probe;
    ipv4_t                ipv4;
}

struct ingress_metadata_t {
    bool     bad_checksum;
    gid_t    gid;
    bit<8>   n;     // paths in the group; 0: there is nothing to choose
    slot_t   slot;  // the path chosen
    bit<16>  sport; // of TCP or UDP, else 0
    bit<16>  dport;
    ticks_t  now;    // when the packet came in
    bit<32>  bytes;  // length of the IPv4 packet
    bit<15>  flow;   // slot of the flow
    PortId_t port_0; // egress ports of the group's paths
    PortId_t port_1;
    PortId_t port_2;
    PortId_t port_3;
    bit<1>   own;     // a probe that begins here
    bit<1>   again;   // the packet has been round
    bit<1>   round;   // it has to go
    slot_t   then;    // and remember this
    level_t  level_0; // congestion of the paths
    level_t  level_1;
    level_t  level_2;
    level_t  level_3;
    gid_t    here;   // the number of this leaf, for a probe that has arrived
    bit<32>  path;   // that a probe was sent along
    ticks_t  trip;   // how long it took
    delay_t  rtt;    // the same in 16 bits
    level_t  mark;   // MARK, or 0
    level_t  share;  // of marked probes, MARK is all
    bit<8>   marks;  // the same, 255 is all
    bit<1>   learnt; // a probe has come back
    bit<8>   along;  // the path that it was sent along
    delay_t  rtt_0;  // round-trip times of the paths
    bit<8>   ecn_0;  // shares of marked probes

    level_t class_0; // classes of the paths
    delay_t rtt_1;
    bit<8>  ecn_1;

    level_t class_1;
    delay_t rtt_2;
    bit<8>  ecn_2;

    level_t class_2;
    delay_t rtt_3;
    bit<8>  ecn_3;

    level_t class_3;
    level_t class;    // of a path that a probe knows about
    bit<8>  clear;    // by how much its share of marks stays below T_ECN
    bit<8>  marked;   // by how much it exceeds it
    delay_t fast;     // by how much its delay stays below T_RTT_LOW
    delay_t late;     // by how much it exceeds T_RTT_HIGH
    bit<1>  fresh;    // the flow is new
    bit<12> draw_any; // decides about any path, and ties
    slot_t  slot_any;
    bit<1>  large; // it has sent much
    bit<32> rate;  // what it has sent in its window, if that has just ended
    bit<32> spare; // by how much that stays below RATE_LIMIT
    delay_t rtt_h; // of the flow's path
    bit<8>  ecn_h;
    level_t class_h;
    delay_t faster_0;  // by how much paths are notably faster
    bit<8>  clearer_0; // by how much fewer marks they have
    delay_t faster_1;
    bit<8>  clearer_1;
    delay_t faster_2;
    bit<8>  clearer_2;
    delay_t faster_3;
    bit<8>  clearer_3;
}

struct egress_metadata_t {
    ticks_t    now;  // when the packet came to egress
    bit<1>     due;  // a report is
    bit<8>     type; // what it begins with
    MirrorId_t session;
    PortId_t   port;
    bit<16>    sent;  // utilisation of the link, 256 is full
    level_t    level; // the same in 3 bits, times 256
    bit<19>    long;  // cells of the queue beyond ECN_CELLS
}

// What a flow has sent since its window began.
struct window_t {
    bit<32> bytes;
    ticks_t began;
}

// Registers.

Register<ticks_t, PortId_t>(PORTS) qe_clone; // when the port was last reported
Register<ticks_t, bit<15>>(FLOWS) fl_ts;     // when the flow's last packet came
Register<bit<32>, bit<15>>(FLOWS) fl_sent;   // bytes of the flow
Register<window_t, bit<15>>(FLOWS) fl_rate;  // bytes of the flow in its window of 2^10 us, and when that began
Register<slot_t, bit<15>>(FLOWS) fl_port;    // the flow's path

// Ingress parser.

parser LbIngressParser(packet_in pkt, out headers_t hdr, out ingress_metadata_t meta,
                       out ingress_intrinsic_metadata_t ig) {
    Checksum() ipv4_checksum;

    state start {
        pkt.extract(ig);
        pkt.advance(PORT_METADATA_SIZE);
        meta.n = 0;
        transition select(ig.ingress_port) {
            CPU_PORT: own;
            RECIRCULATION &&& PORT_OF_PIPE: round;
            default: ethernet;
        }
    }

    state ethernet {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            TYPE_PATH_PROBE: path_probe;
            default: accept;
        }
    }

    // With options the checksum counts as bad: the deparser has room for none.
    state ipv4 {
        pkt.extract(hdr.ipv4);
        ipv4_checksum.add(hdr.ipv4);
        meta.bad_checksum = ipv4_checksum.verify();
        // Only a first fragment without options has its ports where we look.
        transition select(hdr.ipv4.ihl, hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (5, 0, PROTOCOL_TCP): ports;
            (5, 0, PROTOCOL_UDP): ports;
            default: no_ports;
        }
    }

    // The ports are only looked at: they stay with the payload.
    state ports {
        ports_t both = pkt.lookahead<ports_t>();
        meta.sport = both.sport;
        meta.dport = both.dport;
        transition accept;
    }

    state no_ports {
        meta.sport = 0;
        meta.dport = 0;
        transition accept;
    }

    // Probes begin with the packet generator, or with the controller.
    state generated {
        pkt.extract(hdr.generated);
        transition own;
    }

    state own {
        meta.own = 1;
        transition ethernet;
    }

    // A packet of the packet generator begins with its number, others do not.
    state round {
        transition select(pkt.lookahead<bit<8>>()) {
            AGAIN: again;
            REPORT: report;
            default: generated;
        }
    }

    state again {
        pkt.extract(hdr.again);
        meta.again = 1;
        transition ethernet;
    }

    state report {
        pkt.extract(hdr.report);
        transition accept;
    }

    state path_probe {
        pkt.extract(hdr.path_probe);
        transition accept;
    }
}

// Ingress: the route, and the path.

// A copy of the levels of all ports, for the paths of one slot: packets read
// it, reports write it.
control Level(in headers_t hdr, in PortId_t port, inout level_t level) {
    Register<level_t, PortId_t>(PORTS) q_C;

    RegisterAction<level_t, PortId_t, level_t>(q_C) tell = {
        void apply(inout level_t held, out level_t told) {
            told = held;
        }
    };

    RegisterAction<level_t, PortId_t, level_t>(q_C) learn = {
        void apply(inout level_t held) {
            held = hdr.report.level;
        }
    };

    action tell_level() {
        level = tell.execute(port);
    }

    action learn_level() {
        learn.execute(port);
    }

    table access {
        key = {
            hdr.report.isValid(): exact;
        }
        actions = {
            tell_level;
            learn_level;
        }
        const entries = {
            false: tell_level();
            true: learn_level();
        }
        size = 2;
    }

    apply {
        access.apply();
    }
}

// What probes said of the paths in one slot: packets read it, probes that come
// back write it.
control Path(in headers_t hdr, in ingress_metadata_t meta, inout delay_t rtt_p, inout bit<8> ecn_p, inout level_t class_p)(bit<8> slot) {
    Register<delay_t, gid_t>(GROUPS) rtt;
    Register<bit<8>, gid_t>(GROUPS) ecn;
    Register<level_t, gid_t>(GROUPS) class;

    RegisterAction<delay_t, gid_t, delay_t>(rtt) read_rtt = {
        void apply(inout delay_t held, out delay_t told) {
            told = held;
        }
    };

    RegisterAction<delay_t, gid_t, delay_t>(rtt) write_rtt = {
        void apply(inout delay_t held) {
            held = meta.rtt;
        }
    };

    action tell_rtt() {
        rtt_p = read_rtt.execute(meta.gid);
    }

    action learn_rtt() {
        write_rtt.execute(meta.gid);
    }

    table delay {
        key = {
            meta.learnt: exact;
            meta.along: ternary;
        }
        actions = {
            tell_rtt;
            learn_rtt;
            NoAction;
        }
        const entries = {
            (0, _): tell_rtt();
            (1, slot): learn_rtt();
        }
        default_action = NoAction();
        size = 2;
    }

    RegisterAction<bit<8>, gid_t, bit<8>>(ecn) read_ecn = {
        void apply(inout bit<8> held, out bit<8> told) {
            told = held;
        }
    };

    RegisterAction<bit<8>, gid_t, bit<8>>(ecn) write_ecn = {
        void apply(inout bit<8> held) {
            held = meta.marks;
        }
    };

    action tell_ecn() {
        ecn_p = read_ecn.execute(meta.gid);
    }

    action learn_ecn() {
        write_ecn.execute(meta.gid);
    }

    table marks {
        key = {
            meta.learnt: exact;
            meta.along: ternary;
        }
        actions = {
            tell_ecn;
            learn_ecn;
            NoAction;
        }
        const entries = {
            (0, _): tell_ecn();
            (1, slot): learn_ecn();
        }
        default_action = NoAction();
        size = 2;
    }

    RegisterAction<level_t, gid_t, level_t>(class) read_class = {
        void apply(inout level_t held, out level_t told) {
            told = held;
        }
    };

    RegisterAction<level_t, gid_t, level_t>(class) write_class = {
        void apply(inout level_t held) {
            held = meta.class;
        }
    };

    action tell_class() {
        class_p = read_class.execute(meta.gid);
    }

    action learn_class() {
        write_class.execute(meta.gid);
    }

    table grade {
        key = {
            meta.learnt: exact;
            meta.along: ternary;
        }
        actions = {
            tell_class;
            learn_class;
            NoAction;
        }
        const entries = {
            (0, _): tell_class();
            (1, slot): learn_class();
        }
        default_action = NoAction();
        size = 2;
    }

    apply {
        delay.apply();
        marks.apply();
        grade.apply();
    }
}

control LbIngress(inout headers_t hdr, inout ingress_metadata_t meta,
                  in ingress_intrinsic_metadata_t ig,
                  in ingress_intrinsic_metadata_from_parser_t prsr,
                  inout ingress_intrinsic_metadata_for_deparser_t dprsr,
                  inout ingress_intrinsic_metadata_for_tm_t tm) {
    action drop() {
        dprsr.drop_ctl = 1;
    }

    action set_port(PortId_t port) {
        tm.ucast_egress_port = port;
    }

    action forward(PortId_t port, mac_t dmac, mac_t smac) {
        tm.ucast_egress_port = port;
        hdr.ethernet.dst = dmac;
        hdr.ethernet.src = smac;
    }

    action set_group(gid_t gid, bit<8> n) {
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

    Hash<ticks_t>(HashAlgorithm_t.IDENTITY) clock;

    action read_clock() {
        meta.now = clock.get(prsr.global_tstamp[41:10]);
    }

    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) length_hash;

    action find_length() {
        meta.bytes = length_hash.get(hdr.ipv4.total_len);
    }

    Hash<bit<15>>(HashAlgorithm_t.CRC16) flow_slot;

    action find_flow() {
        meta.flow = flow_slot.get({hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.sport, meta.dport});
    }

    // Port 511 stands for the slots that a group does not have.
    action set_candidates(PortId_t port_0, PortId_t port_1, PortId_t port_2, PortId_t port_3) {
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

    // The next pass counts the TTL.
    action come_again() {
        tm.ucast_egress_port = RECIRCULATION;
        tm.bypass_egress = 1;
        hdr.ipv4.ttl = hdr.ipv4.ttl + 1;
        hdr.again.setValid();
        hdr.again.type = AGAIN;
        hdr.again.slot = meta.then;
    }

    // A report is for all copies.
    action aim_at_report() {
        meta.port_0 = hdr.report.port;
        meta.port_1 = hdr.report.port;
        meta.port_2 = hdr.report.port;
        meta.port_3 = hdr.report.port;
    }

    Level() level_0;
    Level() level_1;
    Level() level_2;
    Level() level_3;

    // The probe starts along the path that it names.
    action start_probe() {
        hdr.path_probe.tx_ts = meta.now;
        meta.gid = hdr.path_probe.dst;
        meta.slot = hdr.path_probe.path;
        meta.n = 1;
    }

    action turn_probe() {
        hdr.path_probe.dst = hdr.path_probe.src;
        hdr.path_probe.src = meta.here;
        hdr.path_probe.flags = hdr.path_probe.flags | PROBE_REPLY;
        tm.ucast_egress_port = ig.ingress_port;
    }

    // A probe that has come back knows about the path it was sent along.
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) path_hash;

    action find_path() {
        meta.path = path_hash.get({hdr.path_probe.src[9:0], hdr.path_probe.path[3:0]});
        meta.trip = meta.now - hdr.path_probe.tx_ts;
        meta.learnt = 1;
        meta.gid = hdr.path_probe.src;
        meta.along = hdr.path_probe.path;
    }

    action at_home(gid_t id) {
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

    // The share of marked probes, averaged over some eight of them.
    Lpf<level_t, bit<32>>(PATHS) share;

    action find_mark() {
        meta.mark = MARK;
    }

    action find_no_mark() {
        meta.mark = 0;
    }

    table mark {
        key = {
            hdr.path_probe.flags: ternary;
        }
        actions = {
            find_mark;
            find_no_mark;
        }
        const entries = {
            2 &&& 2: find_mark();
            _: find_no_mark();
        }
        size = 2;
    }

    action average() {
        meta.share = share.execute(meta.mark, meta.path);
    }

    Hash<bit<8>>(HashAlgorithm_t.IDENTITY) marks_hash;

    action cut() {
        meta.marks = marks_hash.get(meta.share[15:8]);
    }

    Hash<delay_t>(HashAlgorithm_t.IDENTITY) rtt_hash;

    action find_rtt() {
        meta.rtt = rtt_hash.get(meta.trip[15:0]);
    }

    Path(0) path_0;
    Path(1) path_1;
    Path(2) path_2;
    Path(3) path_3;

    action compare_path() {
        meta.clear = T_ECN |-| meta.marks;
        meta.marked = meta.marks |-| T_ECN;
        meta.fast = (delay_t)T_RTT_LOW |-| meta.rtt;
        meta.late = meta.rtt |-| (delay_t)T_RTT_HIGH;
    }

    action set_class(level_t class) {
        meta.class = class;
    }

    // Good, grey or congested (Hermes, Algorithm 1).
    table classify {
        key = {
            meta.clear: ternary;
            meta.marked: ternary;
            meta.fast: ternary;
            meta.late: ternary;
        }
        actions = {
            set_class;
        }
        const entries = {
            (0, 0, _, _): set_class(GREY);
            (_, 0, 0, _): set_class(GREY);
            (_, 0, _, _): set_class(GOOD);
            (_, _, _, 0): set_class(GREY);
            (_, _, _, _): set_class(CLOSED);
        }
        size = 5;
    }

    Random<bit<12>>() random;

    action set_slot_any(slot_t slot) {
        meta.slot_any = slot;
    }

    table spread_any {
        key = {
            meta.n: exact;
            meta.draw_any: range;
        }
        actions = {
            set_slot_any;
        }
        const entries = {
            (1, 0 .. 4095): set_slot_any(0);
            (2, 0 .. 2047): set_slot_any(0);
            (2, 2048 .. 4095): set_slot_any(1);
            (3, 0 .. 1364): set_slot_any(0);
            (3, 1365 .. 2729): set_slot_any(1);
            (3, 2730 .. 4095): set_slot_any(2);
            (4, 0 .. 1023): set_slot_any(0);
            (4, 1024 .. 2047): set_slot_any(1);
            (4, 2048 .. 3071): set_slot_any(2);
            (4, 3072 .. 4095): set_slot_any(3);
        }
        size = 10;
    }

    // A flow that pauses for longer is new.
    RegisterAction<ticks_t, bit<15>, bit<1>>(fl_ts) note_time = {
        void apply(inout ticks_t last, out bit<1> fresh) {
            if ((span_t)(meta.now - last) > (span_t)FLOW_TIMEOUT || (span_t)(meta.now - last) < 0) {
                fresh = 1;
            } else {
                fresh = 0;
            }
            last = meta.now;
        }
    };

    RegisterAction<bit<32>, bit<15>, bit<1>>(fl_sent) count_flow = {
        void apply(inout bit<32> sent, out bit<1> large) {
            if (meta.fresh == 1) {
                sent = meta.bytes;
            } else {
                sent = sent |+| meta.bytes;
            }
            if (sent > S_SENT) {
                large = 1;
            } else {
                large = 0;
            }
        }
    };

    // At the end of a window: what the flow has sent in it.
    RegisterAction<window_t, bit<15>, bit<32>>(fl_rate) count_rate = {
        void apply(inout window_t held, out bit<32> bytes) {
            bytes = 0;
            if ((span_t)(meta.now - held.began) > (span_t)WINDOW || (span_t)(meta.now - held.began) < 0) {
                bytes = held.bytes;
                held.bytes = meta.bytes;
                held.began = meta.now;
            } else {
                held.bytes = held.bytes + meta.bytes;
            }
        }
    };

    RegisterAction<slot_t, bit<15>, slot_t>(fl_port) tell_path = {
        void apply(inout slot_t held, out slot_t slot) {
            slot = held;
        }
    };

    RegisterAction<slot_t, bit<15>, slot_t>(fl_port) hold_path = {
        void apply(inout slot_t held, out slot_t slot) {
            held = hdr.again.slot;
            slot = held;
        }
    };

    action recall() {
        meta.slot = tell_path.execute(meta.flow);
    }

    action remember() {
        meta.slot = hold_path.execute(meta.flow);
    }

    table path_of_flow {
        key = {
            meta.again: exact;
        }
        actions = {
            recall;
            remember;
        }
        const entries = {
            0: recall();
            1: remember();
        }
        size = 2;
    }

    action held_is_0() {
        meta.rtt_h = meta.rtt_0;
        meta.ecn_h = meta.ecn_0;
        meta.class_h = meta.class_0;
    }

    action held_is_1() {
        meta.rtt_h = meta.rtt_1;
        meta.ecn_h = meta.ecn_1;
        meta.class_h = meta.class_1;
    }

    action held_is_2() {
        meta.rtt_h = meta.rtt_2;
        meta.ecn_h = meta.ecn_2;
        meta.class_h = meta.class_2;
    }

    action held_is_3() {
        meta.rtt_h = meta.rtt_3;
        meta.ecn_h = meta.ecn_3;
        meta.class_h = meta.class_3;
    }

    table path_held {
        key = {
            meta.slot: exact;
        }
        actions = {
            held_is_0;
            held_is_1;
            held_is_2;
            held_is_3;
        }
        const entries = {
            0: held_is_0();
            1: held_is_1();
            2: held_is_2();
            3: held_is_3();
        }
        size = 4;
    }

    // A good path if there is any, else a grey one, of these the one with the
    // lowest sending rate (Hermes, Algorithm 2).
    action find_costs() {
        meta.level_0 = meta.level_0 | meta.class_0;
        meta.level_1 = meta.level_1 | meta.class_1;
        meta.level_2 = meta.level_2 | meta.class_2;
        meta.level_3 = meta.level_3 | meta.class_3;
        meta.rtt_h = meta.rtt_h |-| (delay_t)DELTA_RTT;
        meta.ecn_h = meta.ecn_h |-| (bit<8>)DELTA_ECN;
    }

    action find_gains() {
        meta.spare = RATE_LIMIT |-| meta.rate;
        meta.faster_0 = meta.rtt_h |-| meta.rtt_0;
        meta.clearer_0 = meta.ecn_h |-| meta.ecn_0;
        meta.faster_1 = meta.rtt_h |-| meta.rtt_1;
        meta.clearer_1 = meta.ecn_h |-| meta.ecn_1;
        meta.faster_2 = meta.rtt_h |-| meta.rtt_2;
        meta.clearer_2 = meta.ecn_h |-| meta.ecn_2;
        meta.faster_3 = meta.rtt_h |-| meta.rtt_3;
        meta.clearer_3 = meta.ecn_h |-| meta.ecn_3;
    }

    // A flow that has a path moves for a notably better one only.
    action close_0() {
        meta.level_0 = CLOSED;
    }

    table weigh_0 {
        key = {
            meta.fresh: ternary;
            meta.faster_0: ternary;
            meta.clearer_0: ternary;
        }
        actions = {
            close_0;
            NoAction;
        }
        const entries = {
            (0, 0, _): close_0();
            (0, _, 0): close_0();
        }
        default_action = NoAction();
        size = 2;
    }

    action close_1() {
        meta.level_1 = CLOSED;
    }

    table weigh_1 {
        key = {
            meta.fresh: ternary;
            meta.faster_1: ternary;
            meta.clearer_1: ternary;
        }
        actions = {
            close_1;
            NoAction;
        }
        const entries = {
            (0, 0, _): close_1();
            (0, _, 0): close_1();
        }
        default_action = NoAction();
        size = 2;
    }

    action close_2() {
        meta.level_2 = CLOSED;
    }

    table weigh_2 {
        key = {
            meta.fresh: ternary;
            meta.faster_2: ternary;
            meta.clearer_2: ternary;
        }
        actions = {
            close_2;
            NoAction;
        }
        const entries = {
            (0, 0, _): close_2();
            (0, _, 0): close_2();
        }
        default_action = NoAction();
        size = 2;
    }

    action close_3() {
        meta.level_3 = CLOSED;
    }

    table weigh_3 {
        key = {
            meta.fresh: ternary;
            meta.faster_3: ternary;
            meta.clearer_3: ternary;
        }
        actions = {
            close_3;
            NoAction;
        }
        const entries = {
            (0, 0, _): close_3();
            (0, _, 0): close_3();
        }
        default_action = NoAction();
        size = 2;
    }

    // Below its level each path gets its place behind the one that ties are decided
    // for, and its slot.
    action set_ranks(level_t rank_0, level_t rank_1, level_t rank_2, level_t rank_3) {
        meta.level_0 = meta.level_0 | rank_0;
        meta.level_1 = meta.level_1 | rank_1;
        meta.level_2 = meta.level_2 | rank_2;
        meta.level_3 = meta.level_3 | rank_3;
    }

    // Of several that are as good the first counts from the one drawn on.
    table ranks {
        key = {
            meta.n: exact;
            meta.draw_any: range;
        }
        actions = {
            set_ranks;
            NoAction;
        }
        const entries = {
            (1, 0 .. 4095): set_ranks(0x00, 0x11, 0x22, 0x33);
            (2, 0 .. 2047): set_ranks(0x00, 0x11, 0x22, 0x33);
            (2, 2048 .. 4095): set_ranks(0x10, 0x01, 0x22, 0x33);
            (3, 0 .. 1364): set_ranks(0x00, 0x11, 0x22, 0x33);
            (3, 1365 .. 2729): set_ranks(0x20, 0x01, 0x12, 0x33);
            (3, 2730 .. 4095): set_ranks(0x10, 0x21, 0x02, 0x33);
            (4, 0 .. 1023): set_ranks(0x00, 0x11, 0x22, 0x33);
            (4, 1024 .. 2047): set_ranks(0x30, 0x01, 0x12, 0x23);
            (4, 2048 .. 3071): set_ranks(0x20, 0x31, 0x02, 0x13);
            (4, 3072 .. 4095): set_ranks(0x10, 0x21, 0x32, 0x03);
        }
        default_action = NoAction();
        size = 10;
    }

    // The least of all, pair by pair.
    action round_0() {
        meta.level_0 = min(meta.level_0, meta.level_1);
        meta.level_2 = min(meta.level_2, meta.level_3);
    }

    action round_1() {
        meta.level_0 = min(meta.level_0, meta.level_2);
    }

    action move(slot_t slot) {
        meta.then = slot;
        meta.round = 1;
    }

    action move_anywhere() {
        meta.then = meta.slot_any;
        meta.round = 1;
    }

    // A new flow gets the best path, any if all are congested. Another one moves if
    // its path is congested and it is large and slow.
    table decide {
        key = {
            meta.fresh: ternary;
            meta.large: ternary;
            meta.rate: ternary;
            meta.spare: ternary;
            meta.class_h: ternary;
            meta.level_0: ternary;
        }
        actions = {
            move;
            move_anywhere;
            NoAction;
        }
        const entries = {
            (1, _, _, _, _, 0 &&& 0x800F): move(0);
            (1, _, _, _, _, 1 &&& 0x800F): move(1);
            (1, _, _, _, _, 2 &&& 0x800F): move(2);
            (1, _, _, _, _, 3 &&& 0x800F): move(3);
            (1, _, _, _, _, _): move_anywhere();
            (_, _, 0, _, _, _): NoAction();
            (_, _, _, 0, _, _): NoAction();
            (_, 1, _, _, CLOSED, 0 &&& 0x800F): move(0);
            (_, 1, _, _, CLOSED, 1 &&& 0x800F): move(1);
            (_, 1, _, _, CLOSED, 2 &&& 0x800F): move(2);
            (_, 1, _, _, CLOSED, 3 &&& 0x800F): move(3);
        }
        default_action = NoAction();
        size = 11;
    }

    apply {
        read_clock();
        hdr.generated.setInvalid();
        if (hdr.report.isValid()) {
            aim_at_report();
            drop();
        } else if (hdr.path_probe.isValid()) {
            if (meta.own == 1) {
                start_probe();
            } else {
                switch (leaf.apply().action_run) {
                    at_home: {
                        if (hdr.path_probe.flags[0:0] == 0) {
                            turn_probe();
                        } else {
                            find_path();
                            find_rtt();
                            mark.apply();
                            average();
                            cut();
                            compare_path();
                            classify.apply();
                            drop();
                        }
                    }
                }
            }
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && !meta.bad_checksum) {
            find_length();
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            ipv4_route.apply();
            if (meta.n != 0) {
                candidates.apply();
            }
        } else {
            drop();
        }
        level_0.apply(hdr, meta.port_0, meta.level_0);
        level_1.apply(hdr, meta.port_1, meta.level_1);
        level_2.apply(hdr, meta.port_2, meta.level_2);
        level_3.apply(hdr, meta.port_3, meta.level_3);
        path_0.apply(hdr, meta, meta.rtt_0, meta.ecn_0, meta.class_0);
        path_1.apply(hdr, meta, meta.rtt_1, meta.ecn_1, meta.class_1);
        path_2.apply(hdr, meta, meta.rtt_2, meta.ecn_2, meta.class_2);
        path_3.apply(hdr, meta, meta.rtt_3, meta.ecn_3, meta.class_3);
        if (meta.n != 0) {
            if (!hdr.path_probe.isValid()) {
                find_flow();
                path_of_flow.apply();
                if (meta.again == 0) {
                    meta.draw_any = random.get();
                    spread_any.apply();
                    meta.fresh = note_time.execute(meta.flow);
                    meta.large = count_flow.execute(meta.flow);
                    meta.rate = count_rate.execute(meta.flow);
                    path_held.apply();
                    find_costs();
                    ranks.apply();
                    find_gains();
                    weigh_0.apply();
                    weigh_1.apply();
                    weigh_2.apply();
                    weigh_3.apply();
                    round_0();
                    round_1();
                    decide.apply();
                }
            }

            member.apply();
        }
        if (meta.round == 1) {
            come_again();
        } else {
            hdr.again.setInvalid();
        }
    }
}

control LbIngressDeparser(packet_out pkt, inout headers_t hdr, in ingress_metadata_t meta,
                          in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    Checksum() ipv4_checksum;

    apply {
        hdr.ipv4.checksum = ipv4_checksum.update({
            hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,
            hdr.ipv4.total_len, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.frag_offset,
            hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst
        });
        pkt.emit(hdr.again);
        pkt.emit(hdr.ethernet);
        pkt.emit(hdr.path_probe);
        pkt.emit(hdr.ipv4);
    }
}

// Egress: measure, and report to ingress.

parser LbEgressParser(packet_in pkt, out headers_t hdr, out egress_metadata_t meta,
                      out egress_intrinsic_metadata_t eg) {
    state start {
        pkt.extract(eg);
        meta.type = REPORT;
        meta.session = SESSION_REPORT;
        transition select(eg.egress_port) {
            RECIRCULATION &&& PORT_OF_PIPE: report;
            default: ethernet;
        }
    }

    state ethernet {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_PATH_PROBE: path_probe;
            default: accept;
        }
    }

    state report {
        pkt.extract(hdr.report);
        transition accept;
    }

    state path_probe {
        pkt.extract(hdr.path_probe);
        transition accept;
    }
}

control LbEgress(inout headers_t hdr, inout egress_metadata_t meta,
                 in egress_intrinsic_metadata_t eg,
                 in egress_intrinsic_metadata_from_parser_t prsr,
                 inout egress_intrinsic_metadata_for_deparser_t dprsr,
                 inout egress_intrinsic_metadata_for_output_port_t oport) {
    Hash<ticks_t>(HashAlgorithm_t.IDENTITY) clock;

    action read_clock() {
        meta.now = clock.get(prsr.global_tstamp[41:10]);
    }

    // State return (QALL, Alg. 3): what was measured goes to ingress if the last
    // time is longer ago than T_b.
    RegisterAction<ticks_t, PortId_t, bit<1>>(qe_clone) is_due = {
        void apply(inout ticks_t reported, out bit<1> due) {
            if ((span_t)(meta.now - reported) > (span_t)T_B || (span_t)(meta.now - reported) < 0) {
                reported = meta.now;
                due = 1;
            } else {
                due = 0;
            }
        }
    };

    action return_state() {
        dprsr.mirror_type = MIRROR_REPORT;
        meta.port = eg.egress_port;
    }

    // What was sent lately along the paths that begin with the port.
    Lpf<bit<16>, PortId_t>(PORTS) path_rate;

    action count_sent() {
        meta.sent = path_rate.execute(eg.pkt_length, eg.egress_port);
    }

    action set_level(level_t level) {
        meta.level = level;
    }

    table quantise {
        key = {
            meta.sent: range;
        }
        actions = {
            set_level;
        }
        const entries = {
            0 .. 31: set_level(0);
            32 .. 63: set_level(256);
            64 .. 95: set_level(512);
            96 .. 127: set_level(768);
            128 .. 159: set_level(1024);
            160 .. 191: set_level(1280);
            192 .. 223: set_level(1536);
            224 .. 65535: set_level(1792);
        }
        size = 8;
    }

    action measure_queue() {
        meta.long = eg.enq_qdepth |-| ECN_CELLS;
    }

    action mark_probe() {
        hdr.path_probe.flags = hdr.path_probe.flags | PROBE_CE;
    }

    apply {
        if (!hdr.report.isValid()) {
            read_clock();
            count_sent();
            quantise.apply();
            measure_queue();
            if (hdr.path_probe.isValid() && meta.long != 0) {
                mark_probe();
            }
            meta.due = is_due.execute(eg.egress_port);
            if (meta.due == 1) {
                return_state();
            }
        }
    }
}

control LbEgressDeparser(packet_out pkt, inout headers_t hdr, in egress_metadata_t meta,
                         in egress_intrinsic_metadata_for_deparser_t dprsr) {
    Mirror(MIRROR_REPORT) mirror;

    apply {
        if (dprsr.mirror_type == MIRROR_REPORT) {
            mirror.emit<report_t>(meta.session, {meta.type, 0, meta.port, meta.level});
        }
        pkt.emit(hdr);
    }
}

Pipeline(LbIngressParser(), LbIngress(), LbIngressDeparser(),
         LbEgressParser(), LbEgress(), LbEgressDeparser()) pipe;

Switch(pipe) main;
