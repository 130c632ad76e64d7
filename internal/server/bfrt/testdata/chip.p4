// A program with one of each kind of table that BfRt knows.
#include <core.p4>
#include <tna.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> kind;
}

struct headers {
    ethernet_t ethernet;
}

struct metadata {
    bit<8> port_class;
    bit<48> src;
    bit<16> kind;
}

struct pair {
    bit<32> first;
    bit<32> second;
}

header port_metadata_h {
    bit<8> class;
    bit<56> rest;
}

struct learned {
    bit<48> src;
    bit<9> port;
}

parser InPrs(packet_in pkt, out headers hdr, out metadata md, out ingress_intrinsic_metadata_t ig) {
    value_set<bit<16>>(4) kinds;
    state start {
        pkt.extract(ig);
        pkt.advance(PORT_METADATA_SIZE);
        md.port_class = 0;
        md.src = 0;
        md.kind = 0;
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.kind) {
            kinds: special;
            default: accept;
        }
    }
    state special {
        md.port_class = 1;
        transition accept;
    }
}

control In(inout headers hdr, inout metadata md, in ingress_intrinsic_metadata_t ig,
        in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
        inout ingress_intrinsic_metadata_for_tm_t tm) {
    Register<pair, bit<16>>(64, { 7, 9 }) seen;
    RegisterAction<pair, bit<16>, bit<32>>(seen) see = {
        void apply(inout pair value) {
            value.first = value.first + 1;
        }
    };
    Register<pair, bit<16>>(65536) large;
    RegisterAction<pair, bit<16>, bit<32>>(large) grow = {
        void apply(inout pair value) {
            value.second = value.second + 1;
        }
    };
    DirectCounter<bit<32>>(CounterType_t.PACKETS_AND_BYTES) hits;
    Counter<bit<32>, bit<16>>(64, CounterType_t.PACKETS) sums;
    Meter<bit<16>>(64, MeterType_t.BYTES) rates;
    ActionProfile(64) members;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) spread;
    ActionSelector(members, spread, SelectorMode_t.FAIR, 8, 16) groups;

    action send(bit<9> port) {
        hits.count();
        tm.ucast_egress_port = port;
    }
    action copies(bit<16> group) {
        hits.count();
        tm.mcast_grp_a = group;
    }
    action drop() {
        hits.count();
        dprsr.drop_ctl = 1;
    }
    table dmac {
        key = { hdr.ethernet.dst: exact; }
        actions = { send; copies; drop; }
        const default_action = drop();
        counters = hits;
        size = 1024;
        idle_timeout = true;
    }
    action spread_to(bit<9> port) {
        tm.ucast_egress_port = port;
    }
    table choose {
        key = {
            hdr.ethernet.kind: exact;
            hdr.ethernet.src: selector;
        }
        actions = { spread_to; NoAction; }
        implementation = groups;
        size = 16;
    }
    action learn() {
        dprsr.digest_type = 1;
    }
    action known() {
    }
    table acl {
        key = { hdr.ethernet.src: ternary; md.port_class: exact; }
        actions = { learn; known; }
        default_action = known();
        size = 128;
    }
    action tally(bit<16> index) {
        sums.count(index);
        md.port_class = (bit<8>) rates.execute(index);
    }
    table tallies {
        key = { ig.ingress_port: exact; }
        actions = { tally; NoAction; }
        default_action = NoAction();
        size = 64;
    }
    Hash<bit<64>>(HashAlgorithm_t.CRC32) mixed;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) quick;
    Hash<bit<16>>(HashAlgorithm_t.IDENTITY) copied;
    action mix() {
        hdr.ethernet.dst[47:16] = mixed.get({ hdr.ethernet.src, 8w0xa5, hdr.ethernet.kind })[31:0];
        hdr.ethernet.dst[15:0] = quick.get({ md.src, md.kind });
        hdr.ethernet.kind = copied.get({ hdr.ethernet.kind });
    }
    table mixer {
        key = { hdr.ethernet.kind: exact; }
        actions = { mix; NoAction; }
        default_action = NoAction();
        size = 16;
    }
    apply {
        md.src = hdr.ethernet.src;
        md.kind = hdr.ethernet.kind;
        acl.apply();
        tallies.apply();
        see.execute((bit<16>) ig.ingress_port[5:0]);
        grow.execute(hdr.ethernet.kind);
        choose.apply();
        dmac.apply();
        mixer.apply();
    }
}

control InDep(packet_out pkt, inout headers hdr, in metadata md, in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    Digest<learned>() news;
    apply {
        if (dprsr.digest_type == 1) {
            news.pack({ hdr.ethernet.src, 9w5 });
        }
        pkt.emit(hdr);
    }
}

parser EgPrs(packet_in pkt, out headers hdr, out metadata md, out egress_intrinsic_metadata_t eg) {
    state start {
        pkt.extract(eg);
        transition accept;
    }
}

control Eg(inout headers hdr, inout metadata md, in egress_intrinsic_metadata_t eg,
        in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr,
        inout egress_intrinsic_metadata_for_output_port_t oport) {
    apply { }
}

control EgDep(packet_out pkt, inout headers hdr, in metadata md, in egress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { }
}

Pipeline(InPrs(), In(), InDep(), EgPrs(), Eg(), EgDep()) pipe;
Switch(pipe) main;
