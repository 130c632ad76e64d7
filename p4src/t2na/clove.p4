// clove: flowlets on the least marked path.
//
// granularity  a pause in a flow allows another path
// signal       the share of probes that met a long queue, for each path
// choice       the least loaded path, ties at random
//
// For groups of up to 4 paths, as leaf. After Katta et al., Clove, CoNEXT
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

const bit<16> TYPE_PATH_PROBE = 0x88B7;
const bit<8> PROBE_REPLY = 1; // flags of a probe
const bit<8> PROBE_CE = 2;    // it met a long queue

// ecnk=20 packets of 1500 bytes, in cells of 176 bytes.
const bit<19> ECN_CELLS = 170;
const level_t MARK = 0xFF00; // all probes are marked

const level_t CLOSED = 0xFFF0; // no path is as bad

const bit<32> FLOWS = 65536; // slots for flows, by the CRC16 of the 5-tuple
const bit<32> GROUPS = 1024; // groups of paths
const bit<32> PATHS = 16384; // paths: group * 16 + slot

// a longer pause than this ends a flowlet; gap=500us. QDAPS, Section IV, on
// LetFlow: 500 us; QALL, Section IV-B: T_inter = 10 ms.
const ticks_t FLOWLET_GAP = 488;

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
    ethernet_t            ethernet;
    path_probe_t          path_probe;
    ipv4_t                ipv4;
}

struct ingress_metadata_t {
    bool    bad_checksum;
    gid_t   gid;
    bit<8>  n;     // paths in the group; 0: there is nothing to choose
    slot_t  slot;  // the path chosen
    bit<16> sport; // of TCP or UDP, else 0
    bit<16> dport;
    ticks_t now;    // when the packet came in
    bit<16> flow;   // slot of the flow
    bit<1>  own;    // a probe that begins here
    gid_t   here;   // the number of this leaf, for a probe that has arrived
    bit<32> path;   // that a probe was sent along
    ticks_t trip;   // how long it took
    delay_t rtt;    // the same in 16 bits
    level_t mark;   // MARK, or 0
    level_t share;  // of marked probes, MARK is all
    bit<1>  learnt; // a probe has come back
    bit<8>  along;  // the path that it was sent along

    level_t level_0; // shares of marked probes

    level_t level_1;

    level_t level_2;

    level_t level_3;
    bit<1>  fresh; // a flowlet begins
    bit<12> draw;  // decides about ties
}

struct egress_metadata_t {
    bit<19> long; // cells of the queue beyond ECN_CELLS
}

// Registers.

Register<ticks_t, bit<16>>(FLOWS) fl_ts;  // when the flow's last packet came
Register<slot_t, bit<16>>(FLOWS) fl_port; // the path of the flow's flowlet

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

    // A packet of the packet generator begins with its number, a report does not.
    state round {
        transition select(pkt.lookahead<bit<8>>()) {
            default: generated;
        }
    }

    state path_probe {
        pkt.extract(hdr.path_probe);
        transition accept;
    }
}

// Ingress: the route, and the path.

// What probes said of the paths in one slot: packets read it, probes that come
// back write it.
control Path(in headers_t hdr, in ingress_metadata_t meta, inout level_t ecn_p)(bit<8> slot) {
    Register<level_t, gid_t>(GROUPS) ecn;

    RegisterAction<level_t, gid_t, level_t>(ecn) read_ecn = {
        void apply(inout level_t held, out level_t told) {
            told = held;
        }
    };

    RegisterAction<level_t, gid_t, level_t>(ecn) write_ecn = {
        void apply(inout level_t held) {
            held = meta.share;
        }
    };

    action tell_ecn() {
        ecn_p = read_ecn.execute(meta.gid);
    }

    action learn_ecn() {
        write_ecn.execute(meta.gid);
    }

    action no_path() {
        ecn_p = CLOSED;
    }

    table marks {
        key = {
            meta.learnt: exact;
            meta.along: ternary;
            meta.n: range;
        }
        actions = {
            tell_ecn;
            learn_ecn;
            no_path;
        }
        const entries = {
            (0, _, slot + 1 .. 255): tell_ecn();
            (1, slot, _): learn_ecn();
        }
        default_action = no_path();
        size = 2;
    }

    apply {
        marks.apply();
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

    action cut() {
        meta.share = meta.share & 0xFF00;
    }

    Hash<delay_t>(HashAlgorithm_t.IDENTITY) rtt_hash;

    action find_rtt() {
        meta.rtt = rtt_hash.get(meta.trip[15:0]);
    }

    Path(0) path_0;
    Path(1) path_1;
    Path(2) path_2;
    Path(3) path_3;

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

    Random<bit<12>>() random;

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
        hdr.generated.setInvalid();
        if (hdr.path_probe.isValid()) {
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
                            drop();
                        }
                    }
                }
            }
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && !meta.bad_checksum) {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            ipv4_route.apply();
        } else {
            drop();
        }
        path_0.apply(hdr, meta, meta.level_0);
        path_1.apply(hdr, meta, meta.level_1);
        path_2.apply(hdr, meta, meta.level_2);
        path_3.apply(hdr, meta, meta.level_3);
        if (meta.n != 0) {
            if (!hdr.path_probe.isValid()) {
                find_flow();
                meta.fresh = note_time.execute(meta.flow);
                meta.draw = random.get();
                ranks.apply();
                round_0();
                round_1();
                meta.slot = hold_path.execute(meta.flow);
            }

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
        pkt.emit(hdr.path_probe);
        pkt.emit(hdr.ipv4);
    }
}

// Egress, which packets bypass.

parser LbEgressParser(packet_in pkt, out headers_t hdr, out egress_metadata_t meta,
                      out egress_intrinsic_metadata_t eg) {
    state start {
        pkt.extract(eg);
        meta.long = 0;
        transition ethernet;
    }

    state ethernet {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_PATH_PROBE: path_probe;
            default: accept;
        }
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
    action measure_queue() {
        meta.long = eg.enq_qdepth |-| ECN_CELLS;
    }

    action mark_probe() {
        hdr.path_probe.flags = hdr.path_probe.flags | PROBE_CE;
    }

    apply {
        measure_queue();
        if (hdr.path_probe.isValid() && meta.long != 0) {
            mark_probe();
        }
    }
}

control LbEgressDeparser(packet_out pkt, inout headers_t hdr, in egress_metadata_t meta,
                         in egress_intrinsic_metadata_for_deparser_t dprsr) {
    apply {
        pkt.emit(hdr);
    }
}

Pipeline(LbIngressParser(), LbIngress(), LbIngressDeparser(),
         LbEgressParser(), LbEgress(), LbEgressDeparser()) pipe;

Switch(pipe) main;
