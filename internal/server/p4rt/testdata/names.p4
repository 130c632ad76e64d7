// Types that the controller sees as strings.
#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("example.com/port", string)
@p4runtime_translation_mappings({ { "cpu", 255 }, { "uplink", 4 } })
type bit<9> port_t;

@p4runtime_translation("example.com/vrf", string)
type bit<2> vrf_t;

@controller_header("packet_in")
header packet_in_t {
    port_t ingress_port;
    bit<7> pad;
}

@controller_header("packet_out")
header packet_out_t {
    port_t egress_port;
    bit<7> pad;
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   ethernet;
}

struct metadata_t {
    vrf_t  vrf;
    port_t port;
}

struct seen_t {
    port_t  port;
    bit<48> src;
}

parser NamesParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        transition select(std.ingress_port) {
            255: from_cpu;
            default: ethernet;
        }
    }
    state from_cpu {
        pkt.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        pkt.extract(hdr.ethernet);
        meta.port = (port_t)std.ingress_port;
        transition accept;
    }
}

control NamesIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<port_t>(4) last;

    action set_vrf(vrf_t vrf) {
        meta.vrf = vrf;
        digest<seen_t>(1, {meta.port, hdr.ethernet.src});
    }
    action forward(port_t port) {
        std.egress_spec = (bit<9>)port;
    }

    table vrfs {
        key = { meta.port: exact; }
        actions = { set_vrf; }
        default_action = set_vrf((vrf_t)2w0);
    }
    table routes {
        key = { meta.vrf: exact; meta.port: optional; }
        actions = { forward; }
    }

    apply {
        if (hdr.packet_out.isValid()) {
            std.egress_spec = (bit<9>)hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            last.write(0, meta.port);
            vrfs.apply();
            routes.apply();
        }
    }
}

control NamesEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (std.egress_port == 255) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = (port_t)std.ingress_port;
        }
    }
}

control NamesVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control NamesUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control NamesDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.packet_in);
        pkt.emit(hdr.ethernet);
    }
}

V1Switch(NamesParser(), NamesVerify(), NamesIngress(), NamesEgress(), NamesUpdate(), NamesDeparser()) main;
