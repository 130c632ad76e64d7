// conga: flowlets on the least congested path.
//
// granularity  a pause in a flow allows another path
// signal       path utilisation that data carries to the other leaf and back
// choice       the least loaded path, ties at random
//
// For groups of up to 4 paths, as leaf. After Alizadeh et al., CONGA, SIGCOMM
// 2014.
#include <core.p4>
#include <v1model.p4>

// Types and constants.

typedef bit<48> mac_t;
typedef bit<32> ipv4_addr_t;
typedef bit<9> port_t;
typedef bit<16> gid_t; // a group of paths, all that lead to one destination
typedef bit<8> slot_t; // a path within its group
typedef bit<48> time_us_t;

const bit<16> TYPE_IPV4 = 0x0800;

const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

// The metadata that comes along, and why the packet comes.
const bit<8> FIELDS_AGAIN = 2;
const bit<8> AGAIN_REPORT = 1;

const bit<32> EGRESS_CLONE = 2;     // of instance_type
const bit<32> SESSION_REPORT = 500; // leads to a port without an interface
const bit<8> FIELDS_REPORT = 1;

const bit<16> TYPE_OVERLAY = 0x88B6;

// Quantised to 3 bits: ce = sent*8/51200, what 400Mbps carry in 2^10 us.
const bit<64> CE_RECIPROCAL = 671088; // 8*2^32 / 51200

const bit<32> PORTS = 512;   // ports of the switch
const bit<32> FLOWS = 65536; // slots for flows, by the CRC16 of the 5-tuple
const bit<32> GROUPS = 1024; // groups of paths
const bit<32> PATHS = 16384; // paths: group * 16 + slot

// T_b: a port's state goes to ingress at most this often; tb=1ms. QALL,
// Section IV-E: the updating period trades freshness for overhead, T_b = 1 ms.
const time_us_t T_B = 1000;

// a longer pause than this ends a flowlet; gap=500us. QDAPS, Section IV, on
// LetFlow: 500 us; QALL, Section IV-B: T_inter = 10 ms.
const time_us_t FLOWLET_GAP = 500;

// a path's congestion counts as 0 if it is older than this; ageing=10ms.
// CONGA, Section 3.3: metrics age after 10 ms.
const time_us_t AGEING = 10000;

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

// What egress tells ingress about a port.
header report_t {
    bit<32> sent; // bytes sent lately
    bit<16> port; // the egress port
}

// What CONGA's leaves tell each other with every packet.
header overlay_t {
    bit<4> lbtag;     // the path that the packet takes
    bit<3> ce;        // the most congested link of it so far
    bit<4> fb_lbtag;  // a path of the leaf that the packet goes to
    bit<3> fb_metric; // its congestion
    bit<2> pad;       // to a whole byte
}

struct headers_t {
    report_t   report;
    ethernet_t ethernet;
    overlay_t  overlay;
    ipv4_t     ipv4;
}

struct metadata_t {
    gid_t   gid;
    slot_t  n;     // paths in the group; 0: there is nothing to choose
    slot_t  slot;  // the path chosen
    bit<16> sport; // of TCP or UDP, else 0
    bit<16> dport;
    @field_list(FIELDS_AGAIN)
    bit<8> again; // why the packet comes round, 0 for one from a port
    @field_list(FIELDS_AGAIN)
    time_us_t now;    // the ingress clock stands at 0 for a packet that comes round
    bit<32>   flow;   // slot of the flow
    bool      known;  // the slot holds a path of the group
    bool      fresh;  // a path is to be chosen
    slot_t    first;  // the path that ties are decided for
    port_t    port_0; // egress ports of the group's paths
    port_t    port_1;
    port_t    port_2;
    port_t    port_3;
    time_us_t reported; // when the port was last reported
    @field_list(FIELDS_REPORT)
    bit<32> sent; // bytes that the port sent lately
    @field_list(FIELDS_REPORT)
    port_t  port;  // that these are of
    gid_t   leaf;  // that the packet comes from
    slot_t  tag;   // fed back: a path of the other leaf to us
    bit<40> least; // load and rank of the path chosen so far
}

// Registers.

register<time_us_t>(FLOWS) fl_ts;      // when the flow's last packet came
register<time_us_t>(PORTS) qe_clone;   // when the port was last reported
register<bit<32>>(PORTS) dre;          // bytes sent lately, fading within 2^10 us
register<time_us_t>(PORTS) dre_ts;     // when dre was last right
register<bit<32>>(PORTS) dre_in;       // dre as last reported
register<time_us_t>(PORTS) dre_in_ts;  // when that was
register<slot_t>(GROUPS) fb_tag;       // the path of that leaf to us that it is told about next
register<bit<16>>(FLOWS) fl_port;      // the path of the flow's flowlet
register<bit<8>>(PATHS) to_leaf;       // congestion of our path to that leaf
register<time_us_t>(PATHS) to_leaf_ts; // when it was last told
register<bit<8>>(PATHS) from_leaf;     // congestion of that leaf's path to us

