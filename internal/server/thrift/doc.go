// Package thrift speaks the Thrift interface of BMv2's simple_switch. Client is
// the side of a tool that looks into a switch, for what P4Runtime cannot do
// there: registers, queues. Server is the side of a switch that lets tools in,
// simple_switch_CLI and others that were written for simple_switch: tables,
// action profiles, multicast, arrays, hashes, ports.
//
// The wire is TBinaryProtocol without frames; a call is named after its
// service, as in "standard:bm_register_read".
//
// There is one set of tables: what P4Runtime has written is seen here,
// with the handles that simple_switch would have given. P4Runtime's server does
// not hear of what is written here, which it neither reads nor keeps when the
// program is replaced.
package thrift
