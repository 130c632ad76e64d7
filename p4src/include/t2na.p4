// The Tofino 2 Native Architecture, T2NA: what a program for Tofino 2 sees of it.
//
// Times are in nanoseconds, queue depths in cells of 176 bytes.

#ifndef _T2NA_P4_
#define _T2NA_P4_

#ifdef _TNA_P4_
#error tna.p4 and t2na.p4 exclude each other
#endif

#ifndef __TARGET_TOFINO__
#define __TARGET_TOFINO__ 2
#endif
#if __TARGET_TOFINO__ != 2
#error t2na.p4 is for Tofino 2
#endif

#define PORT_ID_WIDTH 9
#define MULTICAST_GROUP_ID_WIDTH 16
#define QUEUE_ID_WIDTH 7
#define MIRROR_TYPE_WIDTH 4
#define MIRROR_ID_WIDTH 8
#define RESUBMIT_TYPE_WIDTH 3
#define DIGEST_TYPE_WIDTH 3
#define REPLICATION_ID_WIDTH 16
#define L1_EXCLUSION_ID_WIDTH 16
#define L2_EXCLUSION_ID_WIDTH 9
#define PARSER_COUNTER_MASK_WIDTH 8
#define FUNNEL_DIRECTION out

#include "tofino.p4"

typedef MirrorType_t CloneId_t;

// Bits before the packet in the ingress parser that hold port metadata.
const bit<32> PORT_METADATA_SIZE = 192;

// What comes before the packet in the ingress parser.
@__intrinsic_metadata
header ingress_intrinsic_metadata_t {
    bit<1>                                resubmit_flag;
    @padding bit<1>                       _pad1;
    bit<2>                                packet_version;
    @padding bit<(4 - PORT_ID_WIDTH % 8)> _pad2;
    PortId_t                              ingress_port;
    bit<48>                               ingress_mac_tstamp;
}

@__intrinsic_metadata
struct ingress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp; // when the packet came to ingress
    bit<32> global_ver;
    bit<16> parser_err; // bits PARSER_ERROR_*
}

// What ingress asks of the traffic manager.
@__intrinsic_metadata
struct ingress_intrinsic_metadata_for_tm_t {
    PortId_t           ucast_egress_port;
    bit<1>             bypass_egress;
    bit<1>             deflect_on_drop;
    bit<3>             ingress_cos;
    QueueId_t          qid;
    bit<3>             icos_for_copy_to_cpu;
    bit<1>             copy_to_cpu;
    bit<2>             packet_color;
    bit<1>             disable_ucast_cutthru;
    bit<1>             enable_mcast_cutthru;
    MulticastGroupId_t mcast_grp_a; // a packet may go to two groups and a port
    MulticastGroupId_t mcast_grp_b;
    bit<13>            level1_mcast_hash;
    bit<13>            level2_mcast_hash;
    L1ExclusionId_t    level1_exclusion_id;
    L2ExclusionId_t    level2_exclusion_id;
    bit<16>            rid;
}

// What ingress asks of its deparser. Bit 0 of drop_ctl drops the packet, bit 1
// its copy to the CPU.
@__intrinsic_metadata
struct ingress_intrinsic_metadata_for_deparser_t {
    bit<3>         drop_ctl;
    DigestType_t   digest_type;
    ResubmitType_t resubmit_type;
    MirrorType_t   mirror_type;
    // The packet as it came or as it leaves, and what overrules the session.
    bit<1>    mirror_io_select;
    bit<13>   mirror_hash;
    bit<3>    mirror_ingress_cos;
    bit<1>    mirror_deflect_on_drop;
    bit<1>    mirror_multicast_ctrl;
    PortId_t  mirror_egress_port;
    QueueId_t mirror_qid;
    bit<8>    mirror_coalesce_length;
    bit<32>   adv_flow_ctl;
    bit<14>   mtu_trunc_len;
    bit<1>    mtu_trunc_err_f;
    // A packet of the packet generator, from its buffer.
    bit<1>  pktgen;
    bit<14> pktgen_address;
    bit<10> pktgen_length;
}

