// A program for Tofino with something of all that a controller reaches.
#include <core.p4>
#include <tna.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header note_t {
    bit<8> why;
}

struct headers_t {
    ethernet_t ethernet;
}

struct out_headers_t {
    note_t note;
    ethernet_t ethernet;
}

struct meta_t {
    bit<8> why;
    MirrorId_t session;
}

struct out_meta_t {
    bit<16> rate;
}

// What is known of a port.
struct seen_t {
    bit<32> packets;
    bit<32> last; // low half of the source's address
}

struct learnt_t {
    bit<48> src;
    PortId_t port;
}

parser InParser(packet_in pkt, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t ig) {
    state start {
        pkt.extract(ig);
        pkt.advance(PORT_METADATA_SIZE);
        pkt.extract(hdr.ethernet);
        transition accept;
    }
}

control In(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig,
    in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
    inout ingress_intrinsic_metadata_for_tm_t tm) {
    Register<seen_t, PortId_t>(512) seen;

    RegisterAction<seen_t, PortId_t, bit<32>>(seen) note = {
        void apply(inout seen_t held, out bit<32> last) {
            last = held.last;
            held.packets = held.packets + 1;
            held.last = hdr.ethernet.src[31:0];
        }
    };

    Hash<bit<16>>(HashAlgorithm_t.CRC16) spread;
    ActionProfile(16) ways;
    ActionSelector(ways, spread, SelectorMode_t.FAIR, 4, 2) way;

    action set_port(PortId_t port) {
        tm.ucast_egress_port = port;
    }

    action flood(MulticastGroupId_t group) {
        tm.mcast_grp_a = group;
    }

    action learn() {
        dprsr.digest_type = 1;
        dprsr.drop_ctl = 1;
    }

    action watch(PortId_t port, MirrorId_t session) {
        tm.ucast_egress_port = port;
        dprsr.mirror_type = 1;
        meta.session = session;
        meta.why = 7;
    }

    table dmac {
        key = {
            hdr.ethernet.dst: exact;
        }
        actions = {
            set_port;
            flood;
            learn;
            watch;
        }
        default_action = learn();
        size = 64;
    }

    table fan {
        key = {
            hdr.ethernet.type: exact;
            hdr.ethernet.src: selector;
        }
        actions = {
            set_port;
        }
        implementation = way;
        size = 16;
    }

    apply {
        note.execute(ig.ingress_port);
        if (hdr.ethernet.type == 0x1111) {
            fan.apply();
        } else {
            dmac.apply();
        }
    }
}

control InDeparser(packet_out pkt, inout headers_t hdr, in meta_t meta, in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    Mirror() mirror;
    Digest<learnt_t>() digest;

    apply {
        if (dprsr.digest_type == 1) {
            digest.pack({ hdr.ethernet.src, 5 });
        }
        if (dprsr.mirror_type == 1) {
            mirror.emit<note_t>(meta.session, { meta.why });
        }
        pkt.emit(hdr.ethernet);
    }
}

parser OutParser(packet_in pkt, out out_headers_t hdr, out out_meta_t meta, out egress_intrinsic_metadata_t eg) {
    state start {
        pkt.extract(eg);
        transition accept;
    }
}

control Out(inout out_headers_t hdr, inout out_meta_t meta, in egress_intrinsic_metadata_t eg,
    in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr,
    inout egress_intrinsic_metadata_for_output_port_t oport) {
    Lpf<bit<16>, PortId_t>(512) rate;

    apply {
        meta.rate = rate.execute(eg.pkt_length, eg.egress_port);
    }
}

control OutDeparser(packet_out pkt, inout out_headers_t hdr, in out_meta_t meta, in egress_intrinsic_metadata_for_deparser_t dprsr) {
    apply {
        pkt.emit(hdr);
    }
}

Pipeline(InParser(), In(), InDeparser(), OutParser(), Out(), OutDeparser()) pipe;

Switch(pipe) main;
