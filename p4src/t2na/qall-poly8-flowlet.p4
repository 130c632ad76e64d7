// qall-poly8-flowlet: flowlets spread by a polynomial of degree 8 in queue
// behaviour.
//
// granularity  a pause in a flow allows another path
// signal       local queue behaviour, by a fitted polynomial
// choice       at random, in proportion to weights
//
// For groups of up to 4 paths, as leaf. After Liu et al., QALL, Section V.
#include <core.p4>
#include <t2na.p4>

// Types and constants.

typedef bit<48> mac_t;
typedef bit<32> ipv4_addr_t;
typedef bit<16> gid_t;   // a group of paths, all that lead to one destination
typedef bit<8> slot_t;   // a path within its group
typedef bit<8> level_t;  // of congestion
typedef bit<32> ticks_t; // time in 1024 ns

typedef int<32> span_t; // between two times: only signed differences wrap in a stateful ALU

const bit<16> TYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

// Port 6 of each pipe leads round within the switch.
const PortId_t RECIRCULATION = 6;
const PortId_t PORT_OF_PIPE = 0x7F; // mask

const MirrorType_t MIRROR_REPORT = 1;
const MirrorId_t SESSION_REPORT = 1; // leads to RECIRCULATION
const bit<8> REPORT = 0xFF;          // first byte of a report

const bit<32> PORTS = 512;   // ports of the switch
const bit<32> FLOWS = 65536; // slots for flows, by the CRC16 of the 5-tuple

// T_b: a port's state goes to ingress at most this often; tb=1ms. QALL,
// Section IV-E: the updating period trades freshness for overhead, T_b = 1 ms.
const ticks_t T_B = 977;

// a longer pause than this ends a flowlet; gap=10ms. QDAPS, Section IV, on
// LetFlow: 500 us; QALL, Section IV-B: T_inter = 10 ms.
const ticks_t FLOWLET_GAP = 9766;

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

// What egress tells ingress about a port (what remains of Fig. 6).
header report_t {
    bit<8>   type; // REPORT
    bit<7>   pad;
    PortId_t port;
    level_t  level;
}

struct headers_t {
    report_t   report;
    ethernet_t ethernet;
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
    bit<16>  flow;   // slot of the flow
    PortId_t port_0; // egress ports of the group's paths
    PortId_t port_1;
    PortId_t port_2;
    PortId_t port_3;
    level_t  level_0; // congestion of the paths
    level_t  level_1;
    level_t  level_2;
    level_t  level_3;
    bit<1>   fresh; // a flowlet begins
    bit<8>   grid;  // the one drawn, of 256
    bit<8>   end_0; // last grid of the path
    bit<8>   end_1;
    bit<8>   end_2;
    bit<8>   left_0; // grids between the path and the one drawn
    bit<8>   left_1;
    bit<8>   left_2;
}

struct egress_metadata_t {
    ticks_t    now;  // when the packet came to egress
    bit<1>     due;  // a report is
    bit<8>     type; // what it begins with
    MirrorId_t session;
    PortId_t   port;
    bit<8>     L;        // queue occupancy, 15 is full
    bit<8>     T;        // dequeue interval, 15 is tau
    bit<8>     V;        // queuing trend, 1 rising, 0 falling
    level_t    level;    // the congestion index
    ticks_t    last;     // when the port's last packet left
    ticks_t    interval; // since then
}

// The queue of a port: its occupancy and where it was last going.
struct occupancy_t {
    bit<8> L;
    bit<8> V;
}

// Registers.

