// qdaps: packets in order, by queueing delay.
//
// granularity  each packet for itself
// signal       local queue lengths
// choice       the shortest queue that lets a packet leave behind the one
//              before it
//
// For groups of up to 4 paths, as leaf. After Huang et al., QDAPS.
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

const bit<32> PORTS = 512;   // ports of the switch
const bit<32> FLOWS = 65536; // slots for flows, by the CRC16 of the 5-tuple

// T_b: a port's state goes to ingress at most this often; tb=1ms. QALL,
// Section IV-E: the updating period trades freshness for overhead, T_b = 1 ms.
const time_us_t T_B = 1000;

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
    bit<32> len;  // of the queue, in packets
    bit<16> port; // the egress port
}

struct headers_t {
    report_t   report;
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct metadata_t {
    gid_t   gid;
    slot_t  n;     // paths in the group; 0: there is nothing to choose
    slot_t  slot;  // the path chosen
    bit<16> sport; // of TCP or UDP, else 0
    bit<16> dport;
    @field_list(FIELDS_AGAIN)
    bit<8>    again;  // why the packet comes round, 0 for one from a port
    bit<32>   flow;   // slot of the flow
    bool      known;  // the slot holds a path of the group
    slot_t    first;  // the path that ties are decided for
    port_t    port_0; // egress ports of the group's paths
    port_t    port_1;
    port_t    port_2;
    port_t    port_3;
    bit<32>   svc_0; // service times there, in us/65536: 65536*10^6/pps
    bit<32>   svc_1;
    bit<32>   svc_2;
    bit<32>   svc_3;
    time_us_t reported; // when the port was last reported
    @field_list(FIELDS_REPORT)
    bit<32> depth; // of the queue
    @field_list(FIELDS_REPORT)
    port_t  port;     // that it belongs to
    bit<48> RQD;      // what the flow's last packet still has to wait
    slot_t  last;     // path of the flow's last packet
    bit<32> last_len; // its queue now
    bit<48> last_QD;
    bit<56> least;    // load and rank of the path chosen so far
    bit<32> len;      // of its queue
    bit<48> QD;       // the packet's wait there
    bit<56> shortest; // of all paths
    slot_t  shortest_slot;
    bit<48> shortest_QD;
    bit<32> S;
}

// Registers.

register<time_us_t>(PORTS) qe_clone; // when the port was last reported
register<bit<32>>(PORTS) q_len;      // packets in the port's queue, as last reported
register<time_us_t>(FLOWS) fl_D;     // when the flow's last packet should leave
register<bit<16>>(FLOWS) fl_port;    // the path of the flow's last packet
register<bit<32>>(1) qd_S;           // longer queues are left for the shortest one; 0: never

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

    action set_candidates(port_t port_0, port_t port_1, port_t port_2, port_t port_3,
                          bit<32> svc_0, bit<32> svc_1, bit<32> svc_2, bit<32> svc_3) {
        meta.port_0 = port_0;
        meta.port_1 = port_1;
        meta.port_2 = port_2;
        meta.port_3 = port_3;
        meta.svc_0 = svc_0;
        meta.svc_1 = svc_1;
        meta.svc_2 = svc_2;
        meta.svc_3 = svc_3;
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

    // Eq. 2: what the flow's last packet still has to wait. Nothing is left of it
    // once it should be gone: the flow is as good as new then.
    action find_flow() {
        hash(meta.flow, HashAlgorithm.crc16, 32w0,
             {hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.sport, meta.dport}, FLOWS);
        bit<16> held;
        fl_port.read(held, meta.flow);
        meta.slot = held[7:0];
        meta.known = held[15:15] == 1 && held[7:0] < meta.n;
        time_us_t D;
        fl_D.read(D, meta.flow);
        meta.last = meta.slot;
        bit<48> RQD = D - std.ingress_global_timestamp;
        meta.RQD = meta.known && RQD[47:47] == 0 ? RQD : 0;
        qd_S.read(meta.S, 0);
    }

    // One more path: it qualifies if the packet would leave behind the flow's last
    // one (Section III-B), and is taken if its queue is the shortest of those.
    action look_at(in slot_t slot, in port_t port, in bit<32> svc) {
        bit<32> len;
        q_len.read(len, (bit<32>)port);
        // Eq. 1: QD = M*(l + 1)/C, M/C being the service time in us/65536.
        bit<48> QD = (bit<48>)((bit<64>)(len + 1) * (bit<64>)svc >> 16);
        bool qualifies = meta.RQD == 0 || QD > meta.RQD;
        bit<48> load = (bit<48>)len;
        slot_t rank = slot < meta.first ? slot + meta.n - meta.first : slot - meta.first;
        bit<56> key = slot < meta.n ? load ++ rank : 0xFFFFFFFFFFFFFF;
        meta.last_QD = slot == meta.last ? QD : meta.last_QD;
        meta.last_len = slot == meta.last ? len : meta.last_len;
        bool shorter = key < meta.shortest;
        meta.shortest_slot = shorter ? slot : meta.shortest_slot;
        meta.shortest_QD = shorter ? QD : meta.shortest_QD;
        meta.shortest = shorter ? key : meta.shortest;
        bool taken = qualifies && key < meta.least;
        meta.slot = taken ? slot : meta.slot;
        meta.QD = taken ? QD : meta.QD;
        meta.len = taken ? len : meta.len;
        meta.least = taken ? key : meta.least;
    }

    action expect_departure() {
        fl_D.write(meta.flow, std.ingress_global_timestamp + meta.QD);
        fl_port.write(meta.flow, 8w0x80 ++ meta.slot);
    }

    apply {
        if (hdr.report.isValid()) {
            q_len.write((bit<32>)hdr.report.port, hdr.report.len);
            drop();
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && std.checksum_error == 0) {
            ipv4_route.apply();
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            if (meta.n != 0) {
                candidates.apply();
                find_flow();
                random(meta.first, 8w0, meta.n - 1);
                meta.least = 0xFFFFFFFFFFFFFF;
                meta.shortest = 0xFFFFFFFFFFFFFF;
                look_at(0, meta.port_0, meta.svc_0);
                look_at(1, meta.port_1, meta.svc_1);
                look_at(2, meta.port_2, meta.svc_2);
                look_at(3, meta.port_3, meta.svc_3);
                if (meta.least == 0xFFFFFFFFFFFFFF) {
                    // No queue is long enough: stay in the one of the last packet.
                    meta.slot = meta.last;
                    meta.QD = meta.last_QD;
                    meta.len = meta.last_len;
                }
                if (meta.S != 0 && meta.len > meta.S) {
                    // Rerouting of large flows (Section III-C), S by Eq. 14.
                    meta.slot = meta.shortest_slot;
                    meta.QD = meta.shortest_QD;
                }
                expect_departure();
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
        hdr.report.len = meta.depth;
        hdr.report.port = (bit<16>)meta.port;
        hdr.ethernet.setInvalid();

        hdr.ipv4.setInvalid();
        meta.again = AGAIN_REPORT;

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

    apply {
        if (std.instance_type == EGRESS_CLONE) {
            make_report();
        } else {
            meta.depth = (bit<32>)std.deq_qdepth;
            meta.port = std.egress_port;
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
        pkt.emit(hdr.ipv4);
    }
}

V1Switch(LbParser(), LbVerify(), LbIngress(), LbEgress(), LbUpdate(), LbDeparser()) main;