// What the traffic manager tells the ghost thread: the length of one queue of
// the pipe. Of two copies of the state ping_pong says which to update.
@__intrinsic_metadata
@__ghost_metadata
header ghost_intrinsic_metadata_t {
    bit<1>  ping_pong;
    bit<18> qlength;
    bit<11> qid;
    bit<2>  pipe_id;
}

// What comes before the packet in the egress parser.
@__intrinsic_metadata
header egress_intrinsic_metadata_t {
    @padding bit<(8 - PORT_ID_WIDTH % 8)>  _pad0;
    PortId_t                               egress_port;
    @padding bit<5>                        _pad1;
    bit<19>                                enq_qdepth; // the queue that the packet met
    @padding bit<6>                        _pad2;
    bit<2>                                 enq_congest_stat;
    bit<32>                                enq_tstamp;
    @padding bit<5>                        _pad3;
    bit<19>                                deq_qdepth; // the queue that it left behind
    @padding bit<6>                        _pad4;
    bit<2>                                 deq_congest_stat;
    bit<8>                                 app_pool_congest_stat;
    bit<32>                                deq_timedelta; // how long it waited
    bit<16>                                egress_rid;
    @padding bit<7>                        _pad5;
    bit<1>                                 egress_rid_first;
    @padding bit<(8 - QUEUE_ID_WIDTH % 8)> _pad6;
    QueueId_t                              egress_qid;
    @padding bit<5>                        _pad7;
    bit<3>                                 egress_cos;
    @padding bit<7>                        _pad8;
    bit<1>                                 deflection_flag;
    bit<16>                                pkt_length;
    @padding bit<8>                        _pad9;
}

@__intrinsic_metadata
struct egress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp; // when the packet came to egress
    bit<32> global_ver;
    bit<16> parser_err;
}

@__intrinsic_metadata
struct egress_intrinsic_metadata_for_deparser_t {
    bit<3>       drop_ctl; // bit 2 drops the packet's mirror copy
    MirrorType_t mirror_type;
    bit<1>       coalesce_flush;
    bit<7>       coalesce_length;
    // The packet as it came or as it leaves, and what overrules the session.
    bit<1>    mirror_io_select;
    bit<13>   mirror_hash;
    bit<3>    mirror_ingress_cos;
    bit<1>    mirror_deflect_on_drop;
    bit<1>    mirror_multicast_ctrl;
    PortId_t  mirror_egress_port;
    QueueId_t mirror_qid;
    bit<8>    mirror_coalesce_length;
    bit<32>   adv_flow_ctl;
    bit<14>   mtu_trunc_len;
    bit<1>    mtu_trunc_err_f;
}

@__intrinsic_metadata
struct egress_intrinsic_metadata_for_output_port_t {
    bit<1> capture_tstamp_on_tx;
    bit<1> update_delay_on_tx;
}

// What packets of the packet generator begin with: those of a timer, of a port
// that went down, of a packet that came round, of one that the ingress deparser
// asked for, and of one that paused a port.
header pktgen_timer_header_t {
    @padding bit<2> _pad1;
    bit<2>          pipe_id;
    bit<4>          app_id;
    @padding bit<8> _pad2;
    bit<16>         batch_id;
    bit<16>         packet_id;
}

header pktgen_port_down_header_t {
    @padding bit<2>                        _pad1;
    bit<2>                                 pipe_id;
    bit<4>                                 app_id;
    @padding bit<(16 - PORT_ID_WIDTH % 8)> _pad2;
    PortId_t                               port_num;
    bit<16>                                packet_id;
}

header pktgen_recirc_header_t {
    @padding bit<2> _pad1;
    bit<2>          pipe_id;
    bit<4>          app_id;
    @padding bit<8> _pad2;
    bit<16>         batch_id;
    bit<16>         packet_id;
}

header pktgen_deparser_header_t {
    @padding bit<2> _pad1;
    bit<2>          pipe_id;
    bit<4>          app_id;
    @padding bit<8> _pad2;
    bit<16>         batch_id;
    bit<16>         packet_id;
}

header pktgen_pfc_header_t {
    @padding bit<2>  _pad1;
    bit<2>           pipe_id;
    bit<4>           app_id;
    @padding bit<40> _pad2;
}

