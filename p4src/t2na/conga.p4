// conga: flowlets on the least congested path.
//
// granularity  a pause in a flow allows another path
// signal       path utilisation that data carries to the other leaf and back
// choice       the least loaded path, ties at random
//
// For groups of up to 4 paths, as leaf. After Alizadeh et al., CONGA, SIGCOMM
// 2014.
#include <core.p4>
#include <t2na.p4>

// Types and constants.

typedef bit<48> mac_t;
typedef bit<32> ipv4_addr_t;
typedef bit<16> gid_t;   // a group of paths, all that lead to one destination
typedef bit<8> slot_t;   // a path within its group
typedef bit<32> level_t; // of congestion
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

const bit<16> TYPE_OVERLAY = 0x88B6;

const bit<32> PORTS = 512;   // ports of the switch
const bit<32> FLOWS = 65536; // slots for flows, by the CRC16 of the 5-tuple
const bit<32> GROUPS = 1024; // groups of paths
const bit<32> PATHS = 16384; // paths: group * 16 + slot

// T_b: a port's state goes to ingress at most this often; tb=1ms. QALL,
// Section IV-E: the updating period trades freshness for overhead, T_b = 1 ms.
const ticks_t T_B = 977;

// a longer pause than this ends a flowlet; gap=500us. QDAPS, Section IV, on
// LetFlow: 500 us; QALL, Section IV-B: T_inter = 10 ms.
const ticks_t FLOWLET_GAP = 488;

// a path's congestion counts as 0 if it is older than this; ageing=10ms.
// CONGA, Section 3.3: metrics age after 10 ms.
const ticks_t AGEING = 9766;

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
    level_t  level;
}

// What CONGA's leaves tell each other with every packet.
header overlay_t {
    bit<8>  lbtag;     // the path that the packet takes
    bit<8>  fb_lbtag;  // a path of the leaf that the packet goes to
    level_t ce;        // the most congested link of the packet's path so far, times 256
    level_t fb_metric; // the congestion of fb_lbtag
}

struct headers_t {
    report_t   report;
    ethernet_t ethernet;
    overlay_t  overlay;
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
    bit<1>   received; // the packet carries news from another leaf
    slot_t   tag;      // fed back: a path of the other leaf to us
    bit<1>   fresh;    // a flowlet begins
    bit<32>  path;     // of a leaf to us
    level_t  metric;   // its congestion
    level_t  remote_0; // congestion of our paths
    level_t  remote_1;
    level_t  remote_2;
    level_t  remote_3;
    bit<12>  draw; // decides about ties
}

struct egress_metadata_t {
    ticks_t    now;  // when the packet came to egress
    bit<1>     due;  // a report is
    bit<8>     type; // what it begins with
    MirrorId_t session;
    PortId_t   port;
    bit<16>    sent;  // utilisation of the link, 256 is full
    level_t    level; // the same in 3 bits, times 256
}

// What a leaf was told about one of its paths.
struct told_t {
    level_t metric;
    ticks_t at;
}

// Registers.

