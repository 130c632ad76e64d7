// dhlb: flowlets in proportion to load degrees.
//
// granularity  a pause in a flow allows another path
// signal       load degrees of the paths that probes gather
// choice       at random, in proportion to weights
//
// For groups of up to 4 paths, as leaf. After DHLB.
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

const PortId_t CPU_PORT = 0;

// Port 6 of each pipe leads round within the switch.
const PortId_t RECIRCULATION = 6;
const PortId_t PORT_OF_PIPE = 0x7F; // mask

const MirrorType_t MIRROR_REPORT = 1;
const MirrorId_t SESSION_REPORT = 1; // leads to RECIRCULATION
const bit<8> REPORT = 0xFF;          // first byte of a report

const bit<16> TYPE_PROBE = 0x88B6;
const bit<16> PROBES_UP = 900; // multicast group

const bit<32> PORTS = 512;   // ports of the switch
const bit<32> FLOWS = 65536; // slots for flows, by the CRC16 of the 5-tuple
const bit<32> GROUPS = 1024; // groups of paths

// T_b: a port's state goes to ingress at most this often; tb=1ms. QALL,
// Section IV-E: the updating period trades freshness for overhead, T_b = 1 ms.
const ticks_t T_B = 977;

// a longer pause than this ends a flowlet; gap=500us. QDAPS, Section IV, on
// LetFlow: 500 us; QALL, Section IV-B: T_inter = 10 ms.
const ticks_t FLOWLET_GAP = 488;

// the time between a switch's probes; tprobe=200us. DHLB, Section 3.2: HULA
// probes every 200 us.
const ticks_t T_PROBE = 195;

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
    bit<16>  sent; // utilisation
}

// The load of the paths to a ToR switch, along the way that the probe took (Fig. 2).
header probe_t {
    bit<16> origin;    // the ToR switch, by the number of the groups that lead to it
    bit<16> seq;       // counts the probes of the origin
    bit<32> maxdeg;    // the least load degree along the path
    bit<8>  hop;       // switches passed
    bit<8>  switch_id; // the last of them
    bit<16> in_port;   // there
    bit<16> out_port;  // there
}

struct headers_t {
    pktgen_timer_header_t generated;
    report_t              report;
    ethernet_t            ethernet;
    probe_t               probe;
    ipv4_t                ipv4;
}

struct ingress_metadata_t {
    bool     bad_checksum;
    gid_t    gid;
    bit<8>   n;     // paths in the group; 0: there is nothing to choose
    slot_t   slot;  // the path chosen
    bit<16>  sport; // of TCP or UDP, else 0
    bit<16>  dport;
    ticks_t  now;     // when the packet came in
    bit<16>  flow;    // slot of the flow
    bit<1>   own;     // a probe that begins here
    PortId_t link;    // that is reported, or that a probe came in by
    bit<16>  load;    // its utilisation
    bit<1>   heard;   // a probe about a path of a group has come in
    bit<1>   fresh;   // a flowlet begins
    bit<32>  d;       // load degree of the link, then of the path
    bit<32>  level_0; // load degrees of the paths
    bit<32>  level_1;
    bit<32>  level_2;
    bit<32>  level_3;
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
    bit<16>    sent; // utilisation of the link, 256 is full
}

struct degree_t {
    bit<32> degree;
    ticks_t noted;
}

// Registers.

Register<ticks_t, PortId_t>(PORTS) qe_clone; // when the port was last reported
Register<bit<16>, PortId_t>(PORTS) u_in;     // utilisation of the port's link as last reported, 256 is full
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
            CPU_PORT: own;
            RECIRCULATION &&& PORT_OF_PIPE: round;
            default: ethernet;
        }
    }

    state ethernet {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            TYPE_PROBE: probe;
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

    // A packet of the packet generator begins with its number, a report does not.
    state round {
        transition select(pkt.lookahead<bit<8>>()) {
            REPORT: report;
            default: generated;
        }
    }

    state report {
        pkt.extract(hdr.report);
        transition accept;
    }

    state probe {
        pkt.extract(hdr.probe);
        transition accept;
    }
}

// Ingress: the route, and the path.