extern IdleTimeout {
    IdleTimeout();
}

// What may be asked within apply: where the value is, which comparisons held
// (four of them), the least and the greatest of its parts with their index.
#define QUERIES(U) \
    U address(@optional bit<1> subword); \
    U predicate(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3); \
    bit<8> min8<I>(in I val, in bit<16> mask, @optional out bit<4> index); \
    bit<8> max8<I>(in I val, in bit<16> mask, @optional out bit<4> index); \
    bit<16> min16<I>(in I val, in bit<8> mask, @optional out bit<3> index); \
    bit<16> max16<I>(in I val, in bit<8> mask, @optional out bit<3> index);

// The same where execute returns values of several types.
#define GENERIC_QUERIES \
    U address<U>(@optional bit<1> subword); \
    U predicate<U>(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3); \
    bit<8> min8<I>(in I val, in bit<16> mask, @optional out bit<4> index); \
    bit<8> max8<I>(in I val, in bit<16> mask, @optional out bit<4> index); \
    bit<16> min16<I>(in I val, in bit<8> mask, @optional out bit<3> index); \
    bit<16> max16<I>(in I val, in bit<8> mask, @optional out bit<3> index);

// The least and the greatest of 16 bytes or 8 halves of a cell.
#define REDUCTIONS(W) \
    bit<8> min8(in bit<128> val, in bit<16> mask, @optional out bit<4> index, @optional in int<W> postmod); \
    bit<8> max8(in bit<128> val, in bit<16> mask, @optional out bit<4> index, @optional in int<W> postmod); \
    bit<16> min16(in bit<128> val, in bit<8> mask, @optional out bit<3> index, @optional in int<W> postmod); \
    bit<16> max16(in bit<128> val, in bit<8> mask, @optional out bit<3> index, @optional in int<W> postmod);

