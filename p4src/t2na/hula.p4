// hula: flowlets on the path of the best probe.
//
// granularity  a pause in a flow allows another path
// signal       path utilisation that probes gather
// choice       the hop that the best probe came from
//
// For groups of up to 4 paths, as leaf. After Katta et al., HULA, SOSR 2016.
#include <core.p4>
#include <t2na.p4>

// Types and constants.

typedef bit<48> mac_t;
typedef bit<32> ipv4_addr_t;
typedef bit<16> gid_t;   // a group of paths, all that lead to one destination
typedef bit<16> slot_t;  // a path within its group
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

const slot_t NO_HOP = 0xFFFF;

const bit<32> PORTS = 512;   // ports of the switch
const bit<32> FLOWS = 65536; // slots for flows, by the CRC16 of the 5-tuple
const bit<32> GROUPS = 1024; // groups of paths

// T_b: a port's state goes to ingress at most this often; tb=1ms. QALL,
// Section IV-E: the updating period trades freshness for overhead, T_b = 1 ms.
const ticks_t T_B = 977;

// a longer pause than this ends a flowlet; gap=500us. QDAPS, Section IV, on
// LetFlow: 500 us; QALL, Section IV-B: T_inter = 10 ms.
const ticks_t FLOWLET_GAP = 488;

// a best path that no probe has come along for so long is given up;
// tfail=600us. HULA: a few probe periods.
const ticks_t T_FAIL = 586;

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

// What the paths to a ToR switch carry, along the way that the probe took.
header probe_t {
    bit<16> origin; // the ToR switch, by the number of the groups that lead to it
    bit<16> util;   // utilisation of the path's busiest link, 256 is full
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
    ticks_t  now;   // when the packet came in
    bit<12>  draw;  // decides about the path
    bit<16>  flow;  // slot of the flow
    bit<1>   own;   // a probe that begins here
    PortId_t link;  // that is reported, or that a probe came in by
    bit<16>  load;  // its utilisation
    bit<1>   heard; // a probe about a path of a group has come in
    bit<1>   fresh; // a flowlet begins
    bit<16>  util;  // of the path that the probe came along
    slot_t   hop;   // the best path
    bit<16>  least; // utilisation of the best path
    bit<16>  lost;  // by how much it is better than the probe's
    bit<1>   old;   // no probe has come along it lately
}

struct egress_metadata_t {
    ticks_t    now;  // when the packet came to egress
    bit<1>     due;  // a report is
    bit<8>     type; // what it begins with
    MirrorId_t session;
    PortId_t   port;
    bit<16>    sent; // utilisation of the link, 256 is full
}

// The best path to a destination.
struct best_t {
    bit<16> util;
    slot_t  hop;
}

// Registers.

Register<ticks_t, PortId_t>(PORTS) qe_clone;            // when the port was last reported
Register<bit<16>, PortId_t>(PORTS) u_in;                // utilisation of the port's link as last reported, 256 is full
Register<ticks_t, bit<16>>(FLOWS) fl_ts;                // when the flow's last packet came
Register<slot_t, bit<16>>(FLOWS) fl_port;               // the path of the flow's flowlet
Register<best_t, gid_t>(GROUPS, {0xFFFF, NO_HOP}) best; // the least utilisation of a path to the destination, 256 is full, and that path
Register<ticks_t, gid_t>(GROUPS) upd;                   // when a probe last told so

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

// Else p4c for Tofino 2 puts it beside a bit that is set with it.
@pa_container_size("ingress", "meta.gid", 16)
// What a register with two halves gives fits a container of its width only.
@pa_container_size("ingress", "meta.least", 16)
@pa_container_size("ingress", "meta.hop", 16)
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

    action set_slot(slot_t slot) {
        meta.slot = slot;
    }

    table spread {
        key = {
            meta.n: exact;
            meta.draw: range;
        }
        actions = {
            set_slot;
        }
        const entries = {
            (1, 0 .. 4095): set_slot(0);
            (2, 0 .. 2047): set_slot(0);
            (2, 2048 .. 4095): set_slot(1);
            (3, 0 .. 1364): set_slot(0);
            (3, 1365 .. 2729): set_slot(1);
            (3, 2730 .. 4095): set_slot(2);
            (4, 0 .. 1023): set_slot(0);
            (4, 1024 .. 2047): set_slot(1);
            (4, 2048 .. 3071): set_slot(2);
            (4, 3072 .. 4095): set_slot(3);
        }
        size = 10;
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

    // A probe is about the way back: what counts of this link is what was sent to
    // where the probe came from.
    action find_util() {
        meta.util = max(meta.load, hdr.probe.util);
    }

    // The best path changes for one that is as good, and with every probe that came
    // along it.
    RegisterAction<best_t, gid_t, bit<16>>(best) note_probe = {
        void apply(inout best_t held, out bit<16> util) {
            if (meta.util <= held.util || held.hop == meta.slot) {
                held.util = meta.util;
                held.hop = meta.slot;
            }
            util = held.util;
        }
    };

    RegisterAction<best_t, gid_t, slot_t>(best) tell_hop = {
        void apply(inout best_t held, out slot_t hop) {
            hop = held.hop;
        }
    };

    action learn_best() {
        meta.least = note_probe.execute(meta.gid);
    }

    action find_best() {
        meta.hop = tell_hop.execute(meta.gid);
    }

    table best_hop {
        key = {
            meta.heard: exact;
        }
        actions = {
            learn_best;
            find_best;
        }
        const entries = {
            1: learn_best();
            0: find_best();
        }
        size = 2;
    }

    RegisterAction<ticks_t, gid_t, bit<1>>(upd) is_old = {
        void apply(inout ticks_t held, out bit<1> old) {
            if ((span_t)(meta.now - held) > (span_t)T_FAIL || (span_t)(meta.now - held) < 0) {
                old = 1;
            } else {
                old = 0;
            }
        }
    };

    RegisterAction<ticks_t, gid_t, bit<1>>(upd) note_time_of_probe = {
        void apply(inout ticks_t held) {
            held = meta.now;
        }
    };

    action find_age() {
        meta.old = is_old.execute(meta.gid);
    }

    action note_age() {
        note_time_of_probe.execute(meta.gid);
    }

    action take_hop() {
        meta.slot = meta.hop;
    }

    table age {
        key = {
            meta.heard: exact;
            meta.lost: ternary;
        }
        actions = {
            find_age;
            note_age;
            NoAction;
        }
        const entries = {
            (0, _): find_age();
            (1, 0): note_age();
        }
        default_action = NoAction();
        size = 2;
    }

    // Whether the probe came along another path than the best one.
    action find_lost() {
        meta.lost = meta.util - meta.least;
    }

    Random<bit<12>>() random;

    // The best hop, if there is one; else any.
    table known_hop {
        key = {
            meta.hop: exact;
            meta.old: exact;
        }
        actions = {
            take_hop;
            NoAction;
        }
        const entries = {
            (0, 0): take_hop();
            (1, 0): take_hop();
            (2, 0): take_hop();
            (3, 0): take_hop();
        }
        default_action = NoAction();
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
        if (meta.heard == 1) {
            find_util();
        }
        best_hop.apply();
        find_lost();
        age.apply();
        if (meta.n != 0) {
            find_flow();
            meta.fresh = note_time.execute(meta.flow);
            meta.draw = random.get();
            spread.apply();
            known_hop.apply();
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

    // The utilisation of the link.
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
