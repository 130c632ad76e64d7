// The core library of P4_16: what every architecture can rely on.

#ifndef _CORE_P4_
#define _CORE_P4_

error {
    NoError,
    PacketTooShort,       // extract or lookahead ran past the end of the packet
    NoMatch,              // select without a case for its value
    StackOutOfBounds,     // next or last of a header stack that is full or empty
    HeaderTooShort,       // more bits extracted than the varbit field can hold
    ParserTimeout,        // the parser took longer than the target allows
    ParserInvalidArgument // an argument that the target cannot serve
}

// The bytes of a packet as the parser consumes them.
extern packet_in {
    // Fills a header of fixed size and moves on behind it.
    void extract<T>(out T hdr);
    // Fills a header with one varbit field, which takes the given number of bits.
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);
    // Reads a value of type T without moving on.
    T lookahead<T>();
    // Moves on by a number of bits.
    void advance(in bit<32> sizeInBits);
    // The length of the whole packet in bytes.
    bit<32> length();
}

// The packet that a deparser puts together.
extern packet_out {
    // Appends a header if it is valid; of stacks, unions and structs, each
    // header in turn.
    void emit<T>(in T hdr);
}

// In a parser: goes to state reject with the error toSignal unless check holds.
extern void verify(in bool check, in error toSignal);

// Leaves everything as it is.
@noWarn("unused")
action NoAction() {}

match_kind {
    exact,
    ternary, // value and mask
    lpm      // longest prefix
}

// Fails the compilation with a message unless check, which the compiler must
// be able to compute, holds. The result is check, so that a constant can be
// declared with it.
extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);

#endif // _CORE_P4_
