// presto+rlb-star: flowcells in turn, around paths that PFC is about to pause
// or that lead to a failed switch, with limits to recirculation.
//
// granularity  so many bytes of a flow, then another path
// choice       the next path in turn
// guard        around paths that PFC is about to pause or that lead to a
//              failed switch, with limits to recirculation
//
// For groups of up to 4 paths, as leaf. After He et al., Presto, SIGCOMM 2015.
#include <core.p4>
#include <t2na.p4>

// Types and constants.

typedef bit<48> mac_t;
typedef bit<32> ipv4_addr_t;
typedef bit<16> gid_t;   // a group of paths, all that lead to one destination
typedef bit<8> slot_t;   // a path within its group
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

const bit<16> TYPE_CNM = 0x88B5;
const bit<8> BRIDGE = 0; // first byte of a packet from ingress
const bit<8> CNM = 1;    // of a warning
const MirrorType_t MIRROR_CNM = 2;

// Q_th = d*C, the lower end of [d*C, Q_PFC - d*C*(n-1)] (Section III-B.3), in bytes.
const bit<32> Q_TH = 10000;

const bit<8> AGAIN = 0xFE; // first byte of a packet that comes round

const MirrorType_t MIRROR_REPORT = 1;
const MirrorId_t SESSION_REPORT = 1; // leads to RECIRCULATION
const bit<8> REPORT = 0xFF;          // first byte of a report

const bit<16> TYPE_PATH_PROBE = 0x88B7;
const bit<8> PROBE_REPLY = 1; // flags of a probe

const bit<32> PORTS = 512;   // ports of the switch
const bit<32> FLOWS = 32768; // slots for flows, by the CRC16 of the 5-tuple
const bit<32> GROUPS = 1024; // groups of paths

// Delta t: how often the growth of an ingress queue is looked at; dt=1ms. RLB,
// Section III-B: the link delay, 2 us; a software switch wants 1 ms.
const ticks_t DT = 977;

// T_warn: a warning goes out if the queue would reach Q_PFC sooner; twarn=2ms.
// RLB, Section III-B: a given threshold.
const bit<64> T_WARN = 1953;

// Q_PFC: an ingress queue of this length pauses the switch upstream;
// qpfc=256KiB. RLB, Section II-B: 256 KB.
const bit<32> Q_PFC = 262144;

// how long a warning counts, and how soon it may be repeated; hold=2ms. left
// open by RLB: two RTTs.
const ticks_t HOLD = 1953;

// the size of a flowcell; cell=64KiB. Presto: 64 KB, the largest segment that
// hosts offload.
const bit<32> CELL_BYTES = 65536;

// T_b: a port's state goes to ingress at most this often; tb=20us. QALL,
// Section IV-E: the updating period trades freshness for overhead, T_b = 1 ms.
const ticks_t T_B = 20;

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

// What ingress tells egress about a packet.
header bridge_t {
    bit<8>   type; // BRIDGE
    bit<7>   pad;
    PortId_t port;  // where it came in
    bit<32>  bytes; // its length, 0 if it is not counted
}

// A congestion notification to the switch upstream (Section III-B.1).
header cnm_t {
    bit<8>   type; // CNM
    bit<7>   pad;
    PortId_t port; // ingress port that will pause
    bit<32>  qlen; // its queue in bytes
}

// What a packet that comes round remembers.
header again_t {
    bit<8>   type; // AGAIN
    slot_t   slot; // the path that the packet waits for
    bit<7>   pad;
    PortId_t port;  // where the packet came in
    ticks_t  since; // when the packet came
    ticks_t  sent;  // when it went round
    bit<32>  count; // how often
}

// What egress tells ingress about a port.
header report_t {
    bit<8>   type; // REPORT
    bit<7>   pad;
    PortId_t port;
    bit<32>  bytes; // that came in at the port and have left
}

