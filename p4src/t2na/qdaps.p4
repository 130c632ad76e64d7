// qdaps: packets in order, by queueing delay.
//
// granularity  each packet for itself
// signal       local queue lengths
// choice       the shortest queue that lets a packet leave behind the one
//              before it
//
// For groups of up to 4 paths, as leaf. After Huang et al., QDAPS.
#include <core.p4>
#include <t2na.p4>

// Types and constants.

typedef bit<48> mac_t;
typedef bit<32> ipv4_addr_t;
typedef bit<16> gid_t;   // a group of paths, all that lead to one destination
typedef bit<32> slot_t;  // a path within its group
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

const span_t LONGEST_QUEUE = 0x20000; // 134 ms

const bit<32> PORTS = 512;   // ports of the switch
const bit<32> FLOWS = 32768; // slots for flows, by the CRC16 of the 5-tuple
const bit<32> GROUPS = 1024; // groups of paths

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

// What egress tells ingress about a port.
header report_t {
    bit<8>   type; // REPORT
    bit<7>   pad;
    PortId_t port;
    bit<32>  len; // of the queue
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
    bit<15>  flow;   // slot of the flow
    PortId_t port_0; // egress ports of the group's paths
    PortId_t port_1;
    PortId_t port_2;
    PortId_t port_3;
    bit<32>  len_0; // queues of the paths
    bit<32>  len_1;
    bit<32>  len_2;
    bit<32>  len_3;
    bit<12>  draw_a; // decides about a path
    bit<12>  draw_b;
    slot_t   slot_a; // the path drawn
    slot_t   slot_b;
    bit<32>  len_a; // its queue
    bit<32>  len_b;
    ticks_t  leaves_a; // when the packet would leave by the path
    ticks_t  leaves_b;
    ticks_t  leaves_m;
    ticks_t  leaves; // by the path chosen
    bit<32>  more;   // by how much the queue of one exceeds that of the other
    slot_t   slot_m; // the path remembered
    bit<32>  len;    // queue of the path chosen
    bit<32>  len_m;
}

struct egress_metadata_t {
    ticks_t    now;  // when the packet came to egress
    bit<1>     due;  // a report is
    bit<8>     type; // what it begins with
    MirrorId_t session;
    PortId_t   port;
    bit<32>    len; // of the queue
}

// When the last packet of a flow leaves, and by which path.
struct order_t {
    ticks_t D;
    slot_t  slot;
}

// Registers.

Register<ticks_t, PortId_t>(PORTS) qe_clone; // when the port was last reported
Register<slot_t, gid_t>(GROUPS) dr_mem;      // the path that was the least of those drawn for the packet before
Register<order_t, bit<15>>(FLOWS) fl;        // when the flow's last packet should leave, and its path

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

