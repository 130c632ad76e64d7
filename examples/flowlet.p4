// Flowlet switching over equal-cost next hops.
//
// A flow is the 5-tuple. A pause longer than the flowlet timeout ends a
// flowlet. The next packets may then take another path, because they cannot
// overtake the earlier ones. Two registers store, for each slot of flows, the
// time of the last packet and the number of the current flowlet. The number is
// part of the hash that selects the next hop. All packets of a flowlet therefore
// take the same next hop, and the next flowlet may take another.
//
// Sections: constants, headers, parser, checksums, ingress, egress, deparser.
#include <core.p4>
#include <v1model.p4>

// -D FLOWLET_TIMEOUT_US=500 suits a data centre; the default suits a software
// switch under a load of some thousand packets per second.
#ifndef FLOWLET_TIMEOUT_US
#define FLOWLET_TIMEOUT_US 200000
#endif

#ifndef FLOW_SLOTS
#define FLOW_SLOTS 8192
#endif

// Packets that pass a queue longer than this number of packets are marked.
#ifndef ECN_THRESHOLD
#define ECN_THRESHOLD 20
#endif

const bit<16> TYPE_IPV4 = 0x0800;
const bit<16> TYPE_VLAN = 0x8100;
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;
const bit<2> ECN_CE = 3;

typedef bit<48> mac_t;
typedef bit<32> ipv4_addr_t;
typedef bit<9> port_t;
typedef bit<48> time_us_t;
typedef bit<32> slot_t;
typedef bit<16> flowlet_t;
typedef bit<14> group_t;
typedef bit<16> hop_t;

// Headers.

header ethernet_t {
    mac_t   dst;
    mac_t   src;
    bit<16> type;
}

header vlan_t {
    bit<3>  pcp;
    bit<1>  dei;
    bit<12> vid;
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

header tcp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> seq;
    bit<32> ack;
    bit<4>  data_offset;
    bit<4>  reserved;
    bit<8>  flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> len;
    bit<16> checksum;
}

struct headers_t {
    ethernet_t ethernet;
    vlan_t     vlan;
    ipv4_t     ipv4;
    tcp_t      tcp;
    udp_t      udp;
}

struct metadata_t {
    bit<16>   src_port; // of TCP or UDP, else 0
    bit<16>   dst_port;
    slot_t    slot;
    flowlet_t flowlet;
    group_t   group;
    hop_t     member; // index within the group
    hop_t     hop;
}

// Parser.

parser FlowletParser(packet_in pkt,
                     out headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_VLAN: vlan;
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state vlan {
        pkt.extract(hdr.vlan);
        transition select(hdr.vlan.type) {
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }

    // Only first fragments without options have the ports at this offset.
    state ipv4 {
        pkt.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (5, 0, PROTOCOL_TCP): tcp;
            (5, 0, PROTOCOL_UDP): udp;
            default: accept;
        }
    }

    state tcp {
        pkt.extract(hdr.tcp);
        meta.src_port = hdr.tcp.src_port;
        meta.dst_port = hdr.tcp.dst_port;
        transition accept;
    }

    state udp {
        pkt.extract(hdr.udp);
        meta.src_port = hdr.udp.src_port;
        meta.dst_port = hdr.udp.dst_port;
        transition accept;
    }
}

// Checksums.

control FlowletVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
                        {
                            hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,
                            hdr.ipv4.total_len, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.frag_offset,
                            hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst
                        },
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control FlowletUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
                        {
                            hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,
                            hdr.ipv4.total_len, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.frag_offset,
                            hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst
                        },
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

// Ingress: route, find the flowlet, choose among the group's members.

control FlowletIngress(inout headers_t hdr,
                       inout metadata_t meta,
                       inout standard_metadata_t std) {
    register<time_us_t>(FLOW_SLOTS) last_seen;
    register<flowlet_t>(FLOW_SLOTS) flowlets;
    direct_counter(CounterType.packets_and_bytes) routed;

    action drop() {
        mark_to_drop(std);
    }

    action to_hop(hop_t hop) {
        routed.count();
        meta.hop = hop;
    }

    action to_group(group_t group) {
        routed.count();
        meta.group = group;
    }

    action no_route() {
        routed.count();
        drop();
    }

    table routes {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            to_hop;
            to_group;
            no_route;
        }
        default_action = no_route();
        counters = routed;
        size = 4096;
    }

    // Finds the slot of the flow, and whether the flow has paused. A slot that was
    // never used stays at flowlet 0, because it has no packets to overtake.
    action find_flowlet() {
        hash(meta.slot, HashAlgorithm.crc32, 32w0,
             {
                 hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.src_port, meta.dst_port
             },
             (bit<32>)FLOW_SLOTS);
        time_us_t before;
        last_seen.read(before, meta.slot);
        last_seen.write(meta.slot, std.ingress_global_timestamp);
        flowlets.read(meta.flowlet, meta.slot);
        if (before != 0 && std.ingress_global_timestamp - before > FLOWLET_TIMEOUT_US) {
            meta.flowlet = meta.flowlet + 1;
            flowlets.write(meta.slot, meta.flowlet);
        }
    }

    action choose(hop_t members) {
        hash(meta.member, HashAlgorithm.crc32, 16w0,
             {
                 hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.src_port, meta.dst_port,
                 meta.flowlet
             },
             members);
    }

    table groups {
        key = {
            meta.group: exact;
        }
        actions = {
            choose;
            drop;
        }
        default_action = drop();
        size = 256;
    }

    action set_hop(hop_t hop) {
        meta.hop = hop;
    }

    table members {
        key = {
            meta.group: exact;
            meta.member: exact;
        }
        actions = {
            set_hop;
            drop;
        }
        default_action = drop();
        size = 4096;
    }

    action forward(mac_t dst, port_t port) {
        hdr.ethernet.dst = dst;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        std.egress_spec = port;
    }

    table hops {
        key = {
            meta.hop: exact;
        }
        actions = {
            forward;
            drop;
        }
        default_action = drop();
        size = 1024;
    }

    apply {
        if (!hdr.ipv4.isValid() || hdr.ipv4.ttl <= 1 || std.checksum_error == 1) {
            drop();
            return;
        }
        switch (routes.apply().action_run) {
            to_hop: {
                hops.apply();
            }
            to_group: {
                find_flowlet();
                if (groups.apply().hit) {
                    members.apply();
                    hops.apply();
                }
            }
        }
    }
}

// Egress: the port's own address, its counter, and congestion marks.

control FlowletEgress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t std) {
    counter(512, CounterType.packets_and_bytes) sent;

    action set_source(mac_t src) {
        hdr.ethernet.src = src;
    }

    table ports {
        key = {
            std.egress_port: exact;
        }
        actions = {
            set_source;
            NoAction;
        }
        default_action = NoAction();
        size = 512;
    }

    apply {
        ports.apply();
        sent.count((bit<32>)std.egress_port);
        // With ECN 0 the sender does not support marks.
        if (hdr.ipv4.ecn != 0 && std.enq_qdepth > ECN_THRESHOLD) {
            hdr.ipv4.ecn = ECN_CE;
        }
    }
}

// Deparser.

control FlowletDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.ethernet);
        pkt.emit(hdr.vlan);
        pkt.emit(hdr.ipv4);
        pkt.emit(hdr.tcp);
        pkt.emit(hdr.udp);
    }
}

V1Switch(FlowletParser(),
         FlowletVerify(),
         FlowletIngress(),
         FlowletEgress(),
         FlowletUpdate(),
         FlowletDeparser()) main;
