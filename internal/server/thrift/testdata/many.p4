// More tables than fit into the first two sizes of simple_switch's map of tables.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct metadata {}

struct headers {
    ethernet_t ethernet;
}

parser ManyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control ManyVerify(inout headers hdr, inout metadata meta) {
    apply {}
}

control ManyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    action to(bit<9> port) {
        standard.egress_spec = port;
    }
    table acl {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table arp {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table bridge {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table cache {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table counters {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table dmac {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table drops {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table egress_acl {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table fib {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table filter {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table flows {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table hosts {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table ingress_acl {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table ipv4 {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table ipv6 {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table lag {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table learn {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table lpm {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table mac {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table mirror {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table mtu {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table nat {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table nexthop {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table peers {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table policer {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table pools {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table ports {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table probes {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table queues {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table routes {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table rewrite {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }
    table smac {
        key = { hdr.ethernet.type: exact; }
        actions = { to; NoAction; }
        size = 2;
    }

    apply {
        acl.apply();
        arp.apply();
        bridge.apply();
        cache.apply();
        counters.apply();
        dmac.apply();
        drops.apply();
        egress_acl.apply();
        fib.apply();
        filter.apply();
        flows.apply();
        hosts.apply();
        ingress_acl.apply();
        ipv4.apply();
        ipv6.apply();
        lag.apply();
        learn.apply();
        lpm.apply();
        mac.apply();
        mirror.apply();
        mtu.apply();
        nat.apply();
        nexthop.apply();
        peers.apply();
        policer.apply();
        pools.apply();
        ports.apply();
        probes.apply();
        queues.apply();
        routes.apply();
        rewrite.apply();
        smac.apply();
    }
}

control ManyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    apply {}
}

control ManyCompute(inout headers hdr, inout metadata meta) {
    apply {}
}

control ManyDeparser(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(ManyParser(), ManyVerify(), ManyIngress(), ManyEgress(), ManyCompute(), ManyDeparser()) main;
