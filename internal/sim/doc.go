// Package sim is a network in virtual time: links with a rate and a length,
// queues of bytes, buffers, ECN, PFC, hosts with transports, faults; and in the
// switches the very programs that p4lb generates, or the models of their
// schemes. The same seed gives the same run, to the last byte.
//
// A run is set up and driven from outside:
//
//	n, err := sim.New(topology, sim.Options{Seed: 1})
//	n.Switch("l1").Load(program)              // a dataplane.Switch, by whoever deploys
//	n.Switch("l1").LoadModel(model, tables)   // or, in all switches, the model of a scheme
//	n.At(5*time.Millisecond, func() { n.StartFlow(sim.FlowSpec{From: "h1", To: "h9", Bytes: 1e6}) })
//	n.Every(time.Millisecond, sample)
//	err = n.Run(time.Second)
//
// # Time
//
// Everything happens in one loop over a schedule of events (schedule.go), ordered
// by time, and at the same time by when they were planned. There are no
// goroutines and no clock, unless Options.Ties has events at the same time ordered
// by where they come from: then parts of the network have a loop each, which may
// run on several cores (parts.go). Random numbers come from streams (Stream), one for
// each consumer, so that one that draws more often changes nothing for others.
//
// # A packet's way
//
//	Host.Send → NIC → link → Switch.receive → ingress → queue → egress → link → … → Host.receive
//
// Ports (port.go) are where packets wait and are sent from; both hosts and
// switches have them. Packets on a link are a list, of which only the first is
// in the schedule; a busy port is in it once. So the schedule is as long as the
// network is large, not as packets are many, and a hop costs one event, or two
// where the packet has to wait.
//
// Ingress and egress are an engine's: program.go runs P4, native.go a model.
// Whatever else a switch does, from queues to PFC, is the same code for both
// (switch.go, buffer.go), and the engines report the same to it: that is
// how they can be held against each other.
//
// Payload is virtual. A P4 switch sees the header bytes that a host would send,
// and how many bytes follow; a native one sees the addresses and ports. Both
// see queues as programs count them, in packets: that many of full length fit
// in the bytes that wait, rounded up. A Tofino counts cells, of which each packet
// fills its own, and has been up for a second when a run begins.
//
// # Round and to the controller
//
// A packet that a program sends to a virtual port (AddVirtual) and recirculates arrives
// after that port's queue, its rate and a latency. PacketOut lets a packet come
// in at the CPU port, OnPacketIn returns the packets that leave through it.
//
// # Nothing is lost
//
// Each packet that begins ends: delivered, or for a Reason. Run compares that
// with the packets in queues and on links, byte by byte (ledger.go, run.go).
package sim
