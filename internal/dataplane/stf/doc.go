// Package stf runs p4c's packet tests, the Simple Test Framework, on the
// embedded switch.
//
// A script is a list of lines:
//
//	# a comment
//	packet PORT HEX…            a packet comes in
//	expect PORT HEX…            a packet leaves; * is any digit, $ at the end
//	                            means that nothing follows
//	expect PORT                 a packet leaves, whatever is in it
//	no_packet                   nothing leaves any port because of the packet lines
//	                            before, but what expect lines name; queues are
//	                            emptied first
//	add TABLE [PRIORITY] KEY:VALUE… ACTION(ARG:VALUE, …) [= NAME]
//	setdefault TABLE ACTION(ARG:VALUE, …)
//	remove all
//	check_counter NAME(INDEX|$NAME) [packets|bytes OP NUMBER]
//	check_register NAME(INDEX) [lo|hi] OP NUMBER
//	                            of a pair lo is the first field, hi the second
//	ghost run QUEUE:LENGTH      Tofino 2's ghost thread is told of a queue
//	wait
//
// and simple_switch_CLI's commands mirroring_add, mirroring_add_mc,
// mirroring_delete, mirroring_get, mc_mgrp_create, mc_node_create,
// mc_node_update, mc_node_associate, counter_read, counter_write,
// register_read, register_write, register_reset, meter_get_rates,
// meter_set_rates, meter_array_set_rates, act_prof_create_member,
// act_prof_create_group, act_prof_add_member_to_group, table_indirect_add,
// table_indirect_add_with_group, table_indirect_set_default,
// table_indirect_set_default_with_group. Values are numbers in all of them.
//
// Names of tables, actions and keys may be given by their last components. A
// port takes part in a test if a packet or expect line names it: on such a
// port every packet must be expected, in order; what leaves elsewhere is not
// seen. Larger priorities win.
//
// The tests of Tofino's compiler are written in a dialect of their own: an
// action without parameters may stand without brackets, = compares, several
// statements in a line are separated by ; and a line that ends in \ goes on in
// the next. For programs for Tofino an entry that is there already gets the new
// action, values of exact keys are cut to the key's width, a field of which the
// key has slices gives each of them its bits, and a port at which packets are
// expected does not lead round to ingress.
package stf
