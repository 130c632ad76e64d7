package model_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/scheme/model"
)

// A rig runs a generated program on the embedded switch next to the model of its
// scheme. Both receive the same events. The random numbers of the program are recorded
// and given to the model, which must request them in the same order and from the same
// ranges.
type rig struct {
	t     testing.TB
	sw    *dataplane.Switch
	model *model.Switch
	man   manifest.Manifest
	hw    *model.Hardware // nil: v1model

	untouched map[string]uint64 // cells of registers that do not start at 0
	tables    map[string]bool   // whether a table exists, for tables looked up before

	rnd    *rand.Rand
	coarse bool   // all times are multiples of 10, so that limits are met exactly
	tape   []draw // numbers drawn by the program and not yet by the model

	now     model.Time // in µs, or in the ticks of hardware
	groups  []model.Group
	queues  map[int]*queue
	inOrder []*queue // by port
	reports []*item  // on their way to ingress
	rounds  []*item  // packets that come round again
	out     []dataplane.Outcome
	bytes   []byte // of the last packet that was made

	packets, drops, learnt int
	again, notices, probed int
	came                   int            // bytes of the packet in ingress
	reportLen              int            // of the last report on its way round
	service                map[int]uint32 // by port, in µs/65536
	taken                  map[[2]int]int // by group and slot
}

type draw struct{ lo, hi, v uint64 }

// A queue is one of an egress port.
type queue struct {
	items    []*item
	capacity int
	service  model.Time // per packet; 0: the port is dead
	free     model.Time // when the next packet may leave
}

// depth returns the length of the queue in packets or cells.
func (q *queue) depth() (n int) {
	for _, it := range q.items {
		n += it.cells
	}
	return n
}

// cells returns the queue space of a packet.
func (r *rig) cells(bytes int) int {
	if r.hw == nil {
		return 1
	}
	return (bytes + r.hw.Cell - 1) / r.hw.Cell
}

// An item is a packet in a queue with the model's result.
type item struct {
	p      *dataplane.Packet
	packet model.Packet
	cells  int // of the queue
	came   int // bytes with which it came into ingress
	met    int
	port   int
	report model.Report
	due    model.Time
	queued model.Time
}

// A scheme is the description of a rig.
type scheme struct {
	name   string
	params codegen.Params
}

// A program is the shared part of a scheme's rigs.
type program struct {
	manifest manifest.Manifest
	config   *bmv2.Config
}

// programs caches programs, because each scheme is tested in several ways.
var programs sync.Map

// program generates and compiles the program of a scheme.
func (sc scheme) program() (program, error) {
	key, params := sc.name, sc.params
	if params.Coeffs != nil {
		key += fmt.Sprint(*params.Coeffs)
		params.Coeffs = nil
	}
	key += fmt.Sprint(params)
	if made, ok := programs.Load(key); ok {
		return made.(program), nil
	}
	row, err := codegen.Parse(sc.name)
	if err != nil {
		return program{}, err
	}
	text, err := codegen.Generate(row, sc.params)
	if err != nil {
		return program{}, err
	}
	compiled, err := p4.CompileText(sc.name+".p4", []byte(text.P4), p4.Options{})
	if err != nil {
		return program{}, err
	}
	made := program{text.Manifest, compiled.Config}
	programs.Store(key, made)
	return made, nil
}

// newRig starts the program of a scheme and its model.
func newRig(t testing.TB, sc scheme, seed uint64) *rig {
	t.Helper()
	prog, err := sc.program()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, man: prog.manifest, hw: hardwareOf(prog.manifest), rnd: rand.New(rand.NewPCG(seed, 7)), tables: map[string]bool{}, queues: map[int]*queue{}, service: map[int]uint32{}, taken: map[[2]int]int{}}
	if r.sw, err = dataplane.New(prog.config, dataplane.Options{Random: r.draw}); err != nil {
		t.Fatal(err)
	}
	r.model = newModel(t, prog.manifest, sc.params, r.replay)
	if r.hw != nil {
		r.equip()
	}
	r.mirror()
	return r
}

