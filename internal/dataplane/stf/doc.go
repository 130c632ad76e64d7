// Package stf runs p4c's packet tests, the Simple Test Framework, on the
// embedded switch.
//
// A script is a list of lines:
//
//	# a comment
//	packet PORT HEX…            a packet arrives
//	expect PORT HEX…            a packet leaves; * is any digit, $ at the end
//	                            means that no bytes follow
//	expect PORT                 a packet with any bytes leaves
//	no_packet                   nothing leaves any port because of the packet lines
//	                            before, other than the packets of expect lines;
//	                            the queues are emptied first
//	add TABLE [PRIORITY] KEY:VALUE… ACTION(ARG:VALUE, …) [= NAME]
//	setdefault TABLE ACTION(ARG:VALUE, …)
//	remove all
//	check_counter NAME(INDEX|$NAME) [packets|bytes OP NUMBER]
//	check_register NAME(INDEX) [lo|hi] OP NUMBER
//	                            lo is the first field of a pair, hi the second
//	ghost run QUEUE:LENGTH      report a queue to Tofino 2's ghost thread
//	wait
//
// It may also contain simple_switch_CLI's commands mirroring_add,
// mirroring_add_mc, mirroring_delete, mirroring_get, mc_mgrp_create,
// mc_node_create, mc_node_update, mc_node_associate, counter_read,
// counter_write, register_read, register_write, register_reset,
// meter_get_rates, meter_set_rates, meter_array_set_rates,
// act_prof_create_member, act_prof_create_group, act_prof_add_member_to_group,
// table_indirect_add, table_indirect_add_with_group, table_indirect_set_default
// and table_indirect_set_default_with_group. All values are numbers.
//
// The last components of a name of a table, action or key suffice. A port takes
// part in a test if a packet or expect line names it. On such a port every
// packet must be expected, in order. Packets on other ports are ignored, except
// by no_packet. The entry with the largest priority wins.
//
// The tests of Tofino's compiler use a dialect: an action without parameters
// needs no brackets, = compares, semicolons separate statements, and \ at the
// end of a line continues it. For programs for Tofino, add replaces the action
// of an existing entry, and values of exact keys are cut to the key's width. A
// value for a field whose slices are in the key is split among them. A port
// with expected packets does not recirculate.
package stf
