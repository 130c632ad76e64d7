// hermes: flows that move with caution.
//
// granularity  a flow keeps its path
// signal       path delays and marks that probes measure
// choice       by classes of paths; a flow moves for a notably better one only
//
// For groups of up to 4 paths, as leaf. After Zhang et al., Hermes, SIGCOMM
// 2017.
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

const port_t CPU_PORT = 255; // where the controller's own probes come in

const bit<16> TYPE_PATH_PROBE = 0x88B7;
const bit<8> PROBE_REPLY = 1; // flags of a probe
const bit<8> PROBE_CE = 2;    // it met a long queue

// 30% of 400Mbps for 2^10 us, in bytes.
const bit<32> RATE_LIMIT = 15360;

const bit<32> FLOWS = 65536; // slots for flows, by the CRC16 of the 5-tuple
const bit<32> PATHS = 16384; // paths: group * 16 + slot

// a longer queue than this marks probes; ecnk=20 packets. DCTCP: 65 packets at
// 10 Gb/s, 20 at 1 Gb/s.
const bit<32> ECN_K = 20;

// a flow that pauses for longer is new; timeout=10ms. Hermes, Algorithm 2: a
// timeout; 10 ms is TCP's least.
const time_us_t FLOW_TIMEOUT = 10000;

// T_ECN: the share of marks, in 255ths, that separates good from bad paths;
// tecn=40%. Hermes, Table 4: T_ECN = 40 %.
const bit<8> T_ECN = 102;

// T_RTT_low: a good path is faster; low=60us. Hermes, Table 4: 20 to 40 us
// above the base RTT, here 60 us.
const bit<32> T_RTT_LOW = 60;

// T_RTT_high: a congested path is slower; high=180us. Hermes, Table 4: 1.5
// hops of queueing above the base RTT, here 180 us.
const bit<32> T_RTT_HIGH = 180;

// Delta_RTT: a notably better path is so much faster; drtt=100us. Hermes,
// Table 4: one hop of queueing, here 100 us.
const bit<32> DELTA_RTT = 100;

// Delta_ECN: and has so many fewer marks, in 255ths; decn=5%. Hermes, Table 4:
// 3 to 10 %.
const bit<16> DELTA_ECN = 12;

// S: a flow moves if it has sent more; sent=600KiB. Hermes, Table 4: S = 600
// KB.
const bit<32> S_SENT = 614400;

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

// A probe goes along one path to a leaf and comes back.
header path_probe_t {
    bit<8>  src;   // leaf that it comes from, by the number of the groups that lead there
    bit<8>  dst;   // leaf that it goes to
    bit<8>  path;  // slot at the leaf that sent it first
    bit<8>  flags; // 1 reply, 2 met a long queue
    bit<48> tx_ts; // when that leaf sent it, us
}

struct headers_t {
    ethernet_t   ethernet;
    path_probe_t path_probe;
    ipv4_t       ipv4;
}

struct metadata_t {
    gid_t   gid;
    slot_t  n;     // paths in the group; 0: there is nothing to choose
    slot_t  slot;  // the path chosen
    bit<16> sport; // of TCP or UDP, else 0
    bit<16> dport;
    bit<32> flow;  // slot of the flow
    bool    known; // the slot holds a path of the group
    bool    fresh; // a path is to be chosen
    slot_t  first; // the path that ties are decided for
    bit<8>  here;  // the number of this leaf, for a probe that has arrived
    bit<32> sent;  // bytes of the flow
    bit<32> rate;  // bytes of it lately
    bit<32> rtt;   // of the flow's path
    bit<8>  ecn;
    bool    moving;    // the flow has a path already
    bool    congested; // that path is
    bit<48> least;     // class, rate and rank of the path chosen so far
}

// Registers.

register<time_us_t>(FLOWS) fl_ts;   // when the flow's last packet came
register<bit<32>>(PATHS) rtt;       // round-trip time of the path
register<time_us_t>(PATHS) rtt_ts;  // when it was measured
register<bit<8>>(PATHS) ecn;        // share of the path's probes that met a long queue
register<bit<16>>(FLOWS) fl_port;   // the flow's path
register<bit<32>>(FLOWS) fl_sent;   // bytes of the flow
register<bit<32>>(FLOWS) fl_rate;   // bytes of the flow lately, fading within 2^10 us
register<bit<32>>(PATHS) path_rate; // bytes sent along the path lately
register<time_us_t>(PATHS) path_ts; // when path_rate was last right

// Parser.

