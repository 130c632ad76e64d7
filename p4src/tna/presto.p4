// presto: flowcells in turn.
//
// granularity  so many bytes of a flow, then another path
// choice       the next path in turn
//
// For groups of up to 4 paths, as leaf. After He et al., Presto, SIGCOMM 2015.
#include <core.p4>
#include <tna.p4>

// Types and constants.

typedef bit<48> mac_t;
typedef bit<32> ipv4_addr_t;
typedef bit<16> gid_t; // a group of paths, all that lead to one destination
typedef bit<8> slot_t; // a path within its group

const bit<16> TYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

const bit<32> FLOWS = 65536; // slots for flows, by the CRC16 of the 5-tuple

// the size of a flowcell; cell=64KiB. Presto: 64 KB, the largest segment that
// hosts offload.
const bit<32> CELL_BYTES = 65536;

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

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct ingress_metadata_t {
    bool    bad_checksum;
    gid_t   gid;
    bit<8>  n;     // paths in the group; 0: there is nothing to choose
    slot_t  slot;  // the path chosen
    bit<16> sport; // of TCP or UDP, else 0
    bit<16> dport;
    bit<32> bytes; // length of the IPv4 packet
    bit<16> flow;  // slot of the flow
    bit<32> cell;  // whose turn it is, from 0
    bit<32> last;  // n - 1
    bit<32> first; // path of the flow's first cell
    bit<32> sum;   // that and the turn of the cell
    bit<12> draw;  // decides about first
}

struct egress_metadata_t {}

struct flowcell_t {
    bit<32> bytes;
    bit<32> cell;
}

// Registers.

Register<flowcell_t, bit<16>>(FLOWS) fc; // bytes of the flow's cell so far, and whose turn it is

// Ingress parser.

parser LbIngressParser(packet_in pkt, out headers_t hdr, out ingress_metadata_t meta,
                       out ingress_intrinsic_metadata_t ig) {
    Checksum() ipv4_checksum;

    state start {
        pkt.extract(ig);
        pkt.advance(PORT_METADATA_SIZE);
        meta.n = 0;
        transition ethernet;
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

    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) length_hash;

    action find_length() {
        meta.bytes = length_hash.get(hdr.ipv4.total_len);
    }

    Hash<bit<16>>(HashAlgorithm_t.CRC16) flow_slot;

    action find_flow() {
        meta.flow = flow_slot.get({hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.sport, meta.dport});
    }

    // A packet that would not fit into the flow's cell starts the next one.
    RegisterAction<flowcell_t, bit<16>, bit<32>>(fc) fill_cell = {
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
        tm.bypass_egress = 1;

        if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && !meta.bad_checksum) {
            find_length();
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            ipv4_route.apply();
        } else {
            drop();
        }

        if (meta.n != 0) {
            find_flow();
            meta.draw = first_hash.get({hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.sport, meta.dport});
            begin.apply();
            meta.cell = fill_cell.execute(meta.flow);
            add_turn();
            wrap.apply();

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
