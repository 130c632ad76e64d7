// presto+rlb: flowcells in turn, around paths that PFC is about to pause.
//
// granularity  so many bytes of a flow, then another path
// choice       the next path in turn
// guard        around paths that PFC is about to pause
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

typedef int<32> span_t; // between two times: only signed differences wrap in a stateful ALU

const bit<16> TYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

// Port 6 of each pipe leads round within the switch.
const PortId_t RECIRCULATION = 6;
const PortId_t PORT_OF_PIPE = 0x7F; // mask

const bit<16> TYPE_CNM = 0x88B5;
const bit<8> BRIDGE = 0; // first byte of a packet from ingress
const bit<8> CNM = 1;    // of a warning
const MirrorType_t MIRROR_CNM = 2;

// Q_th = d*C, the lower end of [d*C, Q_PFC - d*C*(n-1)] (Section III-B.3), in bytes.
const bit<32> Q_TH = 10000;

const MirrorType_t MIRROR_REPORT = 1;
const MirrorId_t SESSION_REPORT = 1; // leads to RECIRCULATION
const bit<8> REPORT = 0xFF;          // first byte of a report

const bit<32> PORTS = 512;   // ports of the switch
const bit<32> FLOWS = 32768; // slots for flows, by the CRC16 of the 5-tuple

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

// What egress tells ingress about a port.
header report_t {
    bit<8>   type; // REPORT
    bit<7>   pad;
    PortId_t port;
    bit<32>  bytes; // that came in at the port and have left
}

struct headers_t {
    bridge_t   bridge;
    report_t   report;
    ethernet_t ethernet;
    cnm_t      cnm;
    ipv4_t     ipv4;
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
    PortId_t in_port; // where the packet came in, or that a report is about

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
    bit<32>    cell;  // whose turn it is, from 0
    bit<32>    last;  // n - 1
    bit<32>    first; // path of the flow's first cell
    bit<32>    sum;   // that and the turn of the cell
    bit<12>    draw;  // decides about first
}

struct egress_metadata_t {
    bit<32>    bytes; // that came in at the port and have left
    ticks_t    now;   // when the packet came to egress
    bit<1>     due;   // a report is
    bit<8>     type;  // what it begins with
    MirrorId_t session;
    PortId_t   port;
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

// Ingress parser.

parser LbIngressParser(packet_in pkt, out headers_t hdr, out ingress_metadata_t meta,
                       out ingress_intrinsic_metadata_t ig) {
    Checksum() ipv4_checksum;

    state start {
        pkt.extract(ig);
        pkt.advance(PORT_METADATA_SIZE);
        meta.n = 0;
        transition select(ig.ingress_port) {
            RECIRCULATION &&& PORT_OF_PIPE: report;
            default: ethernet;
        }
    }

    state ethernet {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            TYPE_CNM: cnm;
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

    state cnm {
        pkt.extract(hdr.cnm);
        transition accept;
    }

    state report {
        pkt.extract(hdr.report);
        transition accept;
    }
}

// Ingress: the route, and the path.

// A copy of the warnings about all ports, for the paths of one slot: packets
// read it, warnings write it.
control Warning(in headers_t hdr, in ingress_metadata_t meta, in PortId_t port, inout bit<1> warned) {
    Register<ticks_t, PortId_t>(PORTS) until;

    // A warning is over if more than HOLD is left of it: the clock has wrapped.
    RegisterAction<ticks_t, PortId_t, bit<1>>(until) tell = {
        void apply(inout ticks_t held, out bit<1> expected) {
            if ((span_t)(held - meta.now) > 0 && (span_t)(held - meta.now) <= (span_t)HOLD) {
                expected = 1;
            } else {
                expected = 0;
            }
        }
    };

    RegisterAction<ticks_t, PortId_t, bit<1>>(until) learn = {
        void apply(inout ticks_t held) {
            held = meta.hold;
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
            held = held + meta.bytes;
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
        meta.slot = slot;
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
            NoAction;
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
        default_action = NoAction();
        size = 29;
    }

    action add_bridge() {
        hdr.bridge.setValid();
        hdr.bridge.type = BRIDGE;
        hdr.bridge.port = ig.ingress_port;
        hdr.bridge.bytes = meta.bytes;
    }

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

    apply {
        read_clock();
        if (hdr.cnm.isValid()) {
            heed_warning();
            drop();
        } else if (hdr.report.isValid()) {
            meta.in_port = hdr.report.port;
            drop();
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && !meta.bad_checksum) {
            find_length();
            find_origin();
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
        if (meta.n != 0) {
            find_flow();
            meta.draw = first_hash.get({hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.sport, meta.dport});
            begin.apply();
            meta.cell = fill_cell.execute(meta.flow);
            add_turn();
            wrap.apply();
            detour.apply();

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
        add_bridge();
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
        pkt.emit(hdr.ethernet);
        pkt.emit(hdr.cnm);
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
