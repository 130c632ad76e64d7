// What the architectures TNA and T2NA have in common. Programs include tna.p4
// or t2na.p4, which set the widths that differ and declare the rest.

#ifndef _TOFINO_P4_
#define _TOFINO_P4_

#include "core.p4"

typedef bit<PORT_ID_WIDTH> PortId_t;
typedef bit<MULTICAST_GROUP_ID_WIDTH> MulticastGroupId_t;
typedef bit<QUEUE_ID_WIDTH> QueueId_t;
typedef bit<MIRROR_TYPE_WIDTH> MirrorType_t;
typedef bit<MIRROR_ID_WIDTH> MirrorId_t;
typedef bit<RESUBMIT_TYPE_WIDTH> ResubmitType_t;
typedef bit<DIGEST_TYPE_WIDTH> DigestType_t;
typedef bit<REPLICATION_ID_WIDTH> ReplicationId_t;
typedef bit<L1_EXCLUSION_ID_WIDTH> L1ExclusionId_t;
typedef bit<L2_EXCLUSION_ID_WIDTH> L2ExclusionId_t;
typedef error ParserError_t;

// A device port is a pipe and a port of it.
#define DEVPORT_PIPE_MASK 0x180
#define DEVPORT_PIPE(port) (port)[8:7]
#define DEVPORT_PORT_MASK 0x7f
#define DEVPORT_PORT(port) (port)[6:0]

#define PACK_VERSION(a, b, c) (((a) << 24) + ((b) << 12) + (c))
#define COMPILER_VERSION PACK_VERSION(__p4c_major__, __p4c_minor__, __p4c_patchlevel__)

match_kind {
    range,
    selector, // input of an action selector's hash
#ifdef _T2NA_P4_
    dleft_hash,
#endif
    atcam_partition_index
}

error {
    CounterRange,
    Timeout,
    PhvOwner,
    MultiWrite,
    IbufOverflow,
    IbufUnderflow
}

// Bits of parser_err.
const bit<16> PARSER_ERROR_OK = 0x0000;
const bit<16> PARSER_ERROR_NO_MATCH = 0x0001;
const bit<16> PARSER_ERROR_PARTIAL_HDR = 0x0002;
const bit<16> PARSER_ERROR_CTR_RANGE = 0x0004;
const bit<16> PARSER_ERROR_TIMEOUT_USER = 0x0008;
const bit<16> PARSER_ERROR_TIMEOUT_HW = 0x0010;
const bit<16> PARSER_ERROR_SRC_EXT = 0x0020;
#ifndef _T2NA_P4_
const bit<16> PARSER_ERROR_DST_CONT = 0x0040;
#endif
const bit<16> PARSER_ERROR_PHV_OWNER = 0x0080;
const bit<16> PARSER_ERROR_MULTIWRITE = 0x0100;
const bit<16> PARSER_ERROR_ARAM_MBE = 0x0400;
const bit<16> PARSER_ERROR_FCS = 0x0800;
#ifdef _T2NA_P4_
const bit<16> PARSER_ERROR_CSUM_MBE = 0x1000;
#endif

enum MeterType_t {
    PACKETS,
    BYTES
}

enum bit<8> MeterColor_t {
    GREEN = 0,
    YELLOW = 1,
    RED = 3
}

enum CounterType_t {
    PACKETS,
    BYTES,
    PACKETS_AND_BYTES
}

// What happens to the flows of a member that leaves a selector's group: FAIR
// moves others too, RESILIENT does not.
enum SelectorMode_t {
    FAIR,
    RESILIENT
}

enum HashAlgorithm_t {
    IDENTITY,
    RANDOM,
    XOR8,
    XOR16,
    XOR32,
    CRC8,
    CRC16,
    CRC32,
    CRC64,
    CUSTOM // see CRCPolynomial
}

// The 8-bit counter of the parser.
extern ParserCounter {
    ParserCounter();
    void set<T>(in T value);
    // From a field: rotated to the right, masked, and something added.
    void set<T>(in T field, in bit<8> max, in bit<8> rotate, in bit<PARSER_COUNTER_MASK_WIDTH> mask, in bit<8> add);
#ifdef _T2NA_P4_
    // The counter has a stack of four, for options within options.
    void push<T>(in T value, @optional bool update_with_top);
    void push<T>(in T field, in bit<8> max, in bit<8> rotate, in bit<8> mask, in bit<8> add, @optional bool update_with_top);
    void pop();
#endif
    bool is_zero();
    bool is_negative();
    void increment(in bit<8> value);
    void decrement(in bit<8> value);
}

// Which packets the ingress buffer drops first.
extern ParserPriority {
    ParserPriority();
    void set(in bit<3> prio);
}

// The Internet checksum: in parsers verified, or what the payload adds to it
// found; in deparsers computed.
extern Checksum {
    Checksum();
    void add<T>(in T data);
    void subtract<T>(in T data);
    bool verify();
    bit<16> get();
    void subtract_all_and_deposit<T>(out T residual);
    bit<16> update<T>(in T data, @optional in bool zeros_as_ones);
}

extern CRCPolynomial<T> {
    CRCPolynomial(T coeff, bool reversed, bool msb, bool extended, T init, T xor);
}

extern Hash<W> {
    Hash(HashAlgorithm_t algo);
    Hash(HashAlgorithm_t algo, CRCPolynomial<_> poly);
    W get<D>(in D data);
}

// Uniform over all values of W.
extern Random<W> {
    Random();
    W get();
}

extern T max<T>(in T t1, in T t2);
extern T min<T>(in T t1, in T t2);
extern void funnel_shift_right<T>(FUNNEL_DIRECTION T dst, in T src1, in T src2, int shift_amount);
extern void invalidate<T>(in T field);
extern bool is_validated<T>(in T field);
// What the control plane says of the ingress port.
extern T port_metadata_unpack<T>(packet_in pkt);
extern bit<32> sizeInBits<H>(in H h);
extern bit<32> sizeInBytes<H>(in H h);

