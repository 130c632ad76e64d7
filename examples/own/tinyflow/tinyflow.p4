/* tinyflow.p4 - TinyFlow on Tofino.
 *
 * Xu and Li, "TinyFlow: Breaking Elephants Down Into Mice in Data Center
 * Networks", LANMAN 2014: a long flow ("elephant") gets a new random path every
 * 10 KB, and so resembles many short flows ("mice"). Flows shorter than 10 KB keep
 * their first path.
 *
 * For each flow, one register holds the bytes left of the current piece, another
 * the number of its path.
 */
#include <core.p4>
#include <tna.p4>

#define PIECE 10240

typedef bit<48> eth_addr_t;

header eth_h  { eth_addr_t dst; eth_addr_t src; bit<16> proto; }
header ip4_h  { bit<8> ver_ihl; bit<8> tos; bit<16> len; bit<16> id; bit<16> frag;
                bit<8> ttl; bit<8> proto; bit<16> csum; bit<32> src; bit<32> dst; }
header l4_h   { bit<16> sport; bit<16> dport; }

struct hdr_t  { eth_h eth; ip4_h ip4; l4_h l4; }
struct ig_md_t {
    bit<16> fid;      /* slot of the flow                          */
    bit<8>  rnd;      /* a drawn number, one for each piece        */
    bit<8>  pick;     /* the number that the flow's piece holds    */
    bit<1>  fresh;    /* a piece begins                            */
    bit<1>  multi;    /* there are several next hops               */
    bit<16> nhset;
}
struct eg_md_t { }

parser ig_prsr(packet_in p, out hdr_t hdr, out ig_md_t md, out ingress_intrinsic_metadata_t ig_intr) {
    state start {
        p.extract(ig_intr);
        p.advance(PORT_METADATA_SIZE);
        md.multi = 0;
        p.extract(hdr.eth);
        transition select(hdr.eth.proto) { 0x0800: ip4; default: accept; }
    }
    state ip4 {
        p.extract(hdr.ip4);
        transition select(hdr.ip4.ver_ihl, hdr.ip4.proto) {
            (0x45, 6): l4; (0x45, 17): l4; default: accept;
        }
    }
    state l4 { p.extract(hdr.l4); transition accept; }
}

control ig_ctl(inout hdr_t hdr, inout ig_md_t md,
               in ingress_intrinsic_metadata_t ig_intr,
               in ingress_intrinsic_metadata_from_parser_t from_prsr,
               inout ingress_intrinsic_metadata_for_deparser_t to_dprsr,
               inout ingress_intrinsic_metadata_for_tm_t to_tm) {

    Register<bit<16>, bit<16>>(32768, 0) left_r;  /* bytes left of the piece; 0: none has begun */
    Register<bit<8>, bit<16>>(32768, 0)  pick_r;  /* the number of the piece */

    Hash<bit<15>>(HashAlgorithm_t.CRC32) h5;
    Random<bit<8>>() rng;

    /* one packet uses up its length; what is then too little begins a new piece */
    RegisterAction<bit<16>, bit<16>, bit<1>>(left_r) spend = {
        void apply(inout bit<16> left, out bit<1> fresh) {
            if (left < hdr.ip4.len) { fresh = 1; left = PIECE; }
            else                    { fresh = 0; left = left - hdr.ip4.len; }
        }
    };
    RegisterAction<bit<8>, bit<16>, bit<8>>(pick_r) hold = {
        void apply(inout bit<8> kept, out bit<8> pick) {
            if (md.fresh == 1) { kept = md.rnd; }
            pick = kept;
        }
    };

    action nowhere() { to_dprsr.drop_ctl = 1; }
    action out_to(PortId_t p, eth_addr_t d, eth_addr_t s) {
        to_tm.ucast_egress_port = p; hdr.eth.dst = d; hdr.eth.src = s;
    }
    action one_of(bit<16> set) { md.multi = 1; md.nhset = set; }

    table fib {
        key     = { hdr.ip4.dst : lpm; }
        actions = { out_to; one_of; nowhere; }
        default_action = nowhere;
        size    = 4096;
    }

    /* 256 numbers for each set, whatever the number of its next hops */
    table nhops {
        key     = { md.nhset : exact; md.pick : exact; }
        actions = { out_to; nowhere; }
        default_action = nowhere;
        size    = 16384;
    }

    apply {
        to_tm.bypass_egress = 1;
        if (!hdr.ip4.isValid() || hdr.ip4.ttl == 0) { nowhere(); }
        else {
            fib.apply();
            if (md.multi == 1) {
                md.fid[14:0] = h5.get({ hdr.ip4.src, hdr.ip4.dst, hdr.ip4.proto, hdr.l4.sport, hdr.l4.dport });
                md.fid[15:15] = 0;
                md.rnd = rng.get();
                md.fresh = spend.execute(md.fid);
                md.pick = hold.execute(md.fid);
                nhops.apply();
            }
            hdr.ip4.ttl = hdr.ip4.ttl - 1;
        }
    }
}

control ig_dprsr(packet_out p, inout hdr_t hdr, in ig_md_t md, in ingress_intrinsic_metadata_for_deparser_t d) {
    Checksum() c;
    apply {
        hdr.ip4.csum = c.update({ hdr.ip4.ver_ihl, hdr.ip4.tos, hdr.ip4.len, hdr.ip4.id, hdr.ip4.frag,
                                  hdr.ip4.ttl, hdr.ip4.proto, hdr.ip4.src, hdr.ip4.dst });
        p.emit(hdr);
    }
}

parser eg_prsr(packet_in p, out hdr_t hdr, out eg_md_t md, out egress_intrinsic_metadata_t eg_intr) {
    state start { p.extract(eg_intr); transition accept; }
}
control eg_ctl(inout hdr_t hdr, inout eg_md_t md, in egress_intrinsic_metadata_t eg_intr,
               in egress_intrinsic_metadata_from_parser_t from_prsr,
               inout egress_intrinsic_metadata_for_deparser_t to_dprsr,
               inout egress_intrinsic_metadata_for_output_port_t to_port) { apply { } }
control eg_dprsr(packet_out p, inout hdr_t hdr, in eg_md_t md, in egress_intrinsic_metadata_for_deparser_t d) {
    apply { p.emit(hdr); }
}

Pipeline(ig_prsr(), ig_ctl(), ig_dprsr(), eg_prsr(), eg_ctl(), eg_dprsr()) pipe;
Switch(pipe) main;
