package model_test

import (
	"encoding/binary"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/lab/native"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/scheme/model"
)

// Additional set-up of rigs with a Tofino program. They act as its controller: they
// fill the tables that replace arithmetic, set filters and mirror sessions, and write
// non-zero initial cells.

// hardwareOf returns the hardware settings of a manifest.
func hardwareOf(m manifest.Manifest) *model.Hardware {
	if !m.Arch.Hardware() {
		return nil
	}
	m.Tables = bakedOf(m)
	return native.HardwareOf(&m)
}

// bakedOf returns the tables with values in the manifest. If only the controller knows
// the values, because the paper prints no polynomial, they are arbitrary.
func bakedOf(m manifest.Manifest) []manifest.Table {
	var list []manifest.Table
	for _, t := range m.Tables {
		if t.Baked == nil {
			continue
		}
		b := *t.Baked
		for len(b.Weights) == 0 && len(b.Values) < 512 {
			b.Values = append(b.Values, len(b.Values)*7%4)
		}
		t.Baked = &b
		list = append(list, t)
	}
	return list
}

// hardwareClock is the time in ns, at any point within a tick. Filters use this exact
// time, models do not.
func (r *rig) hardwareClock() time.Duration {
	ns := time.Duration(r.now) << 10
	if !r.filtered() {
		ns += time.Duration(uint32(r.now)*2654435761) >> 22
	}
	return ns
}

// filtered reports whether the program measures utilisations.
func (r *rig) filtered() bool {
	return slices.ContainsFunc(r.man.Tasks, func(t manifest.Task) bool { return len(t.Filters) > 0 })
}

// firstGroup is the number of the first group. On hardware, group 0 is what
// frames without a group look at.
func (r *rig) firstGroup() int {
	if r.hw != nil {
		return 1
	}
	return 0
}

