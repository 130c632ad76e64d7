// DiffFlow: short flows stay on one path, long ones are spread packet by packet.
//
// After Carpio, Engelmann and Jukan, DiffFlow: Differentiating Short and Long
// Flows for Load Balancing in Data Center Networks, GLOBECOM 2016. A flow is long
// when it has sent LONG_FLOW bytes. As in the paper, the switch of the sending
// host detects this. Most flows are short and are not reordered. The few long
// flows carry most of the bytes, and spreading their packets loads all paths
// equally.
#include <core.p4>
#include <v1model.p4>

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8>  PROTO_TCP      = 6;
const bit<8>  PROTO_UDP      = 17;

// Slots of the flow table. Flows in the same slot are counted together, so a flow
// may be taken for long too early. Its packets may then be reordered.
#define FLOW_SLOTS 16384
#define LONG_FLOW  100000

// After a pause of this length, in us, the count of a flow starts again at 0.
#define FORGET_AFTER 200000

header Ethernet_h {
    bit<48> dstAddr;
    bit<48> srcAddr;
    bit<16> etherType;
}

header IPv4_h {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> totalLen;
    bit<16> identification;
    bit<3>  flags;
    bit<13> fragOffset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> hdrChecksum;
    bit<32> srcAddr;
    bit<32> dstAddr;
}

// The first four bytes of TCP and of UDP.
header L4Ports_h {
    bit<16> src;
    bit<16> dst;
}

struct Headers {
    Ethernet_h eth;
    IPv4_h     ip;
    L4Ports_h  l4;
}

struct Meta {
    bit<16> pathSet;   // number of the set of paths; 0: the route has one path
    bit<16> pathCount;
    bit<16> path;      // the chosen path
    bit<32> flow;      // slot in the flow table
}

parser Parse(packet_in pkt, out Headers h, inout Meta m, inout standard_metadata_t std) {
    state start {
        pkt.extract(h.eth);
        transition select(h.eth.etherType) {
            ETHERTYPE_IPV4: ip;
            default: accept;
        }
    }
    state ip {
        pkt.extract(h.ip);
        transition select(h.ip.ihl, h.ip.fragOffset, h.ip.protocol) {
            (5, 0, PROTO_TCP): l4;
            (5, 0, PROTO_UDP): l4;
            default: accept;
        }
    }
    state l4 {
        pkt.extract(h.l4);
        transition accept;
    }
}

control Verify(inout Headers h, inout Meta m) {
    apply {
        verify_checksum(h.ip.isValid() && h.ip.ihl == 5, {
            h.ip.version, h.ip.ihl, h.ip.tos, h.ip.totalLen, h.ip.identification,
            h.ip.flags, h.ip.fragOffset, h.ip.ttl, h.ip.protocol, h.ip.srcAddr, h.ip.dstAddr
        }, h.ip.hdrChecksum, HashAlgorithm.csum16);
    }
}

control Route(inout Headers h, inout Meta m, inout standard_metadata_t std) {
    register<bit<32>>(FLOW_SLOTS) flowBytes; // bytes sent since the flow began
    register<bit<48>>(FLOW_SLOTS) flowSeen;  // time of its last packet, us

    action discard() {
        mark_to_drop(std);
    }

    action toNeighbor(bit<9> outPort, bit<48> neighborMac, bit<48> myMac) {
        std.egress_spec = outPort;
        h.eth.dstAddr = neighborMac;
        h.eth.srcAddr = myMac;
        h.ip.ttl = h.ip.ttl - 1;
    }

    action toPathSet(bit<16> pathSet, bit<16> pathCount) {
        m.pathSet = pathSet;
        m.pathCount = pathCount;
    }

    table Destinations {
        key = { h.ip.dstAddr: lpm; }
        actions = { toNeighbor; toPathSet; discard; }
        default_action = discard();
        size = 2048;
    }

    table Paths {
        key = {
            m.pathSet: exact;
            m.path: exact;
        }
        actions = { toNeighbor; discard; }
        default_action = discard();
        size = 2048;
    }

    apply {
        if (!h.ip.isValid() || h.ip.ttl <= 1 || std.checksum_error == 1) {
            discard();
            exit;
        }
        Destinations.apply();
        if (m.pathSet != 0) {
            bit<32> sent;
            bit<48> seen;
            hash(m.flow, HashAlgorithm.crc32, 32w0,
                 { h.ip.srcAddr, h.ip.dstAddr, h.ip.protocol, h.l4.src, h.l4.dst }, (bit<32>)FLOW_SLOTS);
            @atomic {
                flowBytes.read(sent, m.flow);
                flowSeen.read(seen, m.flow);
                if (std.ingress_global_timestamp - seen > FORGET_AFTER) {
                    sent = 0;
                }
                sent = sent |+| (bit<32>)h.ip.totalLen;
                flowBytes.write(m.flow, sent);
                flowSeen.write(m.flow, std.ingress_global_timestamp);
            }
            if (sent > LONG_FLOW) {
                random(m.path, 0, m.pathCount - 1);
            } else {
                hash(m.path, HashAlgorithm.crc16, 16w0,
                     { h.ip.srcAddr, h.ip.dstAddr, h.ip.protocol, h.l4.src, h.l4.dst }, m.pathCount);
            }
            Paths.apply();
        }
    }
}

control Nothing(inout Headers h, inout Meta m, inout standard_metadata_t std) {
    apply {}
}

control Update(inout Headers h, inout Meta m) {
    apply {
        update_checksum(h.ip.isValid() && h.ip.ihl == 5, {
            h.ip.version, h.ip.ihl, h.ip.tos, h.ip.totalLen, h.ip.identification,
            h.ip.flags, h.ip.fragOffset, h.ip.ttl, h.ip.protocol, h.ip.srcAddr, h.ip.dstAddr
        }, h.ip.hdrChecksum, HashAlgorithm.csum16);
    }
}

control Deparse(packet_out pkt, in Headers h) {
    apply {
        pkt.emit(h);
    }
}

V1Switch(Parse(), Verify(), Route(), Nothing(), Update(), Deparse()) main;