#ifdef _T2NA_P4_
#define ACCOUNTING , @optional bool true_egress_accounting
#else
#define ACCOUNTING
#endif

// W is the width of the counters, I that of the index. A table's entries have
// the direct variant, if its property counters says so.
@noWarn("unused")
extern Counter<W, I> {
    Counter(bit<32> size, CounterType_t type ACCOUNTING);
    void count(in I index, @optional in bit<32> adjust_byte_count);
}

@noWarn("unused")
extern DirectCounter<W> {
    DirectCounter(CounterType_t type ACCOUNTING);
    void count(@optional in bit<32> adjust_byte_count);
}

// Two rates, three colours.
extern Meter<I> {
    Meter(bit<32> size, MeterType_t type ACCOUNTING);
    Meter(bit<32> size, MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green ACCOUNTING);
    bit<8> execute(in I index, in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(in I index, @optional in bit<32> adjust_byte_count);
}

extern DirectMeter {
    DirectMeter(MeterType_t type ACCOUNTING);
    DirectMeter(MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green ACCOUNTING);
    bit<8> execute(in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(@optional in bit<32> adjust_byte_count);
}

// A low-pass filter: an average that decays with the time set by the control
// plane.
extern Lpf<T, I> {
    Lpf(bit<32> size);
    T execute(in T val, in I index);
}

extern DirectLpf<T> {
    DirectLpf();
    T execute(in T val);
}

// Random early detection on an average: drop_value with a probability that
// rises with it.
extern Wred<T, I> {
    Wred(bit<32> size, bit<8> drop_value, bit<8> no_drop_value);
    bit<8> execute(in T val, in I index);
}

extern DirectWred<T> {
    DirectWred(bit<8> drop_value, bit<8> no_drop_value);
    bit<8> execute(in T val);
}

// State that RegisterActions read and write, and the control plane too.
extern Register<T, I> {
    Register(bit<32> size);
    Register(bit<32> size, T initial_value);
    T read(in I index);
    T write(in I index, in T value);
#ifdef _T2NA_P4_
    void clear(in T value, @optional in T busy);
#endif
}

extern DirectRegister<T> {
    DirectRegister();
    DirectRegister(T initial_value);
    T read();
    T write(in T value);
#ifdef _T2NA_P4_
    void clear(in T value, @optional in T busy);
#endif
}

// A constant of RegisterActions that the control plane can change.
extern RegisterParam<T> {
    RegisterParam(T initial_value);
    T read();
}

enum MathOp_t {
    MUL,
    SQR,
    SQRT,
    DIV,
    RSQR,
    RSQRT
}

// A coarse function of one value, by a table of 16 mantissas, within a
// RegisterAction.
extern MathUnit<T> {
    MathUnit(bool invert, int<2> shift, int<6> scale,
             tuple<bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>,
             bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>> data);
    MathUnit(MathOp_t op, int factor);
    MathUnit(MathOp_t op, int A, int B);
    T execute(in T x);
}

// Members that the entries of several tables share.
extern ActionProfile {
    ActionProfile(bit<32> size);
}

// Groups of members, of which a hash takes one.
extern ActionSelector {
    ActionSelector(ActionProfile action_profile, Hash<_> hash, SelectorMode_t mode, bit<32> max_group_size, bit<32> num_groups);
    ActionSelector(ActionProfile action_profile, Hash<_> hash, SelectorMode_t mode, Register<bit<1>, _> reg,
                   bit<32> max_group_size, bit<32> num_groups);
    @deprecated("an ActionSelector wants an ActionProfile")
    ActionSelector(bit<32> size, Hash<_> hash, SelectorMode_t mode);
    @deprecated("an ActionSelector wants an ActionProfile")
    ActionSelector(bit<32> size, Hash<_> hash, SelectorMode_t mode, Register<bit<1>, _> reg);
}

// Lets the data plane take a member out of its groups.
extern SelectorAction {
    SelectorAction(ActionSelector sel);
    bit<1> execute(@optional in bit<32> index);
    @synchronous(execute)
    abstract void apply(inout bit<1> value, @optional out bit<1> rv);
}

// A copy of the packet to a mirror session: as it came in at ingress, as it
// leaves at egress, with a header before it. For deparsers, as the three that
// follow. The form without mirror_type is an old one, but in ingress p4c knows
// no other.
extern Mirror {
    Mirror();
    Mirror(MirrorType_t mirror_type);
    void emit(in MirrorId_t session_id);
    void emit<T>(in MirrorId_t session_id, in T hdr);
}

// The packet once more through ingress, as it came in, with a header.
extern Resubmit {
    @deprecated("a Resubmit wants its value of resubmit_type")
    Resubmit();
    Resubmit(ResubmitType_t resubmit_type);
    void emit();
    void emit<T>(in T hdr);
}

// A message to the control plane.
extern Digest<T> {
    @deprecated("a Digest wants its value of digest_type")
    Digest();
    Digest(DigestType_t digest_type);
    void pack(in T data);
}

// How a table is implemented, as its property implementation.
extern Atcam {
    Atcam(@optional bit<32> number_partitions);
}

extern Alpm {
    Alpm(@optional bit<32> number_partitions, @optional bit<32> subtrees_per_partition,
         @optional bit<32> atcam_subset_width, @optional bit<32> shift_granularity);
}

// Bytes that the MAC replaces in packets of the Precision Time Protocol.
header ptp_metadata_t {
    bit<8>  udp_cksum_byte_offset;
    bit<8>  cf_byte_offset;
    bit<48> updated_cf;
}

#endif
