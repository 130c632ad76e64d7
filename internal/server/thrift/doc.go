// Package thrift implements the Thrift interface of BMv2's simple_switch.
// Client accesses features of a switch that P4Runtime lacks there: registers
// and queues. Server lets simple_switch_CLI and other tools for simple_switch
// access this switch: tables, action profiles, multicast, arrays, hashes,
// ports.
//
// The protocol is TBinaryProtocol without frames; the name of a call includes
// its service, as in "standard:bm_register_read".
//
// There is one set of tables: calls see the entries written through P4Runtime,
// with the handles that simple_switch would assign. The P4Runtime server does
// not notice entries written through Thrift: it neither returns them nor keeps
// them when the program is replaced.
package thrift