// equip configures the rest of the manifest.
func (r *rig) equip() {
	r.t.Helper()
	r.untouched = map[string]uint64{}
	for _, reg := range r.man.Registers {
		if reg.Index == "group" {
			cells, err := r.sw.Registers().Cells(reg.Name, nil)
			if err != nil {
				r.t.Fatal(err)
			}
			r.untouched[reg.Name] = cells[len(cells)-1]
		}
		for _, c := range reg.Initial {
			if c.Index < 0 {
				continue // the program contains these entries
			}
			if err := r.sw.Registers().Write(reg.Name, c.Index, big.NewInt(c.Value)); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	for _, t := range bakedOf(r.man) {
		r.bake(t.Name, t.Baked)
	}
	for _, task := range r.man.Tasks {
		switch task.Kind {
		case manifest.RateFilter:
			r.setFilter("LbEgress."+task.Filters[0], 512, r.rate())
		case manifest.SampleFilter:
			tau := time.Duration(7.5 * float64(r.parameter("tpath")))
			r.setFilter("LbIngress."+task.Filters[0], 16384, dataplane.FilterSpec{Gain: tau, Decay: tau})
		}
	}
	if r.has("LbIngress.self") {
		for port := range uint64(64) {
			r.add("LbIngress.self", exact(port), "LbIngress.sign_probe", map[string]uint64{"id": here, "in_port": port})
		}
	}
	if r.has("LbIngress.upstream") {
		for port := range uint64(64) {
			r.add("LbIngress.upstream", exact(port), "LbIngress.warn", map[string]uint64{"session": 2 + port})
		}
	}
}

// bake fills a table with precomputed values.
func (r *rig) bake(table string, b *manifest.Baked) {
	r.t.Helper()
	key := make([]int, len(b.Keys))
	action := table[:strings.LastIndexByte(table, '.')+1] + b.Action
	for i := 0; ; i++ {
		args := map[string]uint64{}
		if b.Values != nil {
			args["level"] = uint64(b.Values[i])
		} else {
			r.ends(args, b.Ends(key))
		}
		var match []uint64
		for _, k := range key {
			match = append(match, uint64(k))
		}
		r.add(table, exact(match...), action, args)
		k := 0
		for ; k < len(key); k++ { // the first counts up fastest
			if key[k]++; key[k] < b.Keys[k].Values {
				break
			}
			key[k] = 0
		}
		if k == len(key) {
			return
		}
	}
}

func (r *rig) ends(args map[string]uint64, ends []int) {
	for i, end := range ends {
		args["end_"+itoa(i)] = uint64(end)
	}
}

// parameter returns a parameter of the manifest.
func (r *rig) parameter(name string) int64 {
	r.t.Helper()
	for _, v := range r.man.Parameters {
		if v.Name == name {
			return v.Number
		}
	}
	r.t.Fatalf("there is no parameter %s", name)
	return 0
}

// rate returns the scale with which a full link reads 256.
func (r *rig) rate() dataplane.FilterSpec {
	link, window := float64(r.parameter("link"))/8e9, 1000*math.Exp2(float64(r.parameter("window")))
	shift := int(math.Max(0, math.Round(math.Log2(link*window/256))))
	gain := time.Duration(math.Round(256 * math.Exp2(float64(shift)) / link))
	return dataplane.FilterSpec{Rate: true, Gain: gain, Decay: gain, Shift: shift}
}

// setFilter sets all cells of a filter.
func (r *rig) setFilter(name string, cells int, spec dataplane.FilterSpec) {
	r.t.Helper()
	for i := range cells {
		if err := r.sw.Filters().Set(name, i, spec); err != nil {
			r.t.Fatal(err)
		}
	}
}

// fillGroup adds the hardware's entries of a group: one for each possible slot.
func (r *rig) fillGroup(gid int, g model.Group, args map[string]uint64) {
	r.t.Helper()
	n := len(g.Ports)
	for slot := range r.man.Paths {
		port := g.Ports[slot%n]
		r.add("LbIngress.member", exact(uint64(gid), uint64(slot)), "LbIngress.forward", map[string]uint64{"port": uint64(port), "dmac": uint64(0x100 + slot), "smac": uint64(port)})
		for _, drawn := range []string{"_a", "_b", "_m"} {
			if r.has("LbIngress.path" + drawn) {
				to := map[string]uint64{"port": uint64(port), "queue": uint64(dataplane.QueueNumber(uint32(port), 0))}
				r.add("LbIngress.path"+drawn, exact(uint64(gid), uint64(slot)), "LbIngress.set_"+r.pathKey()+drawn, to)
			}
		}
		args["port_"+itoa(slot)] = 511
		args["queue_"+itoa(slot)] = 2047
	}
	if !r.has("LbIngress.grids") || r.man.Signal != "weights" {
		return
	}
	weights := make([]int, r.man.Paths)
	for slot, w := range g.Weights {
		weights[slot] = int(w)
	}
	b := manifest.Baked{Weights: weights, Total: 256}
	levels := make([]int, r.man.Paths)
	for i := range levels {
		levels[i] = i
	}
	ends := map[string]uint64{}
	r.ends(ends, b.Ends(levels))
	r.add("LbIngress.grids", exact(uint64(gid)), "LbIngress.set_ends", ends)
}

// pathKey returns the key of the table with the queues of paths.
func (r *rig) pathKey() string {
	if r.man.StatePath == manifest.Ghost {
		return "queue"
	}
	return "port"
}

// thrownAway removes draws that the model did not request, because hardware draws
// before it knows whether the number is needed. The mirror copy then comes first among
// the packets that leave ingress.
func (r *rig) thrownAway(out []dataplane.Outcome, in int) []dataplane.Outcome {
	r.tape = nil
	if len(out) == 2 && out[0].Port != uint32(in) {
		out[0], out[1] = out[1], out[0]
	}
	return out
}

// nobodys reports whether a cell may differ: it belongs to port, group or path 0,
// which frames without one use; and CONGA also expires paths that groups do not have.
func (r *rig) nobodys(reg manifest.Register, i int, got, want uint64) bool {
	if r.hw == nil {
		return false
	}
	switch {
	case reg.Index == "port" || reg.Index == "group":
		if i == 0 {
			return true
		}
	case reg.Index == "path" && i < 16:
		return true
	}
	return strings.HasSuffix(reg.Name, ".to_leaf") && r.man.Signal == "piggyback" &&
		uint32(got) == uint32(want) && got>>32 == 0
}

func itoa(i int) string { return string([]byte{'0' + byte(i/10), '0' + byte(i%10)}[1-min(1, i/10):]) }

// hardwareProbe completes a probe of HULA or DHLB.
func (r *rig) hardwareProbe(b []byte, p model.Probe) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(p.Origin))
	if r.man.Signal == "utilisation" {
		return binary.BigEndian.AppendUint16(b, uint16(p.Util))
	}
	b = binary.BigEndian.AppendUint16(b, 7)
	b = binary.BigEndian.AppendUint32(b, uint32(p.Degree))
	return append(b, p.Hop, 9, 0, 0, 0, 0)
}