// A probe goes along one path to a leaf and comes back.
header path_probe_t {
    gid_t   src;   // leaf that it comes from, by the number of the groups that lead there
    gid_t   dst;   // leaf that it goes to
    bit<8>  path;  // slot at the leaf that sent it first
    bit<8>  flags; // 1 reply
    bit<32> tx_ts; // when that leaf sent it, in 1024 ns
}

struct headers_t {
    pktgen_timer_header_t generated;
    bridge_t              bridge;
    again_t               again;
    report_t              report;
    ethernet_t            ethernet;
    cnm_t                 cnm;
    path_probe_t          path_probe;
    ipv4_t                ipv4;
}

struct ingress_metadata_t {
    bool       bad_checksum;
    gid_t      gid;
    bit<8>     n;     // paths in the group; 0: there is nothing to choose
    slot_t     slot;  // the path chosen
    bit<16>    sport; // of TCP or UDP, else 0
    bit<16>    dport;
    ticks_t    now;    // when the packet came in
    bit<32>    bytes;  // length of the IPv4 packet
    bit<15>    flow;   // slot of the flow
    PortId_t   port_0; // egress ports of the group's paths
    PortId_t   port_1;
    PortId_t   port_2;
    PortId_t   port_3;
    bit<1>     own;      // a probe that begins here
    PortId_t   in_port;  // where the packet came in, or that a report is about
    bit<32>    counted;  // bytes of it that are not counted yet
    bit<32>    came;     // bytes that came in there
    bit<32>    went;     // those that have left
    bit<32>    Q;        // the ingress queue
    bit<32>    excess;   // of Q over Q_TH
    bit<32>    Q_before; // Q when the interval began
    bit<32>    growth;   // since then
    bit<32>    room;     // until Q_PFC
    bit<32>    near;     // by how much the growth exceeds the room within T_WARN
    ticks_t    hold;     // end of a warning that begins now
    bit<8>     notice;   // CNM
    bit<1>     warn;     // a warning is due
    MirrorId_t session;
    bit<1>     warned_0; // paths that lead to a port which may be paused
    bit<1>     warned_1;
    bit<1>     warned_2;
    bit<1>     warned_3;
    bit<1>     again;  // the packet has been round
    bit<1>     round;  // it has to go
    slot_t     then;   // and remember this
    gid_t      here;   // the number of this leaf, for a probe that has arrived
    bit<32>    path;   // that a probe was sent along
    ticks_t    trip;   // how long it took
    delay_t    rtt;    // the same in 16 bits
    bit<1>     learnt; // a probe has come back
    bit<8>     along;  // the path that it was sent along
    delay_t    rtt_0;  // round-trip times of the paths

    delay_t rtt_1;

    delay_t rtt_2;

    delay_t rtt_3;
    bit<32> cell;       // whose turn it is, from 0
    bit<32> last;       // n - 1
    bit<32> first;      // path of the flow's first cell
    bit<32> sum;        // that and the turn of the cell
    bit<12> draw;       // decides about first
    slot_t  other;      // the path that is to be taken otherwise
    ticks_t since;      // when the packet came
    ticks_t spent;      // since then
    ticks_t round_took; // the round that the packet comes from
    bit<32> count;      // rounds, with the one that may follow
    bit<32> limit;      // of them
    bit<32> beyond;     // rounds that are too many
    delay_t elapsed;    // spent in 16 bits
    delay_t took;       // round_took in 16 bits
    delay_t loop;       // what the last round of any took
    delay_t need;       // what waiting costs in all
    delay_t rtt_base;   // of the path chosen
    delay_t rtt_other;
    delay_t gain; // of waiting
    delay_t over; // of the gain over one round
    delay_t lack; // of the gain for what waiting costs in all
}

struct egress_metadata_t {
    bit<32>    bytes; // that came in at the port and have left
    ticks_t    now;   // when the packet came to egress
    bit<1>     due;   // a report is
    bit<8>     type;  // what it begins with
    MirrorId_t session;
    PortId_t   port;
}

