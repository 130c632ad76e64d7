// An IPv4 router: longest-prefix match, next hops, TTL and header checksum.
// It drops packets that it cannot route, and counts them by reason.
#include <core.p4>
#include <v1model.p4>

const bit<16> TYPE_IPV4 = 0x0800;

enum bit<32> Drop {
    NOT_IPV4 = 0,
    BAD_HEADER = 1,
    TTL_EXPIRED = 2,
    NO_ROUTE = 3
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<6>  dscp;
    bit<2>  ecn;
    bit<16> total_len;
    bit<16> id;
    bit<3>  flags;
    bit<13> frag_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header ipv4_options_t {
    varbit<320> data;
}

struct headers_t {
    ethernet_t     ethernet;
    ipv4_t         ipv4;
    ipv4_options_t options;
}

struct metadata_t {
    bit<16> next_hop;
}

parser RouterParser(packet_in pkt,
                    out headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        pkt.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.ParserInvalidArgument);
        transition select(hdr.ipv4.ihl) {
            5: accept;
            default: options;
        }
    }

    // Options follow the fixed header; ihl counts words of 32 bits.
    state options {
        pkt.extract(hdr.options, ((bit<32>)hdr.ipv4.ihl - 5) * 32);
        transition accept;
    }
}

control RouterVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && !hdr.options.isValid(),
                        {
                            hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,
                            hdr.ipv4.total_len, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.frag_offset,
                            hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst
                        },
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
        verify_checksum(hdr.options.isValid(),
                        {
                            hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,
                            hdr.ipv4.total_len, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.frag_offset,
                            hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst,
                            hdr.options.data
                        },
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterIngress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t std) {
    counter(4, CounterType.packets) drops;
    direct_counter(CounterType.packets_and_bytes) routed;

    action drop(Drop reason) {
        drops.count((bit<32>)reason);
        mark_to_drop(std);
    }

    action no_route() {
        routed.count();
        drop(Drop.NO_ROUTE);
    }

    action via(bit<16> next_hop) {
        routed.count();
        meta.next_hop = next_hop;
    }

    table routes {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            via;
            no_route;
        }
        default_action = no_route();
        counters = routed;
        size = 4096;
    }

    action forward(bit<48> src, bit<48> dst, bit<9> port) {
        hdr.ethernet.src = src;
        hdr.ethernet.dst = dst;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        std.egress_spec = port;
    }

    action unresolved() {
        drop(Drop.NO_ROUTE);
    }

    table next_hops {
        key = {
            meta.next_hop: exact;
        }
        actions = {
            forward;
            unresolved;
        }
        default_action = unresolved();
        size = 256;
    }

    apply {
        if (!hdr.ipv4.isValid()) {
            drop(Drop.NOT_IPV4);
        } else if (std.parser_error != error.NoError || std.checksum_error == 1) {
            drop(Drop.BAD_HEADER);
        } else if (hdr.ipv4.ttl <= 1) {
            drop(Drop.TTL_EXPIRED);
        } else {
            switch (routes.apply().action_run) {
                via: {
                    next_hops.apply();
                }
            }
        }
    }
}

control RouterEgress(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t std) {
    apply {}
}

control RouterUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && !hdr.options.isValid(),
                        {
                            hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,
                            hdr.ipv4.total_len, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.frag_offset,
                            hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst
                        },
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum(hdr.options.isValid(),
                        {
                            hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,
                            hdr.ipv4.total_len, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.frag_offset,
                            hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst,
                            hdr.options.data
                        },
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.ethernet);
        pkt.emit(hdr.ipv4);
        pkt.emit(hdr.options);
    }
}

V1Switch(RouterParser(),
         RouterVerify(),
         RouterIngress(),
         RouterEgress(),
         RouterUpdate(),
         RouterDeparser()) main;