// mirror sets up the clone sessions that the manifest asks for.
func (r *rig) mirror() {
	r.t.Helper()
	for _, s := range r.man.CloneSessions {
		ports := map[int]int{s.Session: s.Port}
		if s.PerPort {
			ports = map[int]int{}
			for port := range 512 {
				ports[s.Session+port] = port
			}
		}
		for session, port := range ports {
			if err := r.sw.Mirrors().Set(uint32(session), dataplane.MirrorSession{Port: uint32(port), HasPort: true}); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// newModel returns the model that a manifest describes.
func newModel(t testing.TB, man manifest.Manifest, p codegen.Params, random func(lo, hi uint64) uint64) *model.Switch {
	t.Helper()
	cfg := model.Config{
		Granularity: man.Granularity, Signal: man.Signal, Choice: man.Choice, Guard: man.Guard,
		Paths: man.Paths, Edge: man.Role == "leaf" || man.Role == "tor", Direct: man.StatePath == "shared", Ghost: man.StatePath == "ghost", Random: random,
	}
	cfg.Hardware = hardwareOf(man)
	if cfg.Poly = p.Coeffs; cfg.Poly == nil && man.Signal == "fitted" && !p.Runtime {
		for _, v := range man.Parameters {
			if v.Name == "degree" {
				if poly, ok := fitting.Paper(int(v.Number), p.Printed); ok { // else the controller gives one
					for _, t := range man.Parameters {
						if t.Name == "tau" {
							poly = poly.WithTau(t.Number / 1000)
						}
					}
					cfg.Poly = &poly
				}
			}
		}
	}
	for _, v := range man.Parameters {
		if err := cfg.Set(v.Name, v.Number); err != nil {
			t.Fatal(err)
		}
	}
	m, err := model.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// some returns a random number from 0 to n-1; coarse ones are multiples of a step.
func (r *rig) some(n int) int {
	v := r.rnd.IntN(n)
	if r.coarse {
		v -= v % 10
	}
	return v
}

// draw is the program's random source.
func (r *rig) draw(lo, hi uint64) uint64 {
	v := lo + r.rnd.Uint64N(hi-lo+1)
	r.tape = append(r.tape, draw{lo, hi, v})
	return v
}

// replay is the model's.
func (r *rig) replay(lo, hi uint64) uint64 {
	if len(r.tape) == 0 {
		r.t.Fatalf("packet %d: the model draws from %d..%d, the program does not", r.packets, lo, hi)
	}
	d := r.tape[0]
	r.tape = r.tape[1:]
	if d.lo != lo || d.hi != hi {
		r.t.Fatalf("packet %d: the model draws from %d..%d, the program from %d..%d", r.packets, lo, hi, d.lo, d.hi)
	}
	return d.v
}

// clock is the time of the embedded switch; it continues where the 48 bits of the
// program's clock wrap.
func (r *rig) clock() time.Duration {
	if r.hw != nil {
		return r.hardwareClock()
	}
	return time.Duration(r.now) * time.Microsecond
}

// wrapped is the time that the program reads.
func (r *rig) wrapped() model.Time { return r.hw.Clock(r.clock().Nanoseconds()) }

// add adds an entry to a table, with arguments by name; missing ones are 0.
func (r *rig) add(table string, match []dataplane.Match, action string, args map[string]uint64) {
	r.t.Helper()
	match = r.whole(table, match)
	e := dataplane.Entry{Match: match, Target: dataplane.Target{Action: r.call(action, args)}}
	if h, err := r.sw.Tables().Find(table, match, 0); err == nil {
		if err := r.sw.Tables().Modify(table, h, e.Target); err != nil {
			r.t.Fatal(err)
		}
		return
	}
	if _, err := r.sw.Tables().Add(table, e); err != nil {
		r.t.Fatal(err)
	}
}

// whole completes matches of whole values for fields that could match parts of them.
func (r *rig) whole(table string, match []dataplane.Match) []dataplane.Match {
	r.t.Helper()
	key, _, err := r.sw.Tables().Key(table)
	if err != nil {
		r.t.Fatal(err)
	}
	for i, f := range key {
		switch {
		case f.Kind == dataplane.MatchLPM && match[i].PrefixLen == 0:
			match[i].PrefixLen = f.Width
		case f.Kind == dataplane.MatchTernary && match[i].Mask == nil:
			match[i].Mask = number(1<<f.Width - 1)
		}
	}
	return match
}

func (r *rig) call(name string, args map[string]uint64) dataplane.ActionCall {
	for _, a := range r.sw.Config().Actions {
		if a.Name != name {
			continue
		}
		c := dataplane.ActionCall{Name: name}
		for _, d := range a.RuntimeData {
			c.Params = append(c.Params, number(args[d.Name]))
		}
		return c
	}
	r.t.Fatalf("the program has no action %s", name)
	return dataplane.ActionCall{}
}

func number(v uint64) []byte {
	b := binary.BigEndian.AppendUint64(nil, v)
	for len(b) > 1 && b[0] == 0 {
		b = b[1:]
	}
	return b
}

func exact(values ...uint64) []dataplane.Match {
	list := make([]dataplane.Match, len(values))
	for i, v := range values {
		list[i].Value = number(v)
	}
	return list
}

// has reports whether the program has a table. Traffic calls it for each packet.
func (r *rig) has(table string) bool {
	known, ok := r.tables[table]
	if !ok {
		_, _, err := r.sw.Tables().Key(table)
		known = err == nil
		r.tables[table] = known
	}
	return known
}

// route sends a destination straight to a port.
func (r *rig) route(dst uint32, length int, args map[string]uint64) {
	r.t.Helper()
	r.add("LbIngress.ipv4_route", []dataplane.Match{{Value: number(uint64(dst)), PrefixLen: length}}, "LbIngress.set_port", args)
}

// localNet returns the destination of packets to a port.
func localNet(port int) uint32 { return 11<<24 | uint32(port) }

// groupNet returns the destination of packets to a group.
func groupNet(gid int) uint32 { return 10<<24 | uint32(gid)<<8 }

// setGroup gives a group its paths, on both sides.
func (r *rig) setGroup(gid int, g model.Group) {
	r.t.Helper()
	for gid >= len(r.groups) {
		r.groups = append(r.groups, model.Group{})
	}
	r.groups[gid] = g
	r.model.SetGroup(gid, g)
	dst := []dataplane.Match{{Value: number(uint64(groupNet(gid))), PrefixLen: 24}}
	r.add("LbIngress.ipv4_route", dst, "LbIngress.set_group", map[string]uint64{"gid": uint64(gid), "n": uint64(len(g.Ports))})
	args := map[string]uint64{}
	if r.hw != nil {
		r.fillGroup(gid, g, args)
	}
	for slot, port := range g.Ports {
		r.add("LbIngress.member", exact(uint64(gid), uint64(slot)), "LbIngress.forward",
			map[string]uint64{"port": uint64(port), "dmac": uint64(0x100 + slot), "smac": uint64(port)})
		args[fmt.Sprint("port_", slot)] = uint64(port)
		args[fmt.Sprint("queue_", slot)] = uint64(dataplane.QueueNumber(uint32(port), 0))
		args[fmt.Sprint("svc_", slot)] = uint64(r.service[port])
		if g.Weights != nil {
			args[fmt.Sprint("weight_", slot)] = uint64(g.Weights[slot])
		}
	}
	for _, port := range g.Ports {
		if r.has("LbIngress.arrival") {
			slot := slices.Index(g.Ports, port)
			r.add("LbIngress.arrival", exact(uint64(gid), uint64(port)), "LbIngress.set_arrival", map[string]uint64{"slot": uint64(slot), "onward": uint64(1000 + port)})
		}
	}
	if r.has("LbIngress.leaf_of") {
		r.add("LbIngress.leaf_of", []dataplane.Match{{Value: number(uint64(groupNet(gid))), PrefixLen: 24}}, "LbIngress.set_leaf", map[string]uint64{"leaf": uint64(gid)})
	}
	if r.has("LbIngress.candidates") {
		r.add("LbIngress.candidates", exact(uint64(gid)), "LbIngress.set_candidates", args)
	}
}

// setPort gives a port its queue, on both sides.
func (r *rig) setPort(port, capacity int, service model.Time) {
	r.t.Helper()
	r.queues[port] = &queue{capacity: capacity, service: service}
	r.inOrder = r.inOrder[:0]
	for _, port := range slices.Sorted(maps.Keys(r.queues)) {
		r.inOrder = append(r.inOrder, r.queues[port])
	}
	r.service[port] = uint32(service<<16) + uint32(port)*997
	r.model.SetPort(port, model.Port{Capacity: capacity, Service: r.service[port]})
	r.route(localNet(port), 32, map[string]uint64{"port": uint64(port)})
	if r.has("LbEgress.port_cfg") {
		r.add("LbEgress.port_cfg", exact(uint64(port)), "LbEgress.set_port_cfg", map[string]uint64{"rl": uint64(255 << 16 / (capacity - 1))})
	}
}

// send delivers a packet and compares the results. It returns the
// path taken, -1 if the packet has but one way or recirculates again.
func (r *rig) send(p model.Packet) int {
	r.packets++
	return r.decide(r.sw.Receive(uint32(p.In), r.frame(p), r.clock()), p)
}

// decide passes a packet through ingress, for the first time or again.
func (r *rig) decide(pkt *dataplane.Packet, p model.Packet) int {
	r.came = pkt.Len()
	out := r.sw.Ingress(pkt, r.clock(), r.out[:0])
	r.out = out
	want := r.model.Ingress(&p, r.wrapped())
	if r.hw != nil {
		out = r.thrownAway(out, p.In)
	}
	if len(r.tape) != 0 {
		r.t.Fatalf("packet %d: the program draws %v, the model nothing", r.packets, r.tape)
	}
	if len(out) == 2 && out[0].Port == uint32(p.In) && want.Notice != model.None {
		r.compareNotice(out[0], p, want.Notice)
		out, want.Notice = out[1:], model.None
	}
	port := want.Port
	switch {
	case want.Again:
		port = portAgain
		if r.hw != nil {
			port = r.man.VirtualPorts[0].Port
		}
	case p.Group < 0:
		port = int(p.Flow.Dst & 0xFF)
	}
	if len(out) != 1 || out[0].Kind != dataplane.ToQueue || want.Notice != model.None {
		r.t.Fatalf("packet %d at %d: the program makes %v of it, the model sends it to port %d with notice %d", r.packets, r.now, out, port, want.Notice)
	}
	if got := int(out[0].Port); got != port {
		r.t.Fatalf("packet %d at %d: group %d slot %d: the program takes port %d, the model %d of %v",
			r.packets, r.now, p.Group, want.Slot, got, port, r.groups[max(0, p.Group)].Ports)
	}
	if want.Again {
		r.again++
		r.sw.Enqueued(out[0].Packet, 0, r.clock())
		r.rounds = append(r.rounds, &item{p: out[0].Packet, packet: p, port: port, queued: r.wrapped(), due: r.now + 10 + model.Time(r.some(30))})
		slices.SortStableFunc(r.rounds, func(a, b *item) int { return int(a.due) - int(b.due) })
		return -1
	}
	if want.Slot >= 0 {
		r.taken[[2]int{p.Group, want.Slot}]++
	}
	r.enqueue(out[0], p)
	return want.Slot
}

// portAgain is where packets recirculate (the manifest's virtual port).
const portAgain = 501

// again recirculates a packet.
func (r *rig) comeAgain(it *item) int {
	r.out = r.sw.Egress(it.p, 0, r.clock(), r.out[:0])
	if len(r.out) != 1 || r.out[0].Kind != dataplane.ToIngress {
		r.t.Fatalf("a packet that comes round at %d becomes %+v", r.now, r.out)
	}
	r.model.Recirculated(model.Departure{Port: it.port, Packet: &it.packet, Queued: it.queued})
	return r.decide(r.out[0].Packet, it.packet)
}

func (r *rig) enqueue(o dataplane.Outcome, p model.Packet) {
	q := r.queues[int(o.Port)]
	if len(q.items) >= q.capacity {
		r.drops++
		r.sw.Free(o.Packet)
		return
	}
	met := q.depth()
	r.sw.Enqueued(o.Packet, met, r.clock())
	if len(q.items) == 0 {
		q.free = max(q.free, r.now+q.service)
	}
	q.items = append(q.items, &item{p: o.Packet, packet: p, cells: r.cells(o.Packet.Len()), came: r.came, met: met, port: int(o.Port), queued: r.wrapped()})
	r.model.Enqueued(int(o.Port), q.depth())
}

// runUntil processes all events up to a time, in order.
func (r *rig) runUntil(end model.Time) {
	for {
		var next *queue
		at := end + 1
		for _, q := range r.inOrder {
			if len(q.items) > 0 && q.service > 0 && q.free < at {
				next, at = q, q.free
			}
		}
		if len(r.reports) > 0 && r.reports[0].due <= at && r.reports[0].due <= end {
			it := r.reports[0]
			r.reports = r.reports[1:]
			r.now = max(r.now, it.due)
			r.comeRound(it)
			continue
		}
		if len(r.rounds) > 0 && r.rounds[0].due <= at && r.rounds[0].due <= end {
			it := r.rounds[0]
			r.rounds = r.rounds[1:]
			r.now = max(r.now, it.due)
			r.comeAgain(it)
			continue
		}
		if next == nil {
			break
		}
		r.now = max(r.now, at)
		r.depart(next)
	}
	r.now = max(r.now, end)
}

// depart removes the first packet of a queue and compares the report.
func (r *rig) depart(q *queue) {
	it := q.items[0]
	q.items = q.items[1:]
	q.free = r.now + q.service
	departure := model.Departure{Port: it.port, Met: it.met, Left: q.depth(), Len: it.p.Len(), Packet: &it.packet, Queued: it.queued}
	if r.hw != nil {
		departure.Len = it.came
	}
	r.out = r.sw.Egress(it.p, departure.Left, r.clock(), r.out[:0])
	report, due := r.model.Egress(departure, r.wrapped())
	cloned := false
	for _, o := range r.out {
		switch {
		case o.Kind == dataplane.ToPort && int(o.Port) == it.port:
			if it.packet.Flow.Protocol != 0 { // no probe
				r.compareOverlay(o.Packet.Bytes(), it.packet)
			}
			r.sw.Free(o.Packet)
		case o.Kind == dataplane.ToQueue && !cloned:
			cloned = true
			r.sw.Enqueued(o.Packet, 0, r.clock())
			r.reports = append(r.reports, &item{p: o.Packet, port: int(o.Port), report: report, due: r.now + model.Time(r.some(40))})
		default:
			r.t.Fatalf("egress of port %d at %d makes %+v", it.port, r.now, r.out)
		}
	}
	if cloned != due {
		r.t.Fatalf("egress of port %d at %d: the program reports: %v, the model: %v", it.port, r.now, cloned, due)
	}
	slices.SortStableFunc(r.reports, func(a, b *item) int { return int(a.due) - int(b.due) })
}

// comeRound passes a report through its virtual port and ingress.
func (r *rig) comeRound(it *item) {
	r.out = r.sw.Egress(it.p, 0, r.clock(), r.out[:0])
	if len(r.out) != 1 || r.out[0].Kind != dataplane.ToIngress {
		r.t.Fatalf("a report at %d becomes %+v", r.now, r.out)
	}
	r.reportLen = r.out[0].Packet.Len()
	r.out = r.sw.Ingress(r.out[0].Packet, r.clock(), r.out[:0])
	if len(r.out) != 0 {
		r.t.Fatalf("a report at %d leaves ingress: %+v", r.now, r.out)
	}
	r.tape = nil // what hardware draws for reports too
	r.model.Learn(it.report, r.wrapped())
	r.learnt++
}

// compareRegisters compares the state of both sides.
func (r *rig) compareRegisters() {
	r.t.Helper()
	for _, reg := range r.man.Registers {
		got, err := r.sw.Registers().Cells(reg.Name, nil)
		if err != nil {
			r.t.Fatal(err)
		}
		want := r.model.Cells(reg.Name)
		if want == nil {
			r.t.Errorf("the model does not have the register %s", reg.Name)
			continue
		}
		untouched := r.untouched[reg.Name]
		for i, g := range got {
			w := untouched
			if i < len(want) {
				w = want[i]
			}
			if g != w && !r.nobodys(reg, i, g, w) {
				r.t.Errorf("register %s[%d] is %d in the program, %d in the model", reg.Name, i, g, w)
				break
			}
		}
	}
}

// measure sends a packet from a port with the given queue before and after it, and
// delivers the report, if any, at once.
func (r *rig) measure(port, met int, at model.Time) {
	r.t.Helper()
	r.now = at
	r.leave(port, met, 100)
}

// measureLen sends a packet of a given length from an idle port.
func (r *rig) measureLen(port, bytes int) {
	r.t.Helper()
	r.leave(port, 0, bytes)
}

func (r *rig) leave(port, met, bytes int) {
	r.t.Helper()
	p := model.Packet{Flow: model.Flow{Src: 1, Dst: localNet(port), Protocol: 1}, Len: bytes, In: hostPort, Group: -1}
	r.out = r.sw.Ingress(r.sw.Receive(hostPort, r.frame(p), r.clock()), r.clock(), r.out[:0])
	if len(r.out) != 1 || int(r.out[0].Port) != port {
		r.t.Fatalf("a packet to port %d becomes %+v", port, r.out)
	}
	r.sw.Enqueued(r.out[0].Packet, met, r.clock())
	q := &queue{items: []*item{{p: r.out[0].Packet, packet: p, came: bytes, met: met, port: port}}}
	for range met {
		q.items = append(q.items, &item{cells: 1})
	}
	r.depart(q)
	for len(r.reports) > 0 {
		r.comeRound(r.reports[0])
		r.reports = r.reports[1:]
	}
}

// cell reads a register of the program and checks that the model has the same value.
func (r *rig) cell(register string, index int) uint64 {
	r.t.Helper()
	cells, err := r.sw.Registers().Cells(register, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if want := r.model.Cells(register)[index]; cells[index] != want {
		r.t.Errorf("%s[%d] is %d in the program, %d in the model", register, index, cells[index], want)
	}
	return cells[index]
}