// A copy of the queue lengths of all ports, for the paths of one slot: packets
// read it, reports write it.
control Queue(in headers_t hdr, in PortId_t port, inout bit<32> len) {
    Register<bit<32>, PortId_t>(PORTS) q_len;

    RegisterAction<bit<32>, PortId_t, bit<32>>(q_len) tell = {
        void apply(inout bit<32> held, out bit<32> told) {
            told = held;
        }
    };

    RegisterAction<bit<32>, PortId_t, bit<32>>(q_len) learn = {
        void apply(inout bit<32> held) {
            held = hdr.report.len;
        }
    };

    action tell_len() {
        len = tell.execute(port);
    }

    action learn_len() {
        learn.execute(port);
    }

    table access {
        key = {
            hdr.report.isValid(): exact;
        }
        actions = {
            tell_len;
            learn_len;
        }
        const entries = {
            false: tell_len();
            true: learn_len();
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

    // A report is for all copies.
    action aim_at_report() {
        meta.port_0 = hdr.report.port;
        meta.port_1 = hdr.report.port;
        meta.port_2 = hdr.report.port;
        meta.port_3 = hdr.report.port;
    }

    Queue() queue_0;
    Queue() queue_1;
    Queue() queue_2;
    Queue() queue_3;

    Random<bit<12>>() random_a;
    Random<bit<12>>() random_b;

    action set_slot_a(slot_t slot) {
        meta.slot_a = slot;
    }

    table spread_a {
        key = {
            meta.n: exact;
            meta.draw_a: range;
        }
        actions = {
            set_slot_a;
        }
        const entries = {
            (1, 0 .. 4095): set_slot_a(0);
            (2, 0 .. 2047): set_slot_a(0);
            (2, 2048 .. 4095): set_slot_a(1);
            (3, 0 .. 1364): set_slot_a(0);
            (3, 1365 .. 2729): set_slot_a(1);
            (3, 2730 .. 4095): set_slot_a(2);
            (4, 0 .. 1023): set_slot_a(0);
            (4, 1024 .. 2047): set_slot_a(1);
            (4, 2048 .. 3071): set_slot_a(2);
            (4, 3072 .. 4095): set_slot_a(3);
        }
        size = 10;
    }

    action set_slot_b(slot_t slot) {
        meta.slot_b = slot;
    }

    table spread_b {
        key = {
            meta.n: exact;
            meta.draw_b: range;
        }
        actions = {
            set_slot_b;
        }
        const entries = {
            (1, 0 .. 4095): set_slot_b(0);
            (2, 0 .. 2047): set_slot_b(0);
            (2, 2048 .. 4095): set_slot_b(1);
            (3, 0 .. 1364): set_slot_b(0);
            (3, 1365 .. 2729): set_slot_b(1);
            (3, 2730 .. 4095): set_slot_b(2);
            (4, 0 .. 1023): set_slot_b(0);
            (4, 1024 .. 2047): set_slot_b(1);
            (4, 2048 .. 3071): set_slot_b(2);
            (4, 3072 .. 4095): set_slot_b(3);
        }
        size = 10;
    }

    action len_a_is_0() {
        meta.len_a = meta.len_0;
    }

    action len_a_is_1() {
        meta.len_a = meta.len_1;
    }

    action len_a_is_2() {
        meta.len_a = meta.len_2;
    }

    action len_a_is_3() {
        meta.len_a = meta.len_3;
    }

    table look_a {
        key = {
            meta.slot_a: exact;
        }
        actions = {
            len_a_is_0;
            len_a_is_1;
            len_a_is_2;
            len_a_is_3;
        }
        const entries = {
            0: len_a_is_0();
            1: len_a_is_1();
            2: len_a_is_2();
            3: len_a_is_3();
        }
        size = 4;
    }

    action len_b_is_0() {
        meta.len_b = meta.len_0;
    }

    action len_b_is_1() {
        meta.len_b = meta.len_1;
    }

    action len_b_is_2() {
        meta.len_b = meta.len_2;
    }

    action len_b_is_3() {
        meta.len_b = meta.len_3;
    }

    table look_b {
        key = {
            meta.slot_b: exact;
        }
        actions = {
            len_b_is_0;
            len_b_is_1;
            len_b_is_2;
            len_b_is_3;
        }
        const entries = {
            0: len_b_is_0();
            1: len_b_is_1();
            2: len_b_is_2();
            3: len_b_is_3();
        }
        size = 4;
    }

    action compare_drawn() {
        meta.more = meta.len_a |-| meta.len_b;
        meta.leaves_a = meta.now + meta.len_a;
        meta.leaves_b = meta.now + meta.len_b;
    }

    action take_a() {
        meta.slot = meta.slot_a;
        meta.len = meta.len_a;
        meta.leaves = meta.leaves_a;
    }

    action take_b() {
        meta.slot = meta.slot_b;
        meta.len = meta.len_b;
        meta.leaves = meta.leaves_b;
    }

    RegisterAction<slot_t, gid_t, slot_t>(dr_mem) swap_memory = {
        void apply(inout slot_t held, out slot_t before) {
            before = held;
            held = meta.slot;
        }
    };

    action len_m_is_0() {
        meta.len_m = meta.len_0;
    }

    action len_m_is_1() {
        meta.len_m = meta.len_1;
    }

    action len_m_is_2() {
        meta.len_m = meta.len_2;
    }

    action len_m_is_3() {
        meta.len_m = meta.len_3;
    }

    table look_m {
        key = {
            meta.slot_m: exact;
        }
        actions = {
            len_m_is_0;
            len_m_is_1;
            len_m_is_2;
            len_m_is_3;
        }
        const entries = {
            0: len_m_is_0();
            1: len_m_is_1();
            2: len_m_is_2();
            3: len_m_is_3();
        }
        size = 4;
    }

    action compare_remembered() {
        meta.more = meta.len |-| meta.len_m;
        meta.leaves_m = meta.now + meta.len_m;
    }

    action take_m() {
        meta.slot = meta.slot_m;
        meta.leaves = meta.leaves_m;
    }

    // Eq. 2 the other way round: the path is free to change if the packet leaves
    // after the flow's last one, or if that would be further ahead than any queue:
    // it is long ago, and the clock has wrapped.
    RegisterAction<order_t, bit<15>, slot_t>(fl) keep_order = {
        void apply(inout order_t held, out slot_t slot) {
            if ((span_t)(meta.leaves - held.D) > 0 || (span_t)(held.D - meta.leaves) > LONGEST_QUEUE) {
                held.D = meta.leaves;
                held.slot = meta.slot;
            }
            slot = held.slot;
        }
    };

    apply {
        read_clock();
        meta.draw_a = random_a.get();
        meta.draw_b = random_b.get();
        if (hdr.report.isValid()) {
            aim_at_report();
            drop();
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && !meta.bad_checksum) {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            ipv4_route.apply();
            if (meta.n != 0) {
                candidates.apply();
            }
            spread_a.apply();
            spread_b.apply();
        } else {
            drop();
        }
        queue_0.apply(hdr, meta.port_0, meta.len_0);
        queue_1.apply(hdr, meta.port_1, meta.len_1);
        queue_2.apply(hdr, meta.port_2, meta.len_2);
        queue_3.apply(hdr, meta.port_3, meta.len_3);
        if (meta.n != 0) {
            find_flow();
            look_a.apply();
            look_b.apply();
            compare_drawn();
            if (meta.more == 0) {
                take_a();
            } else {
                take_b();
            }
            meta.slot_m = swap_memory.execute(meta.gid);
            look_m.apply();
            compare_remembered();
            if (meta.more != 0) {
                take_m();
            }
            meta.slot = keep_order.execute(meta.flow);

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

    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) depth_hash;

    action read_depth() {
        meta.len = depth_hash.get(eg.deq_qdepth[18:0]);
    }

    apply {
        if (!hdr.report.isValid()) {
            read_clock();
            read_depth();
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
            mirror.emit<report_t>(meta.session, {meta.type, 0, meta.port, meta.len});
        }
        pkt.emit(hdr);
    }
}

Pipeline(LbIngressParser(), LbIngress(), LbIngressDeparser(),
         LbEgressParser(), LbEgress(), LbEgressDeparser()) pipe;

Switch(pipe) main;
