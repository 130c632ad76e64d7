// A program with each kind of match key and each kind of state that belongs to entries.
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

struct ports_t {
    bit<8> class;
    bit<9> rank;
}

struct metadata {
    ports_t ports;
    bit<9> rank;
}

struct pair {
    bit<16> first;
    bit<16> second;
}

parser InPrs(packet_in pkt, out headers hdr, out metadata md, out ingress_intrinsic_metadata_t ig) {
    state start {
        pkt.extract(ig);
        md.ports = port_metadata_unpack<ports_t>(pkt);
        md.rank = md.ports.rank;
        pkt.extract(hdr.ethernet);
        transition accept;
    }
}

control In(inout headers hdr, inout metadata md, in ingress_intrinsic_metadata_t ig,
        in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
        inout ingress_intrinsic_metadata_for_tm_t tm) {
    action send(bit<9> port) {
        tm.ucast_egress_port = port;
    }
    table routes {
        key = { hdr.ethernet.dst: lpm; }
        actions = { send; }
        size = 64;
    }
    table rules {
        key = {
            hdr.ethernet.src: ternary;
            hdr.ethernet.kind: range;
            md.rank: exact;
        }
        actions = { send; }
        size = 64;
    }

    DirectMeter(MeterType_t.BYTES) speed;
    action colour(bit<9> port) {
        hdr.ethernet.src[7:0] = speed.execute();
        tm.ucast_egress_port = port;
    }
    table metered {
        key = { hdr.ethernet.dst: exact; }
        actions = { colour; }
        meters = speed;
        size = 64;
    }

    DirectRegister<pair>({ 7, 9 }) cells;
    DirectRegisterAction<pair, bit<16>>(cells) count = {
        void apply(inout pair value, out bit<16> result) {
            value.first = value.first + 1;
            result = value.first;
        }
    };
    action tally(bit<9> port) {
        hdr.ethernet.src[15:0] = count.execute();
        tm.ucast_egress_port = port;
    }
    table counted {
        key = { hdr.ethernet.dst: exact; }
        actions = { tally; }
        registers = cells;
        size = 64;
    }

    DirectLpf<bit<32>>() mean;
    action smooth(bit<9> port) {
        hdr.ethernet.src[31:0] = mean.execute(hdr.ethernet.dst[31:0]);
        tm.ucast_egress_port = port;
    }
    table smoothed {
        key = { hdr.ethernet.src: exact; }
        actions = { smooth; }
        filters = mean;
        size = 64;
    }

    DirectWred<bit<32>>(8w1, 8w0) early;
    action detect(bit<9> port) {
        hdr.ethernet.src[7:0] = early.execute(hdr.ethernet.dst[31:0]);
        tm.ucast_egress_port = port;
    }
    table detected {
        key = { hdr.ethernet.src: exact; }
        actions = { detect; }
        filters = early;
        size = 64;
    }

    action copy(bit<16> group, bit<16> xid, bit<9> prune, bit<16> rid, bit<13> hash) {
        tm.mcast_grp_a = group;
        tm.level1_exclusion_id = xid;
        tm.level2_exclusion_id = prune;
        tm.rid = rid;
        tm.level1_mcast_hash = hash;
        tm.level2_mcast_hash = hash;
    }
    table copied {
        key = { hdr.ethernet.dst: exact; }
        actions = { copy; }
        size = 64;
    }

    Counter<bit<32>, bit<8>>(16, CounterType_t.PACKETS_AND_BYTES) volumes;
    RegisterParam<bit<16>>(100) step;
    Register<bit<16>, bit<1>>(1) total;
    RegisterAction<bit<16>, bit<1>, bit<16>>(total) grow = {
        void apply(inout bit<16> value, out bit<16> result) {
            value = value + step.read();
            result = value;
        }
    };

    action only_hit() {
        tm.ucast_egress_port = 2;
    }
    action only_miss() {
        tm.ucast_egress_port = 130;
    }
    table scoped {
        key = { hdr.ethernet.dst: exact; }
        actions = { @tableonly only_hit; @defaultonly only_miss; }
        default_action = only_miss();
        size = 64;
    }

    DirectCounter<bit<32>>(CounterType_t.PACKETS) number;
    action numbered(bit<9> port) {
        number.count();
        tm.ucast_egress_port = port;
    }
    table by_number {
        key = { hdr.ethernet.dst: exact; }
        actions = { numbered; }
        counters = number;
        size = 64;
    }

    DirectCounter<bit<32>>(CounterType_t.BYTES) volume;
    action measured(bit<9> port) {
        volume.count();
        tm.ucast_egress_port = port;
    }
    table by_volume {
        key = { hdr.ethernet.dst: exact; }
        actions = { measured; }
        counters = volume;
        size = 64;
    }

    CRCPolynomial<bit<16>>(0xa097, true, false, false, 0x1234, 0xff00) reversed;
    Hash<bit<16>>(HashAlgorithm_t.CUSTOM, reversed) own;

    apply {
        volumes.count(hdr.ethernet.kind[7:0]);
        if (hdr.ethernet.kind == 7) {
            copied.apply();
        } else {
            tm.ucast_egress_port = 1;
        }
        if (hdr.ethernet.kind == 1) {
            routes.apply();
        } else if (hdr.ethernet.kind == 2) {
            metered.apply();
        } else if (hdr.ethernet.kind == 3) {
            counted.apply();
        } else if (hdr.ethernet.kind == 4) {
            smoothed.apply();
        } else if (hdr.ethernet.kind == 5) {
            detected.apply();
        } else if (hdr.ethernet.kind == 6) {
            hdr.ethernet.src[7:0] = md.ports.class;
            hdr.ethernet.src[24:16] = md.ports.rank;
        } else if (hdr.ethernet.kind == 8) {
            hdr.ethernet.src[15:0] = grow.execute(0);
        } else if (hdr.ethernet.kind == 9 && hdr.ethernet.dst != 0) {
            hdr.ethernet.src[15:0] = own.get({ hdr.ethernet.dst });
        } else if (hdr.ethernet.kind == 10) {
            scoped.apply();
        } else if (hdr.ethernet.kind == 11) {
            by_number.apply();
        } else if (hdr.ethernet.kind == 12) {
            by_volume.apply();
        } else if (hdr.ethernet.kind != 7) {
            rules.apply();
        }
    }
}

control InDep(packet_out pkt, inout headers hdr, in metadata md, in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    apply {
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
