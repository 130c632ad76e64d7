// The headers, parser and checksum of both programs.

header ethernet {
    bit<48> to;
    bit<48> from;
    bit<16> kind;
}

header ipv4 {
    bit<4>  version;
    bit<4>  words;
    bit<8>  service;
    bit<16> length;
    bit<16> id;
    bit<16> fragment;
    bit<8>  hops;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> from;
    bit<32> to;
}

header ports {
    bit<16> from;
    bit<16> to;
}

struct packet {
    ethernet e;
    ipv4     i;
    ports    p;
}

parser read(packet_in in_, out packet k, inout local l, inout standard_metadata_t s) {
    state start {
        in_.extract(k.e);
        transition select(k.e.kind) {
            0x0800: read_ipv4;
            default: accept;
        }
    }
    state read_ipv4 {
        in_.extract(k.i);
        transition select(k.i.words, k.i.protocol) {
            (5, 6): read_ports;
            (5, 17): read_ports;
            default: accept;
        }
    }
    state read_ports {
        in_.extract(k.p);
        transition accept;
    }
}

control trust(inout packet k, inout local l) {
    apply {}
}

control sum(inout packet k, inout local l) {
    apply {
        update_checksum(k.i.isValid(), {
            k.i.version, k.i.words, k.i.service, k.i.length, k.i.id, k.i.fragment,
            k.i.hops, k.i.protocol, k.i.from, k.i.to
        }, k.i.checksum, HashAlgorithm.csum16);
    }
}

control write(packet_out out_, in packet k) {
    apply {
        out_.emit(k);
    }
}
