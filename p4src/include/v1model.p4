// The v1model architecture, which the BMv2 simple_switch executes.
//
// A program may define V1MODEL_VERSION before it includes this file. From
// 20200408 on, ports have a type of their own, and counters, meters and
// registers take the type of their index as a parameter.

#ifndef _V1_MODEL_P4_
#define _V1_MODEL_P4_

#include "core.p4"

#ifndef V1MODEL_VERSION
#define V1MODEL_VERSION 20180101
#endif

match_kind {
    range,
    optional, // one value, or any
    selector  // input of an action selector's hash
}

const bit<32> __v1model_version = V1MODEL_VERSION;

#if V1MODEL_VERSION >= 20200408
typedef bit<9> PortId_t;
#endif

// What the switch and the program tell each other about a packet. An alias is
// the name by which BMv2 knows the field.
@metadata @name("standard_metadata")
struct standard_metadata_t {
#if V1MODEL_VERSION >= 20200408
    PortId_t ingress_port;
    PortId_t egress_spec; // where ingress wants the packet to go
    PortId_t egress_port; // where it goes, known in egress
#else
    bit<9> ingress_port;
    bit<9> egress_spec; // where ingress wants the packet to go
    bit<9> egress_port; // where it goes, known in egress
#endif
    bit<32> instance_type; // 0 for a packet from a port, else how it came about
    bit<32> packet_length; // bytes
    // The queue, as egress sees it: times in microseconds, depths in packets.
    @alias("queueing_metadata.enq_timestamp")
    bit<32> enq_timestamp;
    @alias("queueing_metadata.enq_qdepth")
    bit<19> enq_qdepth;
    @alias("queueing_metadata.deq_timedelta")
    bit<32> deq_timedelta;
    @alias("queueing_metadata.deq_qdepth")
    bit<19> deq_qdepth;
    // When the packet began ingress and egress, in microseconds.
    @alias("intrinsic_metadata.ingress_global_timestamp")
    bit<48> ingress_global_timestamp;
    @alias("intrinsic_metadata.egress_global_timestamp")
    bit<48> egress_global_timestamp;
    // A multicast group other than 0 replaces egress_spec; each copy carries
    // the replication id of its member.
    @alias("intrinsic_metadata.mcast_grp")
    bit<16> mcast_grp;
    @alias("intrinsic_metadata.egress_rid")
    bit<16> egress_rid;
    bit<1>  checksum_error; // 1 after a verify_checksum that failed
    error   parser_error;
    // The queue of the port, where the switch has several.
    @alias("intrinsic_metadata.priority")
    bit<3> priority;
}

enum CounterType {
    packets,
    bytes,
    packets_and_bytes
}

enum MeterType {
    packets,
    bytes
}

// An array of counters that the control plane reads. An index out of range
// counts nothing.
extern counter
#if V1MODEL_VERSION >= 20200408
<I>
#endif
{
    counter(bit<32> size, CounterType type);
#if V1MODEL_VERSION >= 20200408
    void count(in I index);
#else
    void count(in bit<32> index);
#endif
}

// A counter for each entry of the table that names it in its property
// counters; it counts on every hit, with or without a call of count.
extern direct_counter {
    direct_counter(CounterType type);
    void count();
}

#define V1MODEL_METER_COLOR_GREEN  0
#define V1MODEL_METER_COLOR_YELLOW 1
#define V1MODEL_METER_COLOR_RED    2

// An array of three-colour meters.
extern meter
#if V1MODEL_VERSION >= 20200408
<I>
#endif
{
    meter(bit<32> size, MeterType type);
    // Charges the packet to a meter; result is one of V1MODEL_METER_COLOR_*
    // and needs two bits. An index out of range leaves it undefined.
#if V1MODEL_VERSION >= 20200408
    void execute_meter<T>(in I index, out T result);
#else
    void execute_meter<T>(in bit<32> index, out T result);
#endif
}

// A meter for each entry of the table that names it in its property meters.
extern direct_meter<T> {
    direct_meter(MeterType type);
    // The colour of the packet, in an action of that table.
    void read(out T result);
}

// An array of values that program and control plane both read and write.
#if V1MODEL_VERSION >= 20200408
extern register<T, I>
#else
extern register<T>
#endif
{
    register(bit<32> size);
    // An index out of range leaves result undefined.
    @noSideEffects
#if V1MODEL_VERSION >= 20200408
    void read(out T result, in I index);
#else
    void read(out T result, in bit<32> index);
#endif
    // An index out of range writes nothing.
#if V1MODEL_VERSION >= 20200408
    void write(in I index, in T value);
#else
    void write(in bit<32> index, in T value);
#endif
}

