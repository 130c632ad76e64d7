// twochoice, the program of leaves: a flow takes the less used of two uplinks.
//
// Two hashes select two uplinks. The flow takes the one over which this leaf has
// recently sent fewer bytes, and keeps it until the flow pauses. This is the
// "power of two choices", as in DRILL, but the load is the leaf's own count of
// bytes: it reads no queues and needs no messages from other switches.
#include <core.p4>
#include <v1model.p4>

struct local {
    bit<48> pause;  // in us; a longer pause ends a burst. The controller sets it
    bit<32> first;  // number of the destination's first uplink
    bit<32> many;   // number of the destination's uplinks
    bit<32> uplink; // the chosen uplink
}

#include "common.p4"

control balance(inout packet k, inout local l, inout standard_metadata_t s) {
    // For each flow, its uplink and the time of its last packet.
    register<bit<32>>(8192) chosen;
    register<bit<48>>(8192) last;

    // For each uplink, the bytes sent and the time at which they were last halved.
    // Halving them periodically makes old traffic count less.
    register<bit<32>>(256) sent;
    register<bit<48>>(256) halved;

    action drop() {
        mark_to_drop(s);
    }

    action deliver(bit<9> port, bit<48> mac) {
        s.egress_spec = port;
        k.e.to = mac;
    }

    action spread(bit<32> first, bit<32> many) {
        l.first = first;
        l.many = many;
    }

    table destination {
        key = { k.i.to: lpm; }
        actions = { deliver; spread; drop; }
        default_action = drop();
        size = 1024;
    }

    table uplink {
        key = { l.uplink: exact; }
        actions = { deliver; drop; }
        default_action = drop();
        size = 256;
    }

    action set_pause(bit<48> pause) {
        l.pause = pause;
    }

    table tuning {
        actions = { set_pause; }
        default_action = set_pause(500);
    }

    action load_of(in bit<32> u, out bit<32> load) {
        bit<48> then;
        sent.read(load, u);
        halved.read(then, u);
        if (s.ingress_global_timestamp - then > 4096) {
            load = 0;
        } else if (s.ingress_global_timestamp - then > 1024) {
            load = load >> 1;
        }
    }

    apply {
        if (!k.i.isValid() || k.i.hops < 2) {
            drop();
            exit;
        }
        k.i.hops = k.i.hops - 1;
        tuning.apply();
        if (destination.apply().hit && l.many > 0) {
            bit<32> flow;
            bit<48> before;
            bit<32> a;
            bit<32> b;
            bit<32> on_a;
            bit<32> on_b;
            bit<48> then;
            hash(flow, HashAlgorithm.crc32, 32w0,
                 { k.i.from, k.i.to, k.i.protocol, k.p.from, k.p.to }, 32w8192);
            last.read(before, flow);
            last.write(flow, s.ingress_global_timestamp);
            if (s.ingress_global_timestamp - before > l.pause) {
                hash(a, HashAlgorithm.crc16, l.first,
                     { k.i.from, k.i.to, k.i.protocol, k.p.from, k.p.to }, l.many);
                hash(b, HashAlgorithm.crc32, l.first,
                     { k.p.to, k.p.from, k.i.protocol, k.i.to, k.i.from, s.ingress_global_timestamp }, l.many);
                load_of(a, on_a);
                load_of(b, on_b);
                l.uplink = on_b < on_a ? b : a;
                chosen.write(flow, l.uplink);
            } else {
                chosen.read(l.uplink, flow);
            }
            load_of(l.uplink, on_a);
            halved.read(then, l.uplink);
            if (s.ingress_global_timestamp - then > 1024) {
                halved.write(l.uplink, s.ingress_global_timestamp);
            }
            sent.write(l.uplink, on_a + (bit<32>)k.i.length);
            uplink.apply();
        }
    }
}

control address(inout packet k, inout local l, inout standard_metadata_t s) {
    action own(bit<48> mac) {
        k.e.from = mac;
    }

    table sender {
        key = { s.egress_port: exact; }
        actions = { own; NoAction; }
        default_action = NoAction();
        size = 512;
    }

    apply {
        sender.apply();
    }
}

V1Switch(read(), trust(), balance(), address(), sum(), write()) main;
