// Package sim simulates a network in virtual time: links with a rate and a delay,
// queues, buffers, ECN, PFC, hosts with transports, and faults. The switches run
// either the programs that p4lb generates or the models of their schemes. Runs with
// the same seed give identical results.
//
// A caller sets up and controls a run:
//
//	n, err := sim.New(topology, sim.Options{Seed: 1})
//	n.Switch("l1").Load(program)              // a dataplane.Switch with the deployed entries
//	n.Switch("l1").LoadModel(model, tables)   // or, in all switches, the model of a scheme
//	n.At(5*time.Millisecond, func() { n.StartFlow(sim.FlowSpec{From: "h1", To: "h9", Bytes: 1e6}) })
//	n.Every(time.Millisecond, sample)
//	err = n.Run(time.Second)
//
// # Time
//
// One loop processes a schedule of events (schedule.go). Events are ordered by
// time, and events at the same time by the order in which they were planned. There
// are no goroutines and no clock. The exception is Options.Ties: if events at the
// same time are ordered by place, the network is divided into parts that may run on
// several cores (parts.go). Random numbers come from streams (Stream), one for each
// consumer, so the number of draws of one consumer does not affect others.
//
// # The path of a packet
//
//	Host.Send → NIC → link → Switch.receive → ingress → queue → egress → link → … → Host.receive
//
// Packets wait in ports (port.go) and are sent from there. Hosts and switches both
// have ports. The packets on a link form a list, and only the first of them is in
// the schedule. A busy port has one more event. So the length of the schedule
// depends on the size of the network and not on the number of packets. A hop costs
// one event, or two if the packet has to wait.
//
// Ingress and egress belong to an engine: program.go runs P4, native.go runs a
// model. All other functions of a switch, from queues to PFC, are the same code for
// both (switch.go, buffer.go), so that results of the two engines can be compared.
//
// Payloads are virtual. A P4 switch sees the header bytes that a host would send
// and the number of bytes that follow. A switch with a model sees the addresses and
// ports. Both see queue lengths in the unit of programs: the number of full packets
// that the waiting bytes would fill, rounded up. A Tofino counts cells instead,
// which packets do not share. Its clock shows one second when a run begins.
//
// # Recirculation and the controller
//
// A packet that a program recirculates through a virtual port (AddVirtual) arrives
// after that port's queue, transmission and latency. PacketOut makes a packet
// arrive at the CPU port. OnPacketIn receives the packets that leave through it.
//
// # Conservation of packets
//
// Each packet is either delivered or lost for a Reason. Run compares the counts of
// sent, delivered and lost packets and bytes with the packets in queues and on
// links (ledger.go, run.go).
package sim