// Actions that the entries of a table share, as its property implementation.
extern action_profile {
    action_profile(bit<32> size);
}

// Draws a number from lo to hi, both included.
extern void random<T>(out T result, in T lo, in T hi);

// In ingress: sends data to the control plane; BMv2 ignores the receiver.
extern void digest<T>(in bit<32> receiver, in T data);

enum HashAlgorithm {
    crc32,
    crc32_custom,
    crc16,
    crc16_custom,
    random,
    identity,
    csum16,
    xor16
}

@deprecated("It does not say which packet; call mark_to_drop(standard_metadata).")
extern void mark_to_drop();

// Sets egress_spec to the drop port and mcast_grp to 0. A later assignment to
// either revives the packet.
@pure
extern void mark_to_drop(inout standard_metadata_t standard_metadata);

// result = base + hash(data) mod max, and base alone where max is 0.
@pure
extern void hash<O, T, D, M>(out O result, in HashAlgorithm algo, in T base, in D data, in M max);

// An action profile whose groups choose a member by the hash of the keys of
// match kind selector.
extern action_selector {
    action_selector(HashAlgorithm algorithm, bit<32> size, bit<32> outputWidth);
}

enum CloneType {
    I2E, // from ingress to egress
    E2E  // from egress to egress
}

@deprecated("Checksums are the work of verify_checksum and update_checksum.")
extern Checksum16 {
    Checksum16();
    bit<16> get<D>(in D data);
}

// In VerifyChecksum: sets checksum_error where condition holds and checksum
// is not that of data.
extern void verify_checksum<T, O>(in bool condition, in T data, in O checksum, HashAlgorithm algo);

// In ComputeChecksum: sets checksum to that of data where condition holds.
@pure
extern void update_checksum<T, O>(in bool condition, in T data, inout O checksum, HashAlgorithm algo);

// The same two over data and all of the packet that the parser left unread.
extern void verify_checksum_with_payload<T, O>(in bool condition, in T data, in O checksum, HashAlgorithm algo);
@noSideEffects
extern void update_checksum_with_payload<T, O>(in bool condition, in T data, inout O checksum, HashAlgorithm algo);

// Sends copies of the packet to egress, to the ports that the control plane
// has configured for the session; metadata starts afresh.
extern void clone(in CloneType type, in bit<32> session);

@deprecated("Call resubmit_preserving_field_list.")
extern void resubmit<T>(in T data);
// In ingress: parses the original packet once more. It keeps the metadata
// fields annotated @field_list with the index.
extern void resubmit_preserving_field_list(bit<8> index);

@deprecated("Call recirculate_preserving_field_list.")
extern void recirculate<T>(in T data);
// In egress: parses the deparsed packet once more; fields as for resubmit.
extern void recirculate_preserving_field_list(bit<8> index);

@deprecated("Call clone_preserving_field_list.")
extern void clone3<T>(in CloneType type, in bit<32> session, in T data);
// As clone; fields as for resubmit. Of several clones the last one counts.
extern void clone_preserving_field_list(in CloneType type, in bit<32> session, bit<8> index);

// Cuts the packet that leaves down to length bytes.
extern void truncate(in bit<32> length);

// Both stop the switch with a message unless check holds. assume tells a
// verifier besides that it need not look at other packets.
extern void assert(in bool check);
extern void assume(in bool check);

// Writes to the log of the switch; {} in msg stands for the next value of data.
extern void log_msg(string msg);
extern void log_msg<T>(string msg, in T data);

// The blocks of a program, in the order in which a packet meets them. H is
// the struct of all headers, M that of the user's metadata.

parser Parser<H, M>(packet_in b,
                    out H parsedHdr,
                    inout M meta,
                    inout standard_metadata_t standard_metadata);

// Calls of verify_checksum alone.
control VerifyChecksum<H, M>(inout H hdr,
                             inout M meta);

@pipeline
control Ingress<H, M>(inout H hdr,
                      inout M meta,
                      inout standard_metadata_t standard_metadata);

@pipeline
control Egress<H, M>(inout H hdr,
                     inout M meta,
                     inout standard_metadata_t standard_metadata);

// Calls of update_checksum alone.
control ComputeChecksum<H, M>(inout H hdr,
                              inout M meta);

// Calls of packet_out.emit alone.
@deparser
control Deparser<H>(packet_out b, in H hdr);

package V1Switch<H, M>(Parser<H, M> p,
                       VerifyChecksum<H, M> vr,
                       Ingress<H, M> ig,
                       Egress<H, M> eg,
                       ComputeChecksum<H, M> ck,
                       Deparser<H> dep);

#endif // _V1_MODEL_P4_
