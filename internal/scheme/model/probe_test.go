package model_test

import (
	"bytes"
	"encoding/binary"
	"math/big"
	"slices"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/scheme/model"
)

// here is the number of the switch that is tested, as a leaf.
const here = 200

// flood delivers a probe of HULA or DHLB and compares the forwarded one.
func (r *rig) flood(p model.Probe, port int) {
	r.t.Helper()
	r.probed++
	b := append(make([]byte, 12), 0x88, 0xB6)
	hula := r.man.Signal == "utilisation"
	if r.hw != nil {
		b = r.hardwareProbe(b, p)
	} else if hula {
		b = binary.BigEndian.AppendUint16(b, uint16(p.Origin))
		b = binary.BigEndian.AppendUint32(b, p.Util)
	} else {
		b = append(b, byte(p.Origin), byte(p.Seq>>8), byte(p.Seq), p.Degree, p.Hop, 9, 0, 0, 0, 0)
	}
	r.out = r.sw.Ingress(r.sw.Receive(uint32(port), b, r.clock()), r.clock(), r.out[:0])
	r.tape = nil // what hardware draws for probes too
	want, ok := r.model.Probe(p, port, r.wrapped())
	if r.man.Role == "tor" || r.man.Role == "leaf" || !ok {
		if len(r.out) != 0 {
			r.t.Fatalf("a probe at %d goes on: %+v", r.now, r.out)
		}
		return
	}
	if len(r.out) == 0 {
		r.t.Fatalf("a probe of %d from port %d ends", p.Origin, port)
	}
	for _, o := range slices.Clone(r.out) {
		r.sw.Enqueued(o.Packet, 0, r.clock())
		// The measurement counts a probe like any packet.
		d := model.Departure{Port: int(o.Port), Len: len(b), Packet: &model.Packet{Group: -1}}
		r.queues[int(o.Port)].items = append([]*item{}, r.queues[int(o.Port)].items...)
		out := r.sw.Egress(o.Packet, 0, r.clock(), nil)
		report, due := r.model.Egress(d, r.wrapped())
		for _, e := range out {
			if e.Kind == dataplane.ToQueue {
				due = !due
				r.sw.Enqueued(e.Packet, 0, r.clock())
				r.reports = append([]*item{{p: e.Packet, port: int(e.Port), report: report, due: r.now}}, r.reports...)
				continue
			}
			got := e.Packet.Bytes()[14:]
			if r.hw != nil {
				r.compareProbe(got, want)
			} else if hula && binary.BigEndian.Uint32(got[2:]) != want.Util || !hula && (got[3] != want.Degree || got[4] != want.Hop) {
				r.t.Fatalf("a probe goes on as % x, the model wants %+v", got, want)
			}
			r.sw.Free(e.Packet)
		}
		if due {
			r.t.Fatalf("the probe that leaves port %d at %d makes the report of one side alone", o.Port, r.now)
		}
	}
}

// learnPath returns a probe of PDLB, Hermes or RLB along a path.
func (r *rig) learnPath(n model.PathNews) {
	r.t.Helper()
	r.probed++
	if r.has("LbIngress.leaf") {
		r.add("LbIngress.leaf", exact(here), "LbIngress.at_home", map[string]uint64{"id": here})
	}
	flags := byte(1)
	if n.Marked {
		flags |= 2
	}
	b := append(make([]byte, 12), 0x88, 0xB7)
	if r.hw != nil {
		b = append(b, 0, byte(n.Group), 0, here, byte(n.Slot), flags)
		b = binary.BigEndian.AppendUint32(b, uint32(r.now)-n.RTT)
	} else {
		b = append(b, byte(n.Group>>4), byte(n.Group<<4), here, byte(n.Slot)<<4|flags) // 12 bits for each leaf
		b = append(b, bytes6(model.Time(0).After(r.now-model.Time(n.RTT)))...)
	}
	r.out = r.sw.Ingress(r.sw.Receive(hostPort, b, r.clock()), r.clock(), r.out[:0])
	if len(r.out) != 0 {
		r.t.Fatalf("a probe that has come back at %d goes on: %+v", r.now, r.out)
	}
	r.tape = nil
	r.model.LearnPath(n, r.wrapped())
}

// heed delivers a CNM from the switch behind a port. With relays it may be forwarded to
// one more switch; heed returns the port for it, or -1.
func (r *rig) heed(port int, n model.Notice, hold model.Time) (to int) {
	r.t.Helper()
	b := append(make([]byte, 12), 0x88, 0xB5, byte(n), 0, 1, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(hold))
	hops := 0
	if r.relays() {
		hops = 1
		b = append(b, byte(hops))
	}
	if r.hw != nil {
		b = append(append(make([]byte, 12), 0x88, 0xB5, 1, 0, 7), 0, 0, 0, 9)
	}
	r.out = r.sw.Ingress(r.sw.Receive(uint32(port), b, r.clock()), r.clock(), r.out[:0])
	r.tape = nil
	r.model.Heed(port, n, hold, r.wrapped())
	to, ok := r.model.Relay(port, n, hops)
	if !ok {
		to = -1
	}
	if (len(r.out) == 1) != ok || ok && int(r.out[0].Port) != to {
		r.t.Fatalf("a CNM from port %d at %d becomes %+v, the model relays it: %v, to port %d", port, r.now, r.out, ok, to)
	}
	if ok {
		b[len(b)-1]-- // it has one switch less to go to
		r.sw.Enqueued(r.out[0].Packet, 0, r.clock())
		out := r.sw.Egress(r.out[0].Packet, 0, r.clock(), nil)
		if len(out) != 1 || !bytes.Equal(out[0].Packet.Bytes(), b) {
			r.t.Fatalf("a relayed CNM at %d leaves as %+v, want % x", r.now, out, b)
		}
		r.sw.Free(out[0].Packet)
	}
	return to
}

// relays reports whether warnings go on to more switches.
func (r *rig) relays() bool {
	for _, v := range r.man.Parameters {
		if v.Name == "relay" {
			return v.Number > 0
		}
	}
	return false
}

// write is the controller's.
func (r *rig) write(register string, index int, v uint64) {
	r.t.Helper()
	if err := r.sw.Registers().Write(register, index, new(big.Int).SetUint64(v)); err != nil {
		r.t.Fatal(err)
	}
	switch register {
	case "qd_S":
		r.model.SetThreshold(uint32(v))
	case "pd_gran":
		r.model.SetGranularity(index, uint16(v))
	case "nrc":
		r.model.SetRounds(uint16(v))
	case "faulty":
		r.model.SetFaulty(index, v == 1)
	default:
		r.t.Fatalf("no controller writes %s", register)
	}
}