Register<ticks_t, PortId_t>(PORTS) qe_clone; // when the port was last reported
Register<ticks_t, PortId_t>(PORTS) qe_last;  // when the port's last packet left its queue
Register<occupancy_t, PortId_t>(PORTS) qe_L; // occupancy that the port's last packet met, of 16, and whether it was rising last
Register<ticks_t, bit<16>>(FLOWS) fl_ts;     // when the flow's last packet came
Register<slot_t, bit<16>>(FLOWS) fl_port;    // the path of the flow's flowlet

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

    state report {
        pkt.extract(hdr.report);
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

    Hash<bit<16>>(HashAlgorithm_t.CRC16) flow_slot;

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

    // A pause that is longer than the gap ends the flow's flowlet.
    RegisterAction<ticks_t, bit<16>, bit<1>>(fl_ts) note_time = {
        void apply(inout ticks_t last, out bit<1> fresh) {
            if ((span_t)(meta.now - last) > (span_t)FLOWLET_GAP || (span_t)(meta.now - last) < 0) {
                fresh = 1;
            } else {
                fresh = 0;
            }
            last = meta.now;
        }
    };

    // The path of the flowlet: the one just chosen if it begins.
    RegisterAction<slot_t, bit<16>, slot_t>(fl_port) hold_path = {
        void apply(inout slot_t held, out slot_t slot) {
            if (meta.fresh == 1) {
                held = meta.slot;
            }
            slot = held;
        }
    };

    Random<bit<8>>() random;

    action set_ends(bit<8> end_0, bit<8> end_1, bit<8> end_2) {
        meta.end_0 = end_0;
        meta.end_1 = end_1;
        meta.end_2 = end_2;
    }

    // The weights of the paths, Eq. 6 for each vector of levels.
    table grids {
        key = {
            meta.level_0[2:0]: exact @name("level_0");
            meta.level_1[2:0]: exact @name("level_1");
            meta.level_2[2:0]: exact @name("level_2");
            meta.level_3[2:0]: exact @name("level_3");
        }
        actions = {
            set_ends;
            drop;
        }
        default_action = drop();
        size = 4096;
    }

    // The first path whose grids reach the one drawn (QALL, Alg. 2 and Eq. 5),
    // by differences that stop at 0.
    action compare() {
        meta.left_0 = meta.grid |-| meta.end_0;
        meta.left_1 = meta.grid |-| meta.end_1;
        meta.left_2 = meta.grid |-| meta.end_2;
    }

    action set_slot(slot_t slot) {
        meta.slot = slot;
    }

    table first {
        key = {
            meta.left_0: ternary;
            meta.left_1: ternary;
            meta.left_2: ternary;
        }
        actions = {
            set_slot;
        }
        const entries = {
            (0, _, _): set_slot(0);
            (_, 0, _): set_slot(1);
            (_, _, 0): set_slot(2);
            (_, _, _): set_slot(3);
        }
        size = 4;
    }

    apply {
        read_clock();
        if (hdr.report.isValid()) {
            aim_at_report();
            drop();
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && !meta.bad_checksum) {
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
        if (meta.n != 0) {
            find_flow();
            meta.fresh = note_time.execute(meta.flow);
            meta.grid = random.get();
            grids.apply();
            compare();
            first.apply();
            meta.slot = hold_path.execute(meta.flow);

            member.apply();
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
        pkt.emit(hdr.ethernet);
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
            default: accept;
        }
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

    // State collection (QALL, Alg. 3). L is the share of the queue that the packet
    // met: of 545 cells, in steps of 64.
    action set_L(bit<8> L) {
        meta.L = L;
    }

    table occupancy {
        key = {
            eg.enq_qdepth: ternary;
        }
        actions = {
            set_L;
        }
        const entries = {
            0x0 &&& 0x7ffc0: set_L(0);
            0x40 &&& 0x7ffc0: set_L(1);
            0x80 &&& 0x7ffc0: set_L(2);
            0xc0 &&& 0x7ffc0: set_L(3);
            0x100 &&& 0x7ffc0: set_L(4);
            0x140 &&& 0x7ffc0: set_L(5);
            0x180 &&& 0x7ffc0: set_L(6);
            0x1c0 &&& 0x7ffc0: set_L(7);
            0x200 &&& 0x7ffc0: set_L(8);
            0x240 &&& 0x7ffc0: set_L(9);
            0x280 &&& 0x7ffc0: set_L(10);
            0x2c0 &&& 0x7ffc0: set_L(11);
            0x300 &&& 0x7ffc0: set_L(12);
            0x340 &&& 0x7ffc0: set_L(13);
            0x380 &&& 0x7ffc0: set_L(14);
            _: set_L(15);
        }
        size = 16;
    }

    RegisterAction<ticks_t, PortId_t, ticks_t>(qe_last) note_departure = {
        void apply(inout ticks_t held, out ticks_t last) {
            last = held;
            held = meta.now;
        }
    };

    action find_interval() {
        meta.interval = meta.now - meta.last;
    }

    // T, up to tau = 10ms in steps of 1024 ticks.
    action set_T(bit<8> T) {
        meta.T = T;
    }

    table gap {
        key = {
            meta.interval: ternary;
        }
        actions = {
            set_T;
        }
        const entries = {
            0x0 &&& 0xfffffc00: set_T(0);
            0x400 &&& 0xfffffc00: set_T(1);
            0x800 &&& 0xfffffc00: set_T(2);
            0xc00 &&& 0xfffffc00: set_T(3);
            0x1000 &&& 0xfffffc00: set_T(4);
            0x1400 &&& 0xfffffc00: set_T(5);
            0x1800 &&& 0xfffffc00: set_T(6);
            0x1c00 &&& 0xfffffc00: set_T(7);
            0x2000 &&& 0xfffffc00: set_T(8);
            0x2400 &&& 0xfffffc00: set_T(9);
            0x2800 &&& 0xfffffc00: set_T(10);
            0x2c00 &&& 0xfffffc00: set_T(11);
            0x3000 &&& 0xfffffc00: set_T(12);
            0x3400 &&& 0xfffffc00: set_T(13);
            0x3800 &&& 0xfffffc00: set_T(14);
            _: set_T(15);
        }
        size = 16;
    }

    // While L stays equal, V keeps: the paper leaves that open.
    RegisterAction<occupancy_t, PortId_t, bit<8>>(qe_L) find_trend = {
        void apply(inout occupancy_t held, out bit<8> V) {
            if (meta.L > held.L) {
                held.V = 1;
            } else if (meta.L < held.L) {
                held.V = 0;
            }
            held.L = meta.L;
            V = held.V;
        }
    };

    action set_level(level_t level) {
        meta.level = level;
    }

    // The congestion index, that the controller bakes from its fit.
    table index {
        key = {
            meta.L: exact;
            meta.T: exact;
            meta.V: exact;
        }
        actions = {
            set_level;
        }
        default_action = set_level(0);
        size = 512;
    }

    apply {
        if (!hdr.report.isValid()) {
            read_clock();
            occupancy.apply();
            meta.last = note_departure.execute(eg.egress_port);
            find_interval();
            gap.apply();
            meta.V = find_trend.execute(eg.egress_port);
            index.apply();
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