Register<ticks_t, PortId_t>(PORTS) qe_clone; // when the port was last reported
Register<slot_t, gid_t>(GROUPS) fb_tag;      // the path of that leaf to us that it is told about next
Register<ticks_t, bit<16>>(FLOWS) fl_ts;     // when the flow's last packet came
Register<slot_t, bit<16>>(FLOWS) fl_port;    // the path of the flow's flowlet
Register<level_t, bit<32>>(PATHS) from_leaf; // congestion of that leaf's path to us, 0 to 7, times 256

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
            TYPE_OVERLAY: overlay;
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

    state overlay {
        pkt.extract(hdr.overlay);
        meta.received = 1;
        transition ipv4;
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

// What the leaves say of their paths in one slot. Old news count as 0.
control Remote(in headers_t hdr, in ingress_metadata_t meta, inout level_t level)(bit<8> slot) {
    Register<told_t, gid_t>(GROUPS) to_leaf;

    RegisterAction<told_t, gid_t, level_t>(to_leaf) learn = {
        void apply(inout told_t held) {
            held.metric = hdr.overlay.fb_metric;
            held.at = meta.now;
        }
    };

    RegisterAction<told_t, gid_t, level_t>(to_leaf) tell = {
        void apply(inout told_t held, out level_t metric) {
            if ((span_t)(meta.now - held.at) > (span_t)AGEING || (span_t)(meta.now - held.at) < 0) {
                held.metric = 0;
            }
            metric = held.metric;
        }
    };

    action learn_metric() {
        learn.execute(meta.gid);
    }

    action tell_metric() {
        level = tell.execute(meta.gid);
    }

    table access {
        key = {
            meta.received: exact;
            hdr.overlay.fb_lbtag: ternary;
        }
        actions = {
            learn_metric;
            tell_metric;
            NoAction;
        }
        const entries = {
            (1, slot): learn_metric();
            (0, _): tell_metric();
        }
        default_action = NoAction();
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

    action set_leaf(gid_t leaf) {
        meta.gid = leaf;
    }

    table leaf_of {
        key = {
            hdr.ipv4.src: lpm;
        }
        actions = {
            set_leaf;
            drop;
        }
        default_action = drop();
        size = 4096;
    }

    // A packet from the network goes on to its host without the header.
    action receive() {
        hdr.overlay.setInvalid();
        hdr.ethernet.type = TYPE_IPV4;
    }

    // A packet that goes on to another leaf has nothing to say here.
    action pass_on() {
        meta.received = 0;
    }

    // Tells the leaf at the other end about its paths to us, in turn.
    RegisterAction<slot_t, gid_t, slot_t>(fb_tag) take_tag = {
        void apply(inout slot_t held, out slot_t tag) {
            tag = held;
            if (held >= 3) {
                held = 0;
            } else {
                held = held + 1;
            }
        }
    };

    action send() {
        hdr.overlay.setValid();
        hdr.ethernet.type = TYPE_OVERLAY;
        hdr.overlay.lbtag = meta.slot;
        hdr.overlay.fb_lbtag = meta.tag;
        hdr.overlay.ce = 0;
        hdr.overlay.fb_metric = meta.metric;
    }

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

    // The path of the flowlet: the one just chosen if it begins. Its slot is in the
    // low bits of its level.
    RegisterAction<slot_t, bit<16>, slot_t>(fl_port) hold_path = {
        void apply(inout slot_t held, out slot_t slot) {
            if (meta.fresh == 1) {
                held = 7 & meta.level_0[7:0];
            }
            slot = held;
        }
    };

    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) learn_hash;
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) tell_hash;

    action find_path_learnt() {
        meta.path = learn_hash.get({meta.gid[9:0], hdr.overlay.lbtag[3:0]});
    }

    action find_path_told() {
        meta.path = tell_hash.get({meta.gid[9:0], meta.tag[3:0]});
    }

    RegisterAction<level_t, bit<32>, level_t>(from_leaf) learn_from_leaf = {
        void apply(inout level_t held) {
            held = hdr.overlay.ce;
        }
    };

    RegisterAction<level_t, bit<32>, level_t>(from_leaf) tell_from_leaf = {
        void apply(inout level_t held, out level_t metric) {
            metric = held;
        }
    };

    action learn_from() {
        learn_from_leaf.execute(meta.path);
    }

    action tell_from() {
        meta.metric = tell_from_leaf.execute(meta.path);
    }

    table from {
        key = {
            meta.received: exact;
        }
        actions = {
            learn_from;
            tell_from;
        }
        const entries = {
            1: learn_from();
            0: tell_from();
        }
        size = 2;
    }

    Remote(0) remote_0;
    Remote(1) remote_1;
    Remote(2) remote_2;
    Remote(3) remote_3;

    Random<bit<12>>() random;

    action find_costs() {
        meta.level_0 = max(meta.level_0, meta.remote_0);
        meta.level_1 = max(meta.level_1, meta.remote_1);
        meta.level_2 = max(meta.level_2, meta.remote_2);
        meta.level_3 = max(meta.level_3, meta.remote_3);
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
            meta.draw: range;
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
            if (meta.received == 1) {
                if (meta.n == 0) {
                    leaf_of.apply();
                } else {
                    pass_on();
                }
            }
        } else {
            drop();
        }
        level_0.apply(hdr, meta.port_0, meta.level_0);
        level_1.apply(hdr, meta.port_1, meta.level_1);
        level_2.apply(hdr, meta.port_2, meta.level_2);
        level_3.apply(hdr, meta.port_3, meta.level_3);
        if (meta.n != 0) {
            meta.tag = take_tag.execute(meta.gid);
        }
        if (meta.received == 1) {
            find_path_learnt();
        } else {
            find_path_told();
        }
        from.apply();
        remote_0.apply(hdr, meta, meta.remote_0);
        remote_1.apply(hdr, meta, meta.remote_1);
        remote_2.apply(hdr, meta, meta.remote_2);
        remote_3.apply(hdr, meta, meta.remote_3);
        if (meta.received == 1) {
            receive();
        }
        if (meta.n != 0) {
            find_flow();
            meta.fresh = note_time.execute(meta.flow);
            meta.draw = random.get();
            find_costs();
            ranks.apply();
            round_0();
            round_1();
            meta.slot = hold_path.execute(meta.flow);
            send();
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
        pkt.emit(hdr.overlay);
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
            TYPE_OVERLAY: overlay;
            default: accept;
        }
    }

    state report {
        pkt.extract(hdr.report);
        transition accept;
    }

    state overlay {
        pkt.extract(hdr.overlay);
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

    // The discounting rate estimator.
    Lpf<bit<16>, PortId_t>(PORTS) dre;

    action count_sent() {
        meta.sent = dre.execute(eg.pkt_length, eg.egress_port);
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

    // The packet carries on the worst that it has met.
    action mark_congestion() {
        hdr.overlay.ce = max(hdr.overlay.ce, meta.level);
    }

    apply {
        if (!hdr.report.isValid()) {
            read_clock();
            count_sent();
            quantise.apply();
            if (hdr.overlay.isValid()) {
                mark_congestion();
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