parser LbParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            TYPE_PATH_PROBE: path_probe;
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

    state path_probe {
        pkt.extract(hdr.path_probe);
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

    // The controller's probe starts along the path that it names.
    action start_probe() {
        hdr.path_probe.tx_ts = std.ingress_global_timestamp;
        meta.gid = (bit<16>)hdr.path_probe.dst;
        meta.slot = hdr.path_probe.path;
        meta.n = hdr.path_probe.path + 1;
    }

    action turn_probe() {
        hdr.path_probe.dst = hdr.path_probe.src;
        hdr.path_probe.src = meta.here;
        hdr.path_probe.flags = hdr.path_probe.flags | PROBE_REPLY;

        std.egress_spec = std.ingress_port;
    }

    // A probe that has come back knows about the path it was sent along.
    action learn_path() {
        bit<32> path = (bit<32>)hdr.path_probe.src << 4 | (bit<32>)hdr.path_probe.path;
        rtt.write(path, (bit<32>)(std.ingress_global_timestamp - hdr.path_probe.tx_ts));
        rtt_ts.write(path, std.ingress_global_timestamp);
        // The share of marked probes, averaged over some eight of them.
        bit<8> share;
        ecn.read(share, path);
        share = share - ((share + 7) >> 3);
        ecn.write(path, hdr.path_probe.flags & PROBE_CE != 0 ? share + 31 : share);
        drop();
    }

    action at_home(bit<8> id) {
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
        meta.fresh = !meta.known || elapsed > FLOW_TIMEOUT;
        bit<32> sent;
        bit<32> rate;
        fl_sent.read(sent, meta.flow);
        fl_rate.read(rate, meta.flow);
        meta.sent = meta.fresh ? std.packet_length : sent + std.packet_length;
        rate = elapsed >> 10 != 0 ? 0 : rate - (bit<32>)((bit<64>)rate * (bit<64>)elapsed >> 10);
        meta.rate = std.packet_length + rate;
        fl_sent.write(meta.flow, meta.sent);
        fl_rate.write(meta.flow, meta.rate);
    }

    action find_path() {
        bit<32> path = (bit<32>)meta.gid << 4 | (bit<32>)meta.slot;
        bit<32> rtt_p;
        bit<8> ecn_p;
        rtt.read(rtt_p, path);
        ecn.read(ecn_p, path);
        meta.rtt = rtt_p;
        meta.ecn = ecn_p;
        meta.congested = ecn_p > T_ECN && rtt_p > T_RTT_HIGH;
        meta.moving = true;
    }

    // One more path: a good one if there is any, else a grey one, of these the one
    // with the lowest sending rate (Hermes, Algorithm 2). A flow that has a path
    // moves for a notably better one only.
    action look_at(in slot_t slot) {
        bit<32> path = (bit<32>)meta.gid << 4 | (bit<32>)slot;
        bit<32> rtt_p;
        bit<8> ecn_p;
        rtt.read(rtt_p, path);
        ecn.read(ecn_p, path);
        bit<32> rate;
        time_us_t last;
        path_rate.read(rate, path);
        path_ts.read(last, path);
        time_us_t elapsed = std.ingress_global_timestamp - last;
        rate = elapsed >> 10 != 0 ? 0 : rate - (bit<32>)((bit<64>)rate * (bit<64>)elapsed >> 10);
        bool good = ecn_p < T_ECN && rtt_p < T_RTT_LOW;
        bool bad = ecn_p > T_ECN && rtt_p > T_RTT_HIGH;
        bool notably = meta.rtt > rtt_p + DELTA_RTT && (bit<16>)meta.ecn > (bit<16>)ecn_p + DELTA_ECN;
        bool open = slot < meta.n && !bad && (!meta.moving || notably);
        slot_t rank = slot < meta.first ? slot + meta.n - meta.first : slot - meta.first;
        bit<48> key = (good ? 8w0 : 8w1) ++ rate ++ rank;
        key = open ? key : 0xFFFFFFFFFFFF;
        meta.slot = key < meta.least ? slot : meta.slot;
        meta.least = key < meta.least ? key : meta.least;
    }

    action charge_path() {
        bit<32> path = (bit<32>)meta.gid << 4 | (bit<32>)meta.slot;
        bit<32> rate;
        time_us_t last;
        path_rate.read(rate, path);
        path_ts.read(last, path);
        time_us_t elapsed = std.ingress_global_timestamp - last;
        rate = elapsed >> 10 != 0 ? 0 : rate - (bit<32>)((bit<64>)rate * (bit<64>)elapsed >> 10);
        path_rate.write(path, std.packet_length + rate);
        path_ts.write(path, std.ingress_global_timestamp);
        fl_port.write(meta.flow, 8w0x80 ++ meta.slot);
    }

    apply {
        if (hdr.path_probe.isValid()) {
            if (std.ingress_port == CPU_PORT) {
                start_probe();
            } else {
                switch (leaf.apply().action_run) {
                    at_home: {
                        if (hdr.path_probe.flags & PROBE_REPLY == 0) {
                            turn_probe();
                        } else {
                            learn_path();
                        }
                    }
                }
            }
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && std.checksum_error == 0) {
            ipv4_route.apply();
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            if (meta.n != 0) {
                find_flow();
                if (!meta.fresh) {
                    find_path();
                }
                if (meta.fresh || meta.congested && meta.sent > S_SENT && meta.rate < RATE_LIMIT) {
                    random(meta.first, 8w0, meta.n - 1);
                    meta.least = 0xFFFFFFFFFFFF;
                    look_at(0);
                    look_at(1);
                    look_at(2);
                    look_at(3);
                    if (meta.fresh && meta.least == 0xFFFFFFFFFFFF) {
                        meta.slot = meta.first; // all are congested: any
                    }
                }
                charge_path();
            }
        } else {
            drop();
        }
        if (meta.n != 0) {
            member.apply();
        }
    }
}

// Egress.

control LbEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.path_probe.isValid() && (bit<32>)std.enq_qdepth > ECN_K) {
            hdr.path_probe.flags = hdr.path_probe.flags | PROBE_CE;
        }
    }
}

// Deparser.

control LbDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.ethernet);
        pkt.emit(hdr.path_probe);
        pkt.emit(hdr.ipv4);
    }
}

V1Switch(LbParser(), LbVerify(), LbIngress(), LbEgress(), LbUpdate(), LbDeparser()) main;
