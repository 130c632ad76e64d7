// Entries that are there from the beginning, and direct resources that some
// actions do not execute.
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> a;
    bit<8> b;
}

struct headers_t {
    h_t h;
}

struct metadata_t {
    bit<32> color;
}

parser PresetParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.h);
        transition accept;
    }
}

control PresetIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets) hits;
    direct_meter<bit<32>>(MeterType.packets) rate;

    action to(bit<9> port) {
        std.egress_spec = port;
    }
    action counted(bit<9> port) {
        std.egress_spec = port;
        hits.count();
        rate.read(meta.color);
    }
    table preset {
        key = { hdr.h.a: ternary; }
        actions = { to; NoAction; }
        default_action = NoAction();
        entries = {
            const 0x10 &&& 0xf0: to(1);
            0x20 &&& 0xf0: to(2);
            _: to(3);
        }
        size = 8;
    }
    table resources {
        key = { hdr.h.b: exact; }
        actions = { to; counted; NoAction; }
        default_action = NoAction();
        counters = hits;
        meters = rate;
        entries = { 1: counted(1); 2: to(2); }
    }
    apply {
        preset.apply();
        resources.apply();
    }
}

control PresetEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control PresetChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control PresetDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.h);
    }
}

V1Switch(PresetParser(), PresetChecksum(), PresetIngress(), PresetEgress(), PresetChecksum(), PresetDeparser()) main;