// The load degrees of the paths in one slot: probes write them, packets read.
control Degree(in headers_t hdr, in ingress_metadata_t meta, inout bit<32> level)(slot_t slot) {
    Register<degree_t, gid_t>(GROUPS, {0xFFFFFFFF, 0}) deg; // below any degree

    RegisterAction<degree_t, gid_t, bit<32>>(deg) note = {
        void apply(inout degree_t held) {
            if ((span_t)hdr.probe.maxdeg >= (span_t)held.degree || (span_t)(meta.now - held.noted) > (span_t)(2 * T_PROBE)) {
                held.degree = hdr.probe.maxdeg;
                held.noted = meta.now;
            }
        }
    };

    RegisterAction<degree_t, gid_t, bit<32>>(deg) tell = {
        void apply(inout degree_t held, out bit<32> degree) {
            degree = held.degree;
        }
    };

    action note_degree() {
        note.execute(meta.gid);
    }

    action tell_degree() {
        level = tell.execute(meta.gid);
    }

    action no_path() {
        level = 7;
    }

    table access {
        key = {
            meta.heard: exact;
            meta.slot: ternary;
            meta.n: range;
        }
        actions = {
            note_degree;
            tell_degree;
            no_path;
        }
        const entries = {
            (1, slot, _): note_degree();
            (0, _, slot + 1 .. 255): tell_degree();
        }
        default_action = no_path();
        size = 2;
    }

    apply {
        access.apply();
    }
}

// Else p4c for Tofino 2 puts it beside a bit that is set with it.
@pa_container_size("ingress", "meta.gid", 16)
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

    RegisterAction<bit<16>, PortId_t, bit<16>>(u_in) tell_load = {
        void apply(inout bit<16> held, out bit<16> load) {
            load = held;
        }
    };

    RegisterAction<bit<16>, PortId_t, bit<16>>(u_in) learn_load = {
        void apply(inout bit<16> held) {
            held = hdr.report.sent;
        }
    };

    action find_load() {
        meta.load = tell_load.execute(meta.link);
    }

    action note_load() {
        learn_load.execute(meta.link);
    }

    table load {
        key = {
            hdr.report.isValid(): exact;
        }
        actions = {
            find_load;
            note_load;
        }
        const entries = {
            false: find_load();
            true: note_load();
        }
        size = 2;
    }

    // The port at which a probe comes in leads back to the probe's origin.
    action set_arrival(slot_t slot) {
        meta.heard = 1;
        meta.gid = hdr.probe.origin;
        meta.slot = slot;
        dprsr.drop_ctl = 1;
    }

    table arrival {
        key = {
            hdr.probe.origin: exact;
            ig.ingress_port: exact;
        }
        actions = {
            set_arrival;
            drop;
        }
        default_action = drop();
        size = 4096;
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

    // The path of the flowlet: the one just chosen if it begins.
    RegisterAction<slot_t, bit<16>, slot_t>(fl_port) hold_path = {
        void apply(inout slot_t held, out slot_t slot) {
            if (meta.fresh == 1) {
                held = meta.slot;
            }
            slot = held;
        }
    };

    action set_degree(bit<32> d) {
        meta.d = d;
    }

    // Table 1, its ranges closed below: 256 is full.
    table degree {
        key = {
            meta.load: range;
        }
        actions = {
            set_degree;
        }
        const entries = {
            0 .. 63: set_degree(5);
            64 .. 127: set_degree(3);
            128 .. 178: set_degree(2);
            179 .. 229: set_degree(1);
            230 .. 65535: set_degree(0);
        }
        size = 5;
    }

    action find_least() {
        hdr.probe.maxdeg = min(meta.d, hdr.probe.maxdeg);
    }

    // Several paths share a next hop: what counts is the best of them that a probe
    // came along lately. Table 2 shows a degree of 4, which Table 1 does not have.
    Degree(0) degree_0;
    Degree(1) degree_1;
    Degree(2) degree_2;
    Degree(3) degree_3;

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
        hdr.generated.setInvalid();
        if (hdr.report.isValid()) {
            meta.link = hdr.report.port;
            drop();
        } else if (hdr.probe.isValid()) {
            if (meta.own == 1) {
                tm.mcast_grp_a = PROBES_UP;
            } else {
                meta.link = ig.ingress_port;
                arrival.apply();
            }
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && !meta.bad_checksum) {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            ipv4_route.apply();
        } else {
            drop();
        }
        load.apply();
        degree.apply();
        if (meta.heard == 1) {
            find_least();
        }
        degree_0.apply(hdr, meta, meta.level_0);
        degree_1.apply(hdr, meta, meta.level_1);
        degree_2.apply(hdr, meta, meta.level_2);
        degree_3.apply(hdr, meta, meta.level_3);
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
        pkt.emit(hdr.probe);
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

    // The utilisation of the link, in the place of Eq. 1.
    Lpf<bit<16>, PortId_t>(PORTS) u;

    action count_sent() {
        meta.sent = u.execute(eg.pkt_length, eg.egress_port);
    }

    apply {
        if (!hdr.report.isValid()) {
            read_clock();
            count_sent();
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
            mirror.emit<report_t>(meta.session, {meta.type, 0, meta.port, meta.sent});
        }
        pkt.emit(hdr);
    }
}

Pipeline(LbIngressParser(), LbIngress(), LbIngressDeparser(),
         LbEgressParser(), LbEgress(), LbEgressDeparser()) pipe;

Switch(pipe) main;
