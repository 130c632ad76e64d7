// Package thrift speaks the Thrift interface of BMv2's simple_switch, as far as
// it concerns registers, counters, queues and mirroring sessions: the part that
// P4Runtime cannot do there. Client is the side of a tool that looks into a
// switch, Server the side of a switch that lets such tools in.
//
// The wire is TBinaryProtocol without frames; a call is named after its
// service, as in "standard:bm_register_read". Tables are not touched: who
// writes them here and through P4Runtime at the same time confuses both.
package thrift