// What happens to the register cell at an index, in one go: apply gets its
// value, may change it, and says what execute returns, up to four values. A
// packet can run one action of a register. A register can be a log, a queue or
// a stack too: overflow and underflow say what happens at its ends.
@noWarn("unused")
extern RegisterAction<T, H, U> {
    RegisterAction(Register<_, _> reg);
    U execute(@optional in H index, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    U execute_log(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    U enqueue(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    U dequeue(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    U push(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    U pop(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    void sweep(@optional in U busy);
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop, sweep)
    abstract void apply(inout T value, @optional out U rv1, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    @synchronous(enqueue, push)
    @optional abstract void overflow(@optional inout T value, @optional out U rv1, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    @synchronous(dequeue, pop)
    @optional abstract void underflow(@optional inout T value, @optional out U rv1, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    QUERIES(U)
}

extern DirectRegisterAction<T, U> {
    DirectRegisterAction(DirectRegister<T> reg);
    U execute(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    @synchronous(execute)
    abstract void apply(inout T value, @optional out U rv, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    QUERIES(U)
}

// The actions that return 2 to 4 values, each of a type of its own.
extern RegisterAction2<T, H, U1, U2> {
    RegisterAction2(Register<_, _> reg);
    U1 execute(in H index, out U2 rv2);
    U1 execute_log(out U2 rv2);
    U1 enqueue(out U2 rv2);
    U1 dequeue(out U2 rv2);
    U1 push(out U2 rv2);
    U1 pop(out U2 rv2);
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop)
    abstract void apply(inout T value, out U1 rv1, out U2 rv2);
    @synchronous(enqueue, push)
    @optional abstract void overflow(@optional inout T value, out U1 rv1, out U2 rv2);
    @synchronous(dequeue, pop)
    @optional abstract void underflow(@optional inout T value, out U1 rv1, out U2 rv2);
    GENERIC_QUERIES
}

extern DirectRegisterAction2<T, U1, U2> {
    DirectRegisterAction2(DirectRegister<T> reg);
    U1 execute(out U2 rv2);
    @synchronous(execute)
    abstract void apply(inout T value, out U1 rv1, out U2 rv2);
    GENERIC_QUERIES
}

extern RegisterAction3<T, H, U1, U2, U3> {
    RegisterAction3(Register<_, _> reg);
    U1 execute(in H index, out U2 rv2, out U3 rv3);
    U1 execute_log(out U2 rv2, out U3 rv3);
    U1 enqueue(out U2 rv2, out U3 rv3);
    U1 dequeue(out U2 rv2, out U3 rv3);
    U1 push(out U2 rv2, out U3 rv3);
    U1 pop(out U2 rv2, out U3 rv3);
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop)
    abstract void apply(inout T value, out U1 rv1, out U2 rv2, out U3 rv3);
    @synchronous(enqueue, push)
    @optional abstract void overflow(@optional inout T value, out U1 rv1, out U2 rv2, out U3 rv3);
    @synchronous(dequeue, pop)
    @optional abstract void underflow(@optional inout T value, out U1 rv1, out U2 rv2, out U3 rv3);
    GENERIC_QUERIES
}

extern DirectRegisterAction3<T, U1, U2, U3> {
    DirectRegisterAction3(DirectRegister<T> reg);
    U1 execute(out U2 rv2, out U3 rv3);
    @synchronous(execute)
    abstract void apply(inout T value, out U1 rv1, out U2 rv2, out U3 rv3);
    GENERIC_QUERIES
}

extern RegisterAction4<T, H, U1, U2, U3, U4> {
    RegisterAction4(Register<_, _> reg);
    U1 execute(in H index, out U2 rv2, out U3 rv3, out U4 rv4);
    U1 execute_log(out U2 rv2, out U3 rv3, out U4 rv4);
    U1 enqueue(out U2 rv2, out U3 rv3, out U4 rv4);
    U1 dequeue(out U2 rv2, out U3 rv3, out U4 rv4);
    U1 push(out U2 rv2, out U3 rv3, out U4 rv4);
    U1 pop(out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop)
    abstract void apply(inout T value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(enqueue, push)
    @optional abstract void overflow(@optional inout T value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(dequeue, pop)
    @optional abstract void underflow(@optional inout T value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    GENERIC_QUERIES
}

extern DirectRegisterAction4<T, U1, U2, U3, U4> {
    DirectRegisterAction4(DirectRegister<T> reg);
    U1 execute(out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(execute)
    abstract void apply(inout T value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    GENERIC_QUERIES
}

// Learning filters: learn says whether the digest is new.
extern LearnAction<T, H, D, U> {
    LearnAction(Register<T, H> reg);
    U execute(in H index, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    @synchronous(execute)
    abstract void apply(inout T value, in D digest, in bool learn, @optional out U rv1, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    QUERIES(U)
}

extern LearnAction2<T, H, D, U1, U2> {
    LearnAction2(Register<T, H> reg);
    U1 execute(in H index, out U2 rv2);
    @synchronous(execute)
    abstract void apply(inout T value, in D digest, in bool learn, out U1 rv1, out U2 rv2);
    GENERIC_QUERIES
}

extern LearnAction3<T, H, D, U1, U2, U3> {
    LearnAction3(Register<T, H> reg);
    U1 execute(in H index, out U2 rv2, out U3 rv3);
    @synchronous(execute)
    abstract void apply(inout T value, in D digest, in bool learn, out U1 rv1, out U2 rv2, out U3 rv3);
    GENERIC_QUERIES
}

extern LearnAction4<T, H, D, U1, U2, U3, U4> {
    LearnAction4(Register<T, H> reg);
    U1 execute(in H index, out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(execute)
    abstract void apply(inout T value, in D digest, in bool learn, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    GENERIC_QUERIES
}

// Actions that reduce a cell of 128 bits.
extern MinMaxAction<T, H, U> {
    MinMaxAction(Register<T, _> reg);
    U execute(@optional in H index, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    @synchronous(execute)
    abstract void apply(inout bit<128> value, @optional out U rv1, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    U address(@optional bit<1> subword);
    U predicate(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3);
    REDUCTIONS(8)
}

extern MinMaxAction2<T, H, U1, U2> {
    MinMaxAction2(Register<T, _> reg);
    U1 execute(@optional in H index, out U2 rv2);
    @synchronous(execute)
    abstract void apply(inout bit<128> value, out U1 rv1, out U2 rv2);
    U address<U>(@optional bit<1> subword);
    U predicate<U>(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3);
    REDUCTIONS(9)
}

extern MinMaxAction3<T, H, U1, U2, U3> {
    MinMaxAction3(Register<T, _> reg);
    U1 execute(@optional in H index, out U2 rv2, out U3 rv3);
    @synchronous(execute)
    abstract void apply(inout bit<128> value, out U1 rv1, out U2 rv2, out U3 rv3);
    U address<U>(@optional bit<1> subword);
    U predicate<U>(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3);
    REDUCTIONS(9)
}

extern MinMaxAction4<T, H, U1, U2, U3, U4> {
    MinMaxAction4(Register<T, _> reg);
    U1 execute(@optional in H index, out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(execute)
    abstract void apply(inout bit<128> value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    U address<U>(@optional bit<1> subword);
    U predicate<U>(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3);
    REDUCTIONS(9)
}

// The header of a packet that the ingress deparser has the packet generator
// send.
extern Pktgen {
    Pktgen();
    void emit<T>(in T hdr);
}

// The programmable blocks.
parser IngressParserT<H, M>(
    packet_in pkt,
    out H hdr,
    out M ig_md,
    out ingress_intrinsic_metadata_t ig_intr_md,
    @optional out ingress_intrinsic_metadata_for_tm_t ig_intr_md_for_tm,
    @optional out ingress_intrinsic_metadata_from_parser_t ig_intr_md_from_prsr);

parser EgressParserT<H, M>(
    packet_in pkt,
    out H hdr,
    out M eg_md,
    out egress_intrinsic_metadata_t eg_intr_md,
    @optional out egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr,
    @optional out egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr);

control IngressT<H, M>(
    inout H hdr,
    inout M ig_md,
    in ingress_intrinsic_metadata_t ig_intr_md,
    in ingress_intrinsic_metadata_from_parser_t ig_intr_md_from_prsr,
    inout ingress_intrinsic_metadata_for_deparser_t ig_intr_md_for_dprsr,
    inout ingress_intrinsic_metadata_for_tm_t ig_intr_md_for_tm,
    @optional in ghost_intrinsic_metadata_t gh_intr_md);

control GhostT(in ghost_intrinsic_metadata_t gh_intr_md);

control EgressT<H, M>(
    inout H hdr,
    inout M eg_md,
    in egress_intrinsic_metadata_t eg_intr_md,
    in egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr,
    inout egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr,
    inout egress_intrinsic_metadata_for_output_port_t eg_intr_md_for_oport);

control IngressDeparserT<H, M>(
    packet_out pkt,
    inout H hdr,
    in M metadata,
    in ingress_intrinsic_metadata_for_deparser_t ig_intr_md_for_dprsr,
    @optional in ingress_intrinsic_metadata_t ig_intr_md);

control EgressDeparserT<H, M>(
    packet_out pkt,
    inout H hdr,
    in M metadata,
    in egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr,
    @optional in egress_intrinsic_metadata_t eg_intr_md,
    @optional in egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr);

package Pipeline<IH, IM, EH, EM>(
    IngressParserT<IH, IM> ingress_parser,
    IngressT<IH, IM> ingress,
    IngressDeparserT<IH, IM> ingress_deparser,
    EgressParserT<EH, EM> egress_parser,
    EgressT<EH, EM> egress,
    EgressDeparserT<EH, EM> egress_deparser,
    @optional GhostT ghost);

// Up to four pipes, each with a program of its own.
@pkginfo(arch="T2NA", version="1.0.1")
@noWarn("unused")
package Switch<IH0, IM0, EH0, EM0, IH1, IM1, EH1, EM1, IH2, IM2, EH2, EM2, IH3, IM3, EH3, EM3>(
    Pipeline<IH0, IM0, EH0, EM0> pipe0,
    @optional Pipeline<IH1, IM1, EH1, EM1> pipe1,
    @optional Pipeline<IH2, IM2, EH2, EM2> pipe2,
    @optional Pipeline<IH3, IM3, EH3, EM3> pipe3);

#endif