// What is expected of a port.
struct warning_t {
    bit<32> closed; // 1: nothing good
    ticks_t until;  // a pause
}

// The ingress queue when an interval began.
struct base_t {
    bit<32> Q;
    ticks_t at;
}

struct flowcell_t {
    bit<32> bytes;
    bit<32> cell;
}

// Registers.

Register<bit<32>, PortId_t>(PORTS) ig_in;     // bytes that came in at the port
Register<bit<32>, PortId_t>(PORTS) ig_out;    // those of them that have left the switch, as last reported; Q is ig_in - ig_out
Register<bit<32>, PortId_t>(PORTS) eg_out;    // bytes that came in at the port and have left the switch
Register<base_t, PortId_t>(PORTS) ig_0;       // Q when the last interval began, and when that was
Register<ticks_t, PortId_t>(PORTS) warn_sent; // when the switch behind the port was warned last
Register<ticks_t, PortId_t>(PORTS) qe_clone;  // when the port was last reported
Register<flowcell_t, bit<15>>(FLOWS) fc;      // bytes of the flow's cell so far, and whose turn it is
Register<delay_t, bit<32>>(1) t_rc;           // how long the last recirculation took
Register<bit<32>, bit<32>>(1) nrc;            // how often a packet may come round
Register<bit<32>, PortId_t>(PORTS) rc_cnt;    // recirculations for want of the port
Register<bit<32>, bit<32>>(1) rc_sum;         // all of them
Register<bit<32>, bit<32>>(1) rc_pkts;        // packets that chose among paths

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
            TYPE_CNM: cnm;
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

    state cnm {
        pkt.extract(hdr.cnm);
        transition accept;
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

// A copy of the warnings about all ports, for the paths of one slot: packets
// read it, warnings write it.
control Warning(in headers_t hdr, in ingress_metadata_t meta, in PortId_t port, inout bit<1> warned) {
    Register<warning_t, PortId_t>(PORTS) until;

    // A warning is over if more than HOLD is left of it: the clock has wrapped.
    RegisterAction<warning_t, PortId_t, bit<1>>(until) tell = {
        void apply(inout warning_t held, out bit<1> expected) {
            if (held.closed != 0 || (span_t)(held.until - meta.now) > 0 && (span_t)(held.until - meta.now) <= (span_t)HOLD) {
                expected = 1;
            } else {
                expected = 0;
            }
        }
    };

    RegisterAction<warning_t, PortId_t, bit<1>>(until) learn = {
        void apply(inout warning_t held) {
            held.until = meta.hold;
        }
    };

    action tell_warning() {
        warned = tell.execute(port);
    }

    action learn_warning() {
        learn.execute(port);
    }

    table access {
        key = {
            hdr.cnm.isValid(): exact;
        }
        actions = {
            tell_warning;
            learn_warning;
        }
        const entries = {
            false: tell_warning();
            true: learn_warning();
        }
        size = 2;
    }

    apply {
        access.apply();
    }
}

// What probes said of the paths in one slot: packets read it, probes that come
// back write it.
control Path(in headers_t hdr, in ingress_metadata_t meta, inout delay_t rtt_p)(bit<8> slot) {
    Register<delay_t, gid_t>(GROUPS) rtt;

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

    apply {
        delay.apply();
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

    action find_origin() {
        meta.in_port = ig.ingress_port;
        meta.counted = meta.bytes;
    }

    // A packet that has been round was counted when it came.
    action recall_origin() {
        meta.in_port = hdr.again.port;
    }

    // The port that a CNM comes in at leads to the switch that will pause it.
    action heed_warning() {
        meta.port_0 = ig.ingress_port;
        meta.port_1 = ig.ingress_port;
        meta.port_2 = ig.ingress_port;
        meta.port_3 = ig.ingress_port;
    }

    action find_hold() {
        meta.hold = meta.now + HOLD;
    }

    Warning() warning_0;
    Warning() warning_1;
    Warning() warning_2;
    Warning() warning_3;

    // The ingress queue: what came in and has not left.
    RegisterAction<bit<32>, PortId_t, bit<32>>(ig_in) count_in = {
        void apply(inout bit<32> held, out bit<32> came) {
            held = held + meta.counted;
            came = held;
        }
    };

    RegisterAction<bit<32>, PortId_t, bit<32>>(ig_out) tell_out = {
        void apply(inout bit<32> held, out bit<32> went) {
            went = held;
        }
    };

    RegisterAction<bit<32>, PortId_t, bit<32>>(ig_out) learn_out = {
        void apply(inout bit<32> held, out bit<32> went) {
            held = hdr.report.bytes;
            went = held;
        }
    };

    action tell_departures() {
        meta.went = tell_out.execute(meta.in_port);
    }

    action learn_departures() {
        meta.went = learn_out.execute(meta.in_port);
    }

    table departures {
        key = {
            hdr.report.isValid(): exact;
        }
        actions = {
            tell_departures;
            learn_departures;
        }
        const entries = {
            false: tell_departures();
            true: learn_departures();
        }
        size = 2;
    }

    action find_queue() {
        meta.Q = meta.came |-| meta.went;
    }

    // PFC prediction (Section III-B.1): the growth of the ingress queue within DT says
    // whether it reaches Q_PFC within T_WARN, which is 2^1 DT.
    RegisterAction<base_t, PortId_t, bit<32>>(ig_0) find_base = {
        void apply(inout base_t held, out bit<32> Q) {
            Q = held.Q;
            if ((span_t)(meta.now - held.at) > (span_t)DT || (span_t)(meta.now - held.at) < 0) {
                held.Q = meta.Q;
                held.at = meta.now;
            }
        }
    };

    action find_growth() {
        meta.growth = meta.Q |-| meta.Q_before;
    }

    action project() {
        meta.growth = meta.growth << 1;
    }

    action compare_growth() {
        meta.near = meta.growth |-| meta.room;
    }

    action find_room() {
        meta.excess = meta.Q |-| Q_TH;
        meta.room = Q_PFC |-| meta.Q;
    }

    RegisterAction<ticks_t, PortId_t, bit<1>>(warn_sent) is_time = {
        void apply(inout ticks_t sent, out bit<1> due) {
            if ((span_t)(meta.now - sent) > (span_t)HOLD || (span_t)(meta.now - sent) < 0) {
                sent = meta.now;
                due = 1;
            } else {
                due = 0;
            }
        }
    };

    // The warning goes back to where the packet came from.
    action warn(MirrorId_t session) {
        dprsr.mirror_type = MIRROR_CNM;
        meta.session = session;
        meta.notice = CNM;
    }

    table upstream {
        key = {
            meta.in_port: exact;
        }
        actions = {
            warn;
            NoAction;
        }
        default_action = NoAction();
        size = 512;
    }

    action set_detour(slot_t slot) {
        meta.other = slot;
    }

    action keep_path() {
        meta.other = meta.slot;
    }

    // The path chosen, or the next in the order of slots that nothing warns about
    // (Algorithm 1); the first choice if there is none.
    table detour {
        key = {
            meta.n: exact;
            meta.slot: exact;
            meta.warned_0: ternary;
            meta.warned_1: ternary;
            meta.warned_2: ternary;
            meta.warned_3: ternary;
        }
        actions = {
            set_detour;
            keep_path;
        }
        const entries = {
            (2, 0, 0, _, _, _): set_detour(0);
            (2, 0, _, 0, _, _): set_detour(1);
            (2, 1, _, 0, _, _): set_detour(1);
            (2, 1, 0, _, _, _): set_detour(0);
            (3, 0, 0, _, _, _): set_detour(0);
            (3, 0, _, 0, _, _): set_detour(1);
            (3, 0, _, _, 0, _): set_detour(2);
            (3, 1, _, 0, _, _): set_detour(1);
            (3, 1, _, _, 0, _): set_detour(2);
            (3, 1, 0, _, _, _): set_detour(0);
            (3, 2, _, _, 0, _): set_detour(2);
            (3, 2, 0, _, _, _): set_detour(0);
            (3, 2, _, 0, _, _): set_detour(1);
            (4, 0, 0, _, _, _): set_detour(0);
            (4, 0, _, 0, _, _): set_detour(1);
            (4, 0, _, _, 0, _): set_detour(2);
            (4, 0, _, _, _, 0): set_detour(3);
            (4, 1, _, 0, _, _): set_detour(1);
            (4, 1, _, _, 0, _): set_detour(2);
            (4, 1, _, _, _, 0): set_detour(3);
            (4, 1, 0, _, _, _): set_detour(0);
            (4, 2, _, _, 0, _): set_detour(2);
            (4, 2, _, _, _, 0): set_detour(3);
            (4, 2, 0, _, _, _): set_detour(0);
            (4, 2, _, 0, _, _): set_detour(1);
            (4, 3, _, _, _, 0): set_detour(3);
            (4, 3, 0, _, _, _): set_detour(0);
            (4, 3, _, 0, _, _): set_detour(1);
            (4, 3, _, _, 0, _): set_detour(2);
        }
        default_action = keep_path();
        size = 29;
    }

    action add_bridge() {
        hdr.bridge.setValid();
        hdr.bridge.type = BRIDGE;
        hdr.bridge.port = meta.in_port;
        hdr.bridge.bytes = meta.bytes;
    }

    // The next pass counts the TTL.
    action come_again() {
        tm.ucast_egress_port = RECIRCULATION;
        tm.bypass_egress = 1;
        hdr.ipv4.ttl = hdr.ipv4.ttl + 1;
        hdr.again.setValid();
        hdr.again.type = AGAIN;
        hdr.again.slot = meta.then;
        hdr.again.port = meta.in_port;
        hdr.again.since = meta.since;
        hdr.again.sent = meta.now;
        hdr.again.count = meta.count;
    }

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
        hdr.path_probe.flags = PROBE_REPLY;
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

    Hash<delay_t>(HashAlgorithm_t.IDENTITY) rtt_hash;

    action find_rtt() {
        meta.rtt = rtt_hash.get(meta.trip[15:0]);
    }

    Path(0) path_0;
    Path(1) path_1;
    Path(2) path_2;
    Path(3) path_3;

    // A packet that would not fit into the flow's cell starts the next one.
    RegisterAction<flowcell_t, bit<15>, bit<32>>(fc) fill_cell = {
        void apply(inout flowcell_t held, out bit<32> cell) {
            if (held.bytes + meta.bytes > CELL_BYTES) {
                held.bytes = meta.bytes;
                if (held.cell >= meta.last) {
                    held.cell = 0;
                } else {
                    held.cell = held.cell + 1;
                }
            } else {
                held.bytes = held.bytes + meta.bytes;
            }
            cell = held.cell;
        }
    };

    // The flow's paths in turn, from one that its hash gives.
    Hash<bit<12>>(HashAlgorithm_t.CRC16) first_hash;

    action set_first(bit<32> last, bit<32> first) {
        meta.last = last;
        meta.first = first;
    }

    table begin {
        key = {
            meta.n: exact;
            meta.draw: range;
        }
        actions = {
            set_first;
        }
        const entries = {
            (1, 0 .. 4095): set_first(0, 0);
            (2, 0 .. 2047): set_first(1, 0);
            (2, 2048 .. 4095): set_first(1, 1);
            (3, 0 .. 1364): set_first(2, 0);
            (3, 1365 .. 2729): set_first(2, 1);
            (3, 2730 .. 4095): set_first(2, 2);
            (4, 0 .. 1023): set_first(3, 0);
            (4, 1024 .. 2047): set_first(3, 1);
            (4, 2048 .. 3071): set_first(3, 2);
            (4, 3072 .. 4095): set_first(3, 3);
        }
        size = 10;
    }

    action add_turn() {
        meta.sum = meta.first + meta.cell;
    }

    action set_slot(slot_t slot) {
        meta.slot = slot;
    }

    table wrap {
        key = {
            meta.n: exact;
            meta.sum: exact;
        }
        actions = {
            set_slot;
        }
        const entries = {
            (1, 0): set_slot(0);
            (2, 0): set_slot(0);
            (2, 1): set_slot(1);
            (2, 2): set_slot(0);
            (3, 0): set_slot(0);
            (3, 1): set_slot(1);
            (3, 2): set_slot(2);
            (3, 3): set_slot(0);
            (3, 4): set_slot(1);
            (4, 0): set_slot(0);
            (4, 1): set_slot(1);
            (4, 2): set_slot(2);
            (4, 3): set_slot(3);
            (4, 4): set_slot(0);
            (4, 5): set_slot(1);
            (4, 6): set_slot(2);
        }
        size = 16;
    }

    // What a packet remembers from round to round.
    action begin_first() {
        meta.since = meta.now;
        meta.count = 1;
    }

    action begin_again() {
        meta.since = hdr.again.since;
        meta.spent = meta.now - hdr.again.since;
        meta.round_took = meta.now - hdr.again.sent;
        meta.count = hdr.again.count + 1;
    }

    Hash<delay_t>(HashAlgorithm_t.IDENTITY) spent_hash;
    Hash<delay_t>(HashAlgorithm_t.IDENTITY) took_hash;

    action find_elapsed() {
        meta.elapsed = spent_hash.get(meta.spent[15:0]);
    }

    action find_took() {
        meta.took = took_hash.get(meta.round_took[15:0]);
    }

    RegisterAction<delay_t, bit<32>, delay_t>(t_rc) tell_loop = {
        void apply(inout delay_t held, out delay_t took) {
            took = held;
        }
    };

    RegisterAction<delay_t, bit<32>, delay_t>(t_rc) learn_loop = {
        void apply(inout delay_t held, out delay_t took) {
            held = meta.took;
            took = held;
        }
    };

    action find_loop() {
        meta.loop = tell_loop.execute(0);
    }

    action note_loop() {
        meta.loop = learn_loop.execute(0);
    }

    table recirculation {
        key = {
            meta.again: exact;
        }
        actions = {
            find_loop;
            note_loop;
        }
        const entries = {
            0: find_loop();
            1: note_loop();
        }
        size = 2;
    }

    RegisterAction<bit<32>, bit<32>, bit<32>>(nrc) tell_limit = {
        void apply(inout bit<32> held, out bit<32> limit) {
            limit = held;
        }
    };

    RegisterAction<bit<32>, bit<32>, bit<32>>(rc_pkts) count_packet = {
        void apply(inout bit<32> held) {
            held = held + 1;
        }
    };

    RegisterAction<bit<32>, bit<32>, bit<32>>(rc_sum) count_round = {
        void apply(inout bit<32> held) {
            held = held + 1;
        }
    };

    RegisterAction<bit<32>, PortId_t, bit<32>>(rc_cnt) count_round_for = {
        void apply(inout bit<32> held) {
            held = held + 1;
        }
    };

    action find_need() {
        meta.need = meta.elapsed + meta.loop;
        meta.beyond = meta.count |-| meta.limit;
    }

    action resume() {
        meta.slot = hdr.again.slot;
    }

    action base_is_0() {
        meta.rtt_base = meta.rtt_0;
    }

    action other_is_0() {
        meta.rtt_other = meta.rtt_0;
    }

    action base_is_1() {
        meta.rtt_base = meta.rtt_1;
    }

    action other_is_1() {
        meta.rtt_other = meta.rtt_1;
    }

    action base_is_2() {
        meta.rtt_base = meta.rtt_2;
    }

    action other_is_2() {
        meta.rtt_other = meta.rtt_2;
    }

    action base_is_3() {
        meta.rtt_base = meta.rtt_3;
    }

    action other_is_3() {
        meta.rtt_other = meta.rtt_3;
    }

    table base {
        key = {
            meta.slot: exact;
        }
        actions = {
            base_is_0;
            base_is_1;
            base_is_2;
            base_is_3;
        }
        const entries = {
            0: base_is_0();
            1: base_is_1();
            2: base_is_2();
            3: base_is_3();
        }
        size = 4;
    }

    table instead {
        key = {
            meta.other: exact;
        }
        actions = {
            other_is_0;
            other_is_1;
            other_is_2;
            other_is_3;
        }
        const entries = {
            0: other_is_0();
            1: other_is_1();
            2: other_is_2();
            3: other_is_3();
        }
        size = 4;
    }

    action find_gain() {
        meta.gain = meta.rtt_other |-| meta.rtt_base;
    }

    action compare_gain() {
        meta.over = meta.gain |-| meta.loop;
        meta.lack = meta.need |-| meta.gain;
    }

    action take_other() {
        meta.slot = meta.other;
    }

    action wait() {
        meta.round = 1;

        meta.then = meta.slot;
    }

    // The path chosen comes first, if the next one is so much slower that the packet
    // had better come round once more (Algorithm 1; Eq. 5 and 6).
    table patience {
        key = {
            meta.over: ternary;
            meta.lack: ternary;
            meta.beyond: ternary;
        }
        actions = {
            take_other;
            wait;
        }
        const entries = {
            (0, _, _): take_other();
            (_, 0, 0): wait();
            (_, _, _): take_other();
        }
        size = 3;
    }

    apply {
        read_clock();
        hdr.generated.setInvalid();
        if (hdr.cnm.isValid()) {
            heed_warning();
            drop();
        } else if (hdr.report.isValid()) {
            meta.in_port = hdr.report.port;
            drop();
        } else if (hdr.path_probe.isValid()) {
            if (meta.own == 1) {
                start_probe();
            } else {
                switch (leaf.apply().action_run) {
                    at_home: {
                        if (hdr.path_probe.flags == 0) {
                            turn_probe();
                        } else {
                            find_path();
                            find_rtt();

                            drop();
                        }
                    }
                }
            }
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && !meta.bad_checksum) {
            find_length();
            if (meta.again == 1) {
                recall_origin();
            } else {
                find_origin();
            }
            if (meta.again == 1) {
                begin_again();
                find_elapsed();
                find_took();
            } else {
                begin_first();
            }
            recirculation.apply();
            meta.limit = tell_limit.execute(0);
            find_need();
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            ipv4_route.apply();
            if (meta.n != 0) {
                candidates.apply();
            }
        } else {
            drop();
        }
        find_hold();
        warning_0.apply(hdr, meta, meta.port_0, meta.warned_0);
        warning_1.apply(hdr, meta, meta.port_1, meta.warned_1);
        warning_2.apply(hdr, meta, meta.port_2, meta.warned_2);
        warning_3.apply(hdr, meta, meta.port_3, meta.warned_3);
        meta.came = count_in.execute(meta.in_port);
        departures.apply();
        find_queue();
        find_room();
        meta.Q_before = find_base.execute(meta.in_port);
        find_growth();
        project();
        compare_growth();
        path_0.apply(hdr, meta, meta.rtt_0);
        path_1.apply(hdr, meta, meta.rtt_1);
        path_2.apply(hdr, meta, meta.rtt_2);
        path_3.apply(hdr, meta, meta.rtt_3);
        if (meta.n != 0) {
            if (!hdr.path_probe.isValid()) {
                if (meta.again == 1) {
                    resume();
                } else {
                    count_packet.execute(0);
                    find_flow();
                    meta.draw = first_hash.get({hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.sport, meta.dport});
                    begin.apply();
                    meta.cell = fill_cell.execute(meta.flow);
                    add_turn();
                    wrap.apply();
                }
                detour.apply();
                base.apply();
                instead.apply();
                find_gain();

                compare_gain();
                patience.apply();
            }

            member.apply();
        }
        if (meta.near != 0) {
            if (hdr.ipv4.isValid() && meta.excess != 0) {
                meta.warn = is_time.execute(meta.in_port);
            }
        }
        if (meta.warn == 1) {
            upstream.apply();
        }
        if (meta.round == 1) {
            count_round.execute(0);
            count_round_for.execute(tm.ucast_egress_port);
            come_again();
        } else {
            hdr.again.setInvalid();
            add_bridge();
        }
    }
}

control LbIngressDeparser(packet_out pkt, inout headers_t hdr, in ingress_metadata_t meta,
                          in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    Checksum() ipv4_checksum;
    Mirror() mirror; // p4c does not take the type here

    apply {
        if (dprsr.mirror_type == MIRROR_CNM) {
            mirror.emit<cnm_t>(meta.session, {meta.notice, 0, meta.in_port, meta.Q});
        }
        hdr.ipv4.checksum = ipv4_checksum.update({
            hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,
            hdr.ipv4.total_len, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.frag_offset,
            hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst
        });
        pkt.emit(hdr.bridge);
        pkt.emit(hdr.again);
        pkt.emit(hdr.ethernet);
        pkt.emit(hdr.cnm);
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
            default: from_ingress;
        }
    }

    state from_ingress {
        transition select(pkt.lookahead<bit<8>>()) {
            CNM: warning;
            default: bridged;
        }
    }

    state bridged {
        pkt.extract(hdr.bridge);
        transition accept;
    }

    // A copy that becomes a CNM: its header goes behind the packet's Ethernet.
    state warning {
        pkt.extract(hdr.cnm);
        pkt.extract(hdr.ethernet);
        transition accept;
    }

    state report {
        pkt.extract(hdr.report);
        transition accept;
    }
}

control LbEgress(inout headers_t hdr, inout egress_metadata_t meta,
                 in egress_intrinsic_metadata_t eg,
                 in egress_intrinsic_metadata_from_parser_t prsr,
                 inout egress_intrinsic_metadata_for_deparser_t dprsr,
                 inout egress_intrinsic_metadata_for_output_port_t oport) {
    RegisterAction<bit<32>, PortId_t, bit<32>>(eg_out) count_out = {
        void apply(inout bit<32> held, out bit<32> went) {
            held = held + hdr.bridge.bytes;
            went = held;
        }
    };

    action make_cnm() {
        hdr.ethernet.type = TYPE_CNM;
    }

    action strip_bridge() {
        hdr.bridge.setInvalid();
    }

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
        meta.port = hdr.bridge.port;
    }

    apply {
        if (hdr.cnm.isValid()) {
            make_cnm();
        } else if (!hdr.report.isValid()) {
            read_clock();
            meta.bytes = count_out.execute(hdr.bridge.port);
            meta.due = is_due.execute(hdr.bridge.port);
            if (meta.due == 1) {
                return_state();
            }
            strip_bridge();
        }
    }
}

control LbEgressDeparser(packet_out pkt, inout headers_t hdr, in egress_metadata_t meta,
                         in egress_intrinsic_metadata_for_deparser_t dprsr) {
    Mirror(MIRROR_REPORT) mirror;

    apply {
        if (dprsr.mirror_type == MIRROR_REPORT) {
            mirror.emit<report_t>(meta.session, {meta.type, 0, meta.port, meta.bytes});
        }
        pkt.emit(hdr);
    }
}

Pipeline(LbIngressParser(), LbIngress(), LbIngressDeparser(),
         LbEgressParser(), LbEgress(), LbEgressDeparser()) pipe;

Switch(pipe) main;
