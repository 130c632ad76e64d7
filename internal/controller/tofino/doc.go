// Package tofino is the target of switches that run Intel's SDE: it speaks BfRt
// to them where the controller speaks P4Runtime.
//
// The controller keeps to P4Runtime's terms: a session translates. Table entries
// and their default actions are those of the program's tables by name; a clone
// session is one of $mirror.cfg, a multicast group one of $pre.mgid with a node of
// $pre.node; that a client is bound to the program is what being primary is to
// P4Runtime. What that has no words for goes by the interfaces of the target:
// registers in bulk, low-pass filters, and ports with the rates and lengths of
// their queues.
package tofino