// Parser.

parser LbParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    // What comes round comes from no port. The metadata alone does not say so:
    // simple_switch parses an ingress clone with what another packet left there.
    state start {
        transition select(std.ingress_port, meta.again) {
            (0, AGAIN_REPORT): report;
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

    state ipv4 {
        pkt.extract(hdr.ipv4);
        // Only a first fragment without options has its ports where we look.
        transition select(hdr.ipv4.ihl, hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (5, 0, PROTOCOL_TCP): ports;
            (5, 0, PROTOCOL_UDP): ports;
            default: accept;
        }
    }

    // The ports are only looked at: they stay with the payload.
    state ports {
        bit<32> both = pkt.lookahead<bit<32>>();
        meta.sport = both[31:16];
        meta.dport = both[15:0];
        transition accept;
    }

    state report {
        pkt.extract(hdr.report);
        transition accept;
    }

    state overlay {
        pkt.extract(hdr.overlay);
        transition ipv4;
    }
}

// Checksums.

control LbVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5, {
            hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,
            hdr.ipv4.total_len, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.frag_offset,
            hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst
        }, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control LbUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5, {
            hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,
            hdr.ipv4.total_len, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.frag_offset,
            hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst
        }, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

// Ingress: the route, and the path.

control LbIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action drop() {
        mark_to_drop(std);
    }

    action set_port(port_t port) {
        std.egress_spec = port;
    }

    action forward(port_t port, mac_t dmac, mac_t smac) {
        std.egress_spec = port;
        hdr.ethernet.dst = dmac;
        hdr.ethernet.src = smac;
    }

    action set_group(gid_t gid, slot_t n) {
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

    action set_candidates(port_t port_0, port_t port_1, port_t port_2, port_t port_3) {
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

    action set_leaf(gid_t leaf) {
        meta.leaf = leaf;
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

    // What the packet says is of the leaf it comes from: about its path to us, and
    // about one of our paths to it.
    action receive() {
        from_leaf.write((bit<32>)meta.leaf << 4 | (bit<32>)hdr.overlay.lbtag, (bit<8>)hdr.overlay.ce);
        to_leaf.write((bit<32>)meta.leaf << 4 | (bit<32>)hdr.overlay.fb_lbtag, (bit<8>)hdr.overlay.fb_metric);
        to_leaf_ts.write((bit<32>)meta.leaf << 4 | (bit<32>)hdr.overlay.fb_lbtag, std.ingress_global_timestamp);
        hdr.overlay.setInvalid();
        hdr.ethernet.type = TYPE_IPV4;
    }

    // Tells the leaf at the other end about its paths to us, in turn.
    action send() {
        slot_t next;
        fb_tag.read(next, (bit<32>)meta.gid);
        meta.tag = next < 4 ? next : 0;
        fb_tag.write((bit<32>)meta.gid, meta.tag + 1);
        hdr.overlay.setValid();
        hdr.ethernet.type = TYPE_OVERLAY;
        hdr.overlay.lbtag = (bit<4>)meta.slot;
        hdr.overlay.ce = 0;
        bit<8> metric;
        from_leaf.read(metric, (bit<32>)meta.gid << 4 | (bit<32>)meta.tag);
        hdr.overlay.fb_lbtag = (bit<4>)meta.tag;
        hdr.overlay.fb_metric = (bit<3>)metric;
        hdr.overlay.pad = 0;
    }

    // The path of the flow's flowlet, unless the pause since the last packet ends it.
    action find_flow() {
        hash(meta.flow, HashAlgorithm.crc16, 32w0,
             {hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.sport, meta.dport}, FLOWS);
        bit<16> held;
        fl_port.read(held, meta.flow);
        meta.slot = held[7:0];
        meta.known = held[15:15] == 1 && held[7:0] < meta.n;
        time_us_t last;
        fl_ts.read(last, meta.flow);
        fl_ts.write(meta.flow, std.ingress_global_timestamp);
        time_us_t elapsed = std.ingress_global_timestamp - last;
        meta.fresh = !meta.known || elapsed > FLOWLET_GAP;
    }

    // One more path, unless there is a better one. Of several that are as good the
    // first from meta.first on counts.
    action look_at(in slot_t slot, in port_t port) {
        // The larger one of the local congestion and that of the path.
        bit<32> sent;
        time_us_t last;
        dre_in.read(sent, (bit<32>)port);
        dre_in_ts.read(last, (bit<32>)port);
        time_us_t elapsed = std.ingress_global_timestamp - last;
        sent = elapsed >> 10 != 0 ? 0 : sent - (bit<32>)((bit<64>)sent * (bit<64>)elapsed >> 10);

        bit<64> eighths = (bit<64>)sent * CE_RECIPROCAL >> 32;

        bit<8> local = eighths < 7 ? (bit<8>)eighths : 7;
        bit<32> path = (bit<32>)meta.gid << 4 | (bit<32>)slot;
        bit<8> remote;
        time_us_t told;
        to_leaf.read(remote, path);
        to_leaf_ts.read(told, path);
        remote = std.ingress_global_timestamp - told > AGEING ? 0 : remote;
        bit<32> cost = (bit<32>)(local > remote ? local : remote);
        slot_t rank = slot < meta.first ? slot + meta.n - meta.first : slot - meta.first;
        bit<40> key = slot < meta.n ? cost ++ rank : 0xFFFFFFFFFF;
        meta.slot = key < meta.least ? slot : meta.slot;
        meta.least = key < meta.least ? key : meta.least;
    }

    apply {
        if (hdr.report.isValid()) {
            dre_in.write((bit<32>)hdr.report.port, hdr.report.sent);
            dre_in_ts.write((bit<32>)hdr.report.port, meta.now);
            drop();
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && std.checksum_error == 0) {
            if (hdr.overlay.isValid()) {
                if (!leaf_of.apply().hit) {
                    exit; // nobody's: it is dropped
                }
                receive();
            }
            ipv4_route.apply();
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            if (meta.n != 0) {
                find_flow();
                if (meta.fresh) {
                    candidates.apply();
                    random(meta.first, 8w0, meta.n - 1);
                    meta.least = 0xFFFFFFFFFF;
                    look_at(0, meta.port_0);
                    look_at(1, meta.port_1);
                    look_at(2, meta.port_2);
                    look_at(3, meta.port_3);
                    fl_port.write(meta.flow, 8w0x80 ++ meta.slot);
                }
            }
        } else {
            drop();
        }
        if (meta.n != 0) {
            send();
            member.apply();
        }
    }
}

// Egress: measure, and report to ingress.

control LbEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    // A copy becomes a report: the headers go, the rest of the packet comes along.
    action make_report() {
        hdr.report.setValid();
        hdr.report.sent = meta.sent;
        hdr.report.port = (bit<16>)meta.port;
        hdr.ethernet.setInvalid();
        hdr.overlay.setInvalid();
        hdr.ipv4.setInvalid();
        meta.again = AGAIN_REPORT;
        meta.now = std.egress_global_timestamp;
        recirculate_preserving_field_list(FIELDS_AGAIN);
    }

    // State return (QALL, Alg. 3): what was measured goes to ingress if the last
    // time is longer ago than T_b. What Alg. 3 collects in between is the latest:
    // the paper does not say how to condense it, and forgets to note the time.
    action find_last_report() {
        qe_clone.read(meta.reported, (bit<32>)std.egress_port);
    }

    action return_state() {
        qe_clone.write((bit<32>)std.egress_port, std.egress_global_timestamp);
        clone_preserving_field_list(CloneType.E2E, SESSION_REPORT, FIELDS_REPORT);
    }

    // The discounting rate estimator, which fades when it is looked at rather than
    // by a timer.
    action count_sent() {
        bit<32> port = (bit<32>)std.egress_port;
        bit<32> sent;
        time_us_t last;
        dre.read(sent, port);
        dre_ts.read(last, port);
        time_us_t elapsed = std.egress_global_timestamp - last;
        sent = elapsed >> 10 != 0 ? 0 : sent - (bit<32>)((bit<64>)sent * (bit<64>)elapsed >> 10);
        meta.sent = std.packet_length + sent;
        dre.write(port, meta.sent);
        dre_ts.write(port, std.egress_global_timestamp);
        meta.port = std.egress_port;
    }

    // The packet carries on the worst that it has met.
    action mark_congestion() {
        bit<32> sent = meta.sent;

        bit<64> eighths = (bit<64>)sent * CE_RECIPROCAL >> 32;

        bit<3> ce = eighths < 7 ? (bit<3>)eighths : 7;
        hdr.overlay.ce = ce > hdr.overlay.ce ? ce : hdr.overlay.ce;
    }

    apply {
        if (std.instance_type == EGRESS_CLONE) {
            make_report();
        } else {
            count_sent();
            find_last_report();
            if (std.egress_global_timestamp - meta.reported > T_B) {
                return_state();
            }
            if (hdr.overlay.isValid()) {
                mark_congestion();
            }
        }
    }
}

// Deparser.

control LbDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.report);
        pkt.emit(hdr.ethernet);
        pkt.emit(hdr.overlay);
        pkt.emit(hdr.ipv4);
    }
}

V1Switch(LbParser(), LbVerify(), LbIngress(), LbEgress(), LbUpdate(), LbDeparser()) main;