// compareProbe compares a forwarded probe.
func (r *rig) compareProbe(got []byte, want model.Probe) {
	r.t.Helper()
	if r.man.Signal == "utilisation" && uint32(binary.BigEndian.Uint16(got[2:])) != want.Util ||
		r.man.Signal == "degree" && (binary.BigEndian.Uint32(got[4:]) != uint32(want.Degree) || got[8] != want.Hop) {
		r.t.Fatalf("a probe goes on as % x, the model wants %+v", got, want)
	}
}

// someUtil returns a random utilisation for a probe.
func (tr *traffic) someUtil() uint32 {
	if tr.hw != nil {
		return uint32(tr.rnd.IntN(8) * 40)
	}
	return uint32(tr.some(400) * 100)
}

// units returns a time of n µs, or n ticks.
func (r *rig) units(n int) model.Time {
	if r.hw != nil {
		return model.Time(n) << 16
	}
	return model.Time(n)
}

// close records in all copies of RLB*'s warnings that the switch behind a port has
// failed, or works again.
func (r *rig) close(port int, failed bool) {
	r.t.Helper()
	r.model.SetFaulty(port, failed)
	for _, reg := range r.man.Registers {
		if strings.HasSuffix(reg.Name, ".until") {
			v := new(big.Int).SetUint64(r.model.Cells(reg.Name)[port])
			if err := r.sw.Registers().Write(reg.Name, port, v); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// rezero sets RLB's counters to 0, regardless of packets in the switch.
func (r *rig) rezero() {
	r.t.Helper()
	for _, register := range []string{"ig_in", "ig_out", "eg_out"} {
		for port := hostPort; port < hostPort+8; port++ {
			r.model.SetCell(register, port, 0)
			if err := r.sw.Registers().Write(register, port, new(big.Int)); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// compareWarning compares a CNM behind the Ethernet header, in front of the rest of
// the packet.
func (r *rig) compareWarning(b []byte, p model.Packet) {
	r.t.Helper()
	came, gone := r.model.Cells("ig_in")[p.In], r.model.Cells("ig_out")[p.In]
	q := came - min(came, gone)
	if len(b) < 21 || binary.BigEndian.Uint16(b[12:]) != 0x88B5 || b[14] != 1 ||
		int(binary.BigEndian.Uint16(b[15:])) != p.In || uint64(binary.BigEndian.Uint32(b[17:])) != q {
		r.t.Fatalf("the CNM at %d is % x, the model wants one for port %d and %d bytes", r.now, b, p.In, q)
	}
}

// passProbe sends a probe along a path. RLB counts none of its bytes, and knows its input
// port unless packets recirculate.
func (r *rig) passProbe(in, port int) {
	r.t.Helper()
	r.probed++
	r.add("LbIngress.leaf", exact(1), "LbIngress.set_port", map[string]uint64{"port": uint64(port)})
	b := append(make([]byte, 12), 0x88, 0xB7, 0, 3, 0, 1, 2, 0, 0, 0, 0, 0)
	pkt := r.sw.Receive(uint32(in), b, r.clock())
	r.came = pkt.Len()
	r.out = r.sw.Ingress(pkt, r.clock(), r.out[:0])
	r.tape = nil
	if len(r.out) != 1 || int(r.out[0].Port) != port {
		r.t.Fatalf("a probe for port %d becomes %+v", port, r.out)
	}
	p := model.Packet{Group: -1, Len: 14, In: in}
	if slices.ContainsFunc(r.man.Headers, func(h manifest.Header) bool { return h.Name == "again" }) {
		p.In = 0
	}
	r.enqueue(r.out[0], p)
}
