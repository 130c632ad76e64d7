// pdlb: flowcells whose size follows the paths.
//
// granularity  flowcells of as many packets as the delays of the paths suggest
// signal       path delays that probes measure
// choice       any path, all alike
//
// For groups of up to 4 paths, as leaf. After PDLB, with the edge switch in
// the place of the sender.
#include <core.p4>
#include <t2na.p4>

// Types and constants.

typedef bit<48> mac_t;
typedef bit<32> ipv4_addr_t;
typedef bit<16> gid_t;   // a group of paths, all that lead to one destination
typedef bit<8> slot_t;   // a path within its group
typedef bit<32> ticks_t; // time in 1024 ns

const bit<16> TYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

const PortId_t CPU_PORT = 0;

// Port 6 of each pipe leads round within the switch.
const PortId_t RECIRCULATION = 6;
const PortId_t PORT_OF_PIPE = 0x7F; // mask

const bit<16> TYPE_PATH_PROBE = 0x88B7;
const bit<8> PROBE_REPLY = 1; // flags of a probe

const bit<32> FLOWS = 65536; // slots for flows, by the CRC16 of the 5-tuple
const bit<32> GROUPS = 1024; // groups of paths
const bit<32> PATHS = 16384; // paths: group * 16 + slot

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
    bit<8>  flags; // 1 reply
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
    ticks_t now;   // when the packet came in
    bit<12> draw;  // decides about the path
    bit<16> flow;  // slot of the flow
    bit<1>  own;   // a probe that begins here
    gid_t   here;  // the number of this leaf, for a probe that has arrived
    bit<32> path;  // that a probe was sent along
    ticks_t rtt;   // of it
    bit<16> gran;  // packets of a cell
    bit<1>  fresh; // a cell begins
}

struct egress_metadata_t {}

// Registers.

Register<ticks_t, bit<32>>(PATHS) rtt;    // how long a probe of the path took there and back
Register<ticks_t, bit<32>>(PATHS) rtt_ts; // when it came back
Register<bit<16>, gid_t>(GROUPS) pd_gran; // the size of flowcells to the leaf; 0 counts as 1
Register<bit<16>, bit<16>>(FLOWS) fc_cnt; // packets of the flow's cell so far, 0 before the first
Register<slot_t, bit<16>>(FLOWS) fc_port; // the path of the flow's cell

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
        meta.rtt = meta.now - hdr.path_probe.tx_ts;
    }

    RegisterAction<ticks_t, bit<32>, ticks_t>(rtt) learn_rtt = {
        void apply(inout ticks_t held) {
            held = meta.rtt;
        }
    };

    RegisterAction<ticks_t, bit<32>, ticks_t>(rtt_ts) learn_time = {
        void apply(inout ticks_t held) {
            held = meta.now;
        }
    };

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

    RegisterAction<bit<16>, gid_t, bit<16>>(pd_gran) find_gran = {
        void apply(inout bit<16> held, out bit<16> gran) {
            gran = held;
        }
    };

    // Counts the flow's packets: a cell of gran of them is full (Algorithm 1; the
    // controller computes gran, Eq. 10).
    RegisterAction<bit<16>, bit<16>, bit<1>>(fc_cnt) fill_cell = {
        void apply(inout bit<16> packets, out bit<1> fresh) {
            if (packets == 0 || packets >= meta.gran) {
                packets = 1;
                fresh = 1;
            } else {
                packets = packets + 1;
                fresh = 0;
            }
        }
    };

    // The path of the cell: the one just chosen if it begins.
    RegisterAction<slot_t, bit<16>, slot_t>(fc_port) hold_path = {
        void apply(inout slot_t held, out slot_t slot) {
            if (meta.fresh == 1) {
                held = meta.slot;
            }
            slot = held;
        }
    };

    Random<bit<12>>() random;

    apply {
        tm.bypass_egress = 1;
        read_clock();
        hdr.generated.setInvalid();
        if (hdr.path_probe.isValid()) {
            if (meta.own == 1) {
                start_probe();
            } else {
                switch (leaf.apply().action_run) {
                    at_home: {
                        if (hdr.path_probe.flags == 0) {
                            turn_probe();
                        } else {
                            find_path();
                            learn_rtt.execute(meta.path);
                            learn_time.execute(meta.path);
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

        if (meta.n != 0) {
            if (!hdr.path_probe.isValid()) {
                find_flow();
                meta.gran = find_gran.execute(meta.gid);
                meta.fresh = fill_cell.execute(meta.flow);
                meta.draw = random.get();
                spread.apply();
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

        transition accept;
    }
}

control LbEgress(inout headers_t hdr, inout egress_metadata_t meta,
                 in egress_intrinsic_metadata_t eg,
                 in egress_intrinsic_metadata_from_parser_t prsr,
                 inout egress_intrinsic_metadata_for_deparser_t dprsr,
                 inout egress_intrinsic_metadata_for_output_port_t oport) {
    apply {}
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
