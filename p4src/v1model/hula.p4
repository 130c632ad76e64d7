// hula: flowlets on the path of the best probe.
//
// granularity  a pause in a flow allows another path
// signal       path utilisation that probes gather
// choice       the hop that the best probe came from
//
// For groups of up to 4 paths, as leaf. After Katta et al., HULA, SOSR 2016.
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

const port_t CPU_PORT = 255; // where the controller's own probes come in

const bit<16> TYPE_PROBE = 0x88B6;
const bit<16> PROBES_UP = 900; // multicast group

const bit<32> PORTS = 512;   // ports of the switch
const bit<32> FLOWS = 65536; // slots for flows, by the CRC16 of the 5-tuple
const bit<32> GROUPS = 1024; // groups of paths

// T_b: a port's state goes to ingress at most this often; tb=1ms. QALL,
// Section IV-E: the updating period trades freshness for overhead, T_b = 1 ms.
const time_us_t T_B = 1000;

// a longer pause than this ends a flowlet; gap=500us. QDAPS, Section IV, on
// LetFlow: 500 us; QALL, Section IV-B: T_inter = 10 ms.
const time_us_t FLOWLET_GAP = 500;

// a best path that no probe has come along for so long is given up;
// tfail=600us. HULA: a few probe periods.
const time_us_t T_FAIL = 600;

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

// What the paths to a ToR switch carry, along the way that the probe took.
header probe_t {
    bit<16> origin; // the ToR switch, by the number of the groups that lead to it
    bit<32> util;   // the most that a link of the path sent lately, in bytes
}

struct headers_t {
    report_t   report;
    ethernet_t ethernet;
    probe_t    probe;
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
    time_us_t now;      // the ingress clock stands at 0 for a packet that comes round
    bit<32>   flow;     // slot of the flow
    bool      known;    // the slot holds a path of the group
    bool      fresh;    // a path is to be chosen
    time_us_t reported; // when the port was last reported
    @field_list(FIELDS_REPORT)
    bit<32> sent; // bytes that the port sent lately
    @field_list(FIELDS_REPORT)
    port_t port;      // that these are of
    bool   known_hop; // a probe has come along a path of the group
}

// Registers.

register<time_us_t>(FLOWS) fl_ts;    // when the flow's last packet came
register<time_us_t>(PORTS) qe_clone; // when the port was last reported
register<bit<32>>(PORTS) u;          // bytes sent lately, fading within 2^10 us
register<time_us_t>(PORTS) u_ts;     // when u was last right
register<bit<32>>(PORTS) u_in;       // u as last reported
register<time_us_t>(PORTS) u_in_ts;  // when that was
register<bit<16>>(FLOWS) fl_port;    // the path of the flow's flowlet
register<bit<16>>(GROUPS) best_hop;  // the path of the least utilisation to the destination
register<bit<32>>(GROUPS) min_util;  // utilisation of that path: bytes that its busiest link sent within 2^10 us
register<time_us_t>(GROUPS) upd;     // when a probe last told so

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
            TYPE_PROBE: probe;
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

    state probe {
        pkt.extract(hdr.probe);
        transition accept;
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

    // The port at which a probe comes in leads back to the probe's origin.
    action set_arrival(slot_t slot) {
        meta.slot = slot;
    }

    table arrival {
        key = {
            hdr.probe.origin: exact;
            std.ingress_port: exact;
        }
        actions = {
            set_arrival;
            drop;
        }
        default_action = drop();
        size = 4096;
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

    // A probe is about the way back: what counts of this link is what was sent to
    // where the probe came from. The best path changes for a better one, with
    // every probe that came along it, and if no probe has for T_FAIL.
    action note_probe() {
        bit<32> group = (bit<32>)hdr.probe.origin;
        port_t port = std.ingress_port;
        bit<32> sent;
        time_us_t last;
        u_in.read(sent, (bit<32>)port);
        u_in_ts.read(last, (bit<32>)port);
        time_us_t elapsed = std.ingress_global_timestamp - last;
        sent = elapsed >> 10 != 0 ? 0 : sent - (bit<32>)((bit<64>)sent * (bit<64>)elapsed >> 10);
        bit<32> util = sent > hdr.probe.util ? sent : hdr.probe.util;
        bit<16> hop;
        bit<32> least;
        time_us_t updated;
        best_hop.read(hop, group);
        min_util.read(least, group);
        upd.read(updated, group);
        bit<16> arrived = 8w0x80 ++ meta.slot;
        bool better = hop == arrived || util < least || hop == 0 || std.ingress_global_timestamp - updated > T_FAIL;
        hop = better ? arrived : hop;
        least = better ? util : least;
        best_hop.write(group, hop);
        min_util.write(group, least);
        upd.write(group, better ? std.ingress_global_timestamp : updated);
        hdr.probe.util = least;
    }

    action find_best_hop() {
        bit<16> hop;
        best_hop.read(hop, (bit<32>)meta.gid);
        meta.slot = hop[7:0];
        meta.known_hop = hop[15:15] == 1 && hop[7:0] < meta.n;
    }

    apply {
        if (hdr.report.isValid()) {
            u_in.write((bit<32>)hdr.report.port, hdr.report.sent);
            u_in_ts.write((bit<32>)hdr.report.port, meta.now);
            drop();
        } else if (hdr.probe.isValid()) {
            if (std.ingress_port == CPU_PORT) {
                std.mcast_grp = PROBES_UP;
            } else if (arrival.apply().hit) {
                note_probe();
                drop();
            }
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && std.checksum_error == 0) {
            ipv4_route.apply();
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            if (meta.n != 0) {
                find_flow();
                if (meta.fresh) {
                    find_best_hop();
                    if (!meta.known_hop) {
                        random(meta.slot, 8w0, meta.n - 1);
                    }
                    fl_port.write(meta.flow, 8w0x80 ++ meta.slot);
                }
            }
        } else {
            drop();
        }
        if (meta.n != 0) {
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
        hdr.probe.setInvalid();
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

    // The utilisation of the link, as HULA estimates it: U = size + U*(1 - dt/tau)
    // with tau = 2^10 us.
    action count_sent() {
        bit<32> port = (bit<32>)std.egress_port;
        bit<32> sent;
        time_us_t last;
        u.read(sent, port);
        u_ts.read(last, port);
        time_us_t elapsed = std.egress_global_timestamp - last;
        sent = elapsed >> 10 != 0 ? 0 : sent - (bit<32>)((bit<64>)sent * (bit<64>)elapsed >> 10);
        meta.sent = std.packet_length + sent;
        u.write(port, meta.sent);
        u_ts.write(port, std.egress_global_timestamp);
        meta.port = std.egress_port;
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
        }
    }
}

// Deparser.

control LbDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.report);
        pkt.emit(hdr.ethernet);
        pkt.emit(hdr.probe);
        pkt.emit(hdr.ipv4);
    }
}

V1Switch(LbParser(), LbVerify(), LbIngress(), LbEgress(), LbUpdate(), LbDeparser()) main;
