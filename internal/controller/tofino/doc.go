// Package tofino is the target for switches that run Intel's SDE. It uses BfRt where
// the controller uses P4Runtime.
//
// The controller keeps P4Runtime's data model, and a session translates it. Entries
// and default actions go to the program's tables of the same name. A clone
// session becomes an entry of $mirror.cfg. A multicast group becomes an entry of
// $pre.mgid with a node of $pre.node. A client that is bound to the program is the
// primary. Registers in bulk, low-pass filters, and ports with the rates and lengths
// of their queues have no form in P4Runtime and use interfaces of the target.
package tofino
