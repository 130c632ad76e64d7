package sim

import (
	"fmt"

	"github.com/p4lb/p4lb/internal/scheme/model"
)

// A Model configures the model that a switch runs instead of a program.
type Model struct {
	model.Config // its Random is set by LoadModel

	// Lengths of headers in bytes: of reports to ingress, of the overlay between leaves, of
	// notices, of the bridge header from ingress to egress, and of packets that recirculate
	// through AgainPort.
	ReportLen, OverlayLen, NoticeLen, BridgeLen, AgainLen int
	AgainPort                                             int
	// MirrorLen is the length to which a switch truncates the copy of a packet in a report or a
	// notice.
	MirrorLen int
	// ReportSession is the clone session of reports. NoticeSession is the clone session of
	// notices to port 0, and the next sessions belong to the next ports. ProbesUp is the
	// multicast group of an edge switch's own probes. ProbesFrom is the group of probes from port
	// 0, and the next groups belong to the next ports.
	ReportSession, NoticeSession, ProbesUp, ProbesFrom int
	// ProbeMark is the queue length above which path probes are marked.
	ProbeMark int
	// Cells is the number of cells of each register of the program. The model returns 0
	// for cells that it does not keep.
	Cells map[string]int
	// AtOnce makes signals of queue lengths use the current bytes, and makes load registers count
	// packets on arrival.
	AtOnce bool
	// Extend, if not nil, handles the data packets of a scheme that is more than the Config
	// describes.
	Extend Extension
	// Onward adds the queue that the packet meets in the next switch to each queue.
	Onward bool
	// TrimAt is the queue length in packets at which packets with Options.TrimmableDSCP
	// are trimmed to TrimLen bytes; zero: never.
	TrimAt, TrimLen int
}

// An Extension creates the part of a scheme that model.Switch does not implement.
type Extension func(*native) extension

// An extension handles packets before the model.
type extension interface {
	handleData(p *Packet) bool // handles a data packet; false: the model handles it
	handleControl(p *Packet)   // handles a packet that the extension of another switch has sent
}

// native is the engine that runs a model. It handles reports, probes and notices as the program
// does: packets have the same lengths and take the same paths at the same times.
type native struct {
	s     *Switch
	o     Model
	model *model.Switch
	look  *lookups
	// persists reports whether the scheme keeps state in packets.
	persists bool
	more     extension    // nil: model.Switch implements the whole scheme
	backlog  []int32      // with TrimAt: number of waiting packets, by port
	packet   model.Packet // the current packet in the model's form
	drawn    int          // random numbers drawn for the current packet
}

// LoadModel makes the switch run the model of a scheme. The switch must not run a program or
// model yet.
func (s *Switch) LoadModel(o Model, t Tables) error {
	if s.net.whole.bytes {
		return fmt.Errorf("switch %s: a network runs either programs or models", s.Name)
	}
	e := &native{s: s}
	random := Random(s.net.opts.Seed, s.Name)
	if s.net.draws != nil {
		random = s.net.draws.between
	}
	o.Random = func(lo, hi uint64) uint64 {
		e.drawn++
		return random(lo, hi)
	}
	o.Elapsed = func() int64 { return int64(s.Clock()) }
	if o.AtOnce {
		o.QueueNow, o.LoadNow, o.Frame = func(port int, to model.Flow) uint32 { return e.queueNow(port, to) }, true, s.net.frame()
	}
	if s.net.ns3 != nil {
		o.PathHash = s.net.ns3.hash(s)
	}
	m, err := model.New(o.Config)
	if err != nil {
		return fmt.Errorf("switch %s: %w", s.Name, err)
	}
	e.o, e.model = o, m
	if o.Extend != nil {
		e.more = o.Extend(e)
	}
	if o.TrimAt > 0 {
		e.backlog = make([]int32, len(s.ports))
	}
	e.persists = o.Guard != "" && o.Guard != "none" || o.Signal == "piggyback" || o.Signal == "one-way" || o.AgainLen > 0
	s.run(e)
	return s.SetTables(t)
}

// queueNow returns the bytes in a port's queue, relative to its scaled limit. Schemes that compute
// times from the rates of ports get the bytes themselves.
func (e *native) queueNow(port int, to model.Flow) uint32 {
	o := e.s.ports[port]
	timed := e.o.Signal == "drain" || e.o.Choice == "ordered"
	n := o.occupied(!timed)
	if !e.o.Onward || o.peer == nil || o.peer.sw == nil {
		return n
	}
	next, ok := o.peer.sw.engine.(*native)
	if !ok {
		return n
	}
	if w, ok := longest(next.look.routes, to.Dst); ok && w.group == 0 && w.port >= 0 {
		next := o.peer.sw.ports[w.port]
		if !timed {
			return n + next.occupied(true)
		}
		n += uint32(float64(next.occupied(false)) * float64(o.rate) / float64(next.rate)) // in the time of o
	}
	return n
}

// SetTables replaces the tables of a switch that runs a model. The model keeps its state.
func (s *Switch) SetTables(t Tables) error {
	e, ok := s.engine.(*native)
	if !ok {
		return fmt.Errorf("switch %s runs no model", s.Name)
	}
	look, err := newLookups(t)
	if err != nil {
		return fmt.Errorf("switch %s: %w", s.Name, err)
	}
	look.resolve(s.net.hosts)
	look.configure(e.model)
	e.look = look
	return nil
}

func (e *native) now() model.Time { return e.o.Hardware.Clock(int64(e.s.Clock())) }

// drawAll draws the random numbers that a program for Tofino always draws, needed or not: the
// sampled paths for each packet, and Hermes's new path for each packet that chooses a path.
func (e *native) drawAll(choosing bool) {
	most := 0
	switch {
	case e.o.Hardware == nil:
	case e.o.Choice == "sampled" || e.o.Choice == "ordered":
		most = 2
	case e.o.Choice == "cautious" && choosing:
		most = 1
	}
	for e.drawn < most {
		e.o.Random(0, 1<<12-1)
	}
	e.drawn = 0
}

func (e *native) ingress(p *Packet) {
	switch {
	case p.Flow == nil:
		e.drawAll(false)
		e.takeControl(p)
	case e.more != nil && e.more.handleData(p):
	case p.recirculated:
		p.recirculated = false
		p.native.entered = p.Size
		p.Size -= e.o.AgainLen
		e.decide(p, e.returned(p), true)
	default:
		if e.persists || e.o.Hardware != nil {
			p.native.received, p.native.entered, p.native.round = p.Size, p.Size, model.Round{}
		}
		e.decide(p, e.now(), false)
	}
}

// returned returns the time at which a packet was recirculated, as its program sees it. On a
// software switch this is when the packet left its queue.
func (e *native) returned(p *Packet) model.Time {
	if e.o.Hardware != nil {
		return e.now()
	}
	return p.native.recirculatedAt
}

// describe fills in the model's view of a packet. Fields that the model does not
// change are computed each time, so that packets stay small. It omits fields that
// the scheme does not read, because accessing the hosts and ports of a large
// network is slow.
func (e *native) describe(p *Packet) *model.Packet {
	d := p.headers()
	mp := &e.packet
	mp.Flow, mp.Len = d.tuple, p.Size
	if p.Entropy != 0 {
		mp.Flow = p.tuple()
	}
	mp.Ack = p.Kind == Ack && d.tuple.Protocol == protocolTCP
	mp.Echo = mp.Ack && p.Echo
	if e.persists {
		mp.Len = p.native.received
		mp.In, mp.From = p.from.Number, e.look.leafHost[p.Src.place]
		mp.Overlay, mp.Round = p.native.overlay, p.native.round
	}
	return mp
}

// remember stores the model's changes in the packet.
func (e *native) remember(p *Packet) {
	if e.persists {
		p.native.overlay, p.native.round = e.packet.Overlay, e.packet.Round
	}
}

// decide asks the model for the port of a packet. again is set if the packet has been
// recirculated.
func (e *native) decide(p *Packet, now model.Time, again bool) {
	to := e.look.toHost[p.dstIndex]
	if e.past(p) {
		e.byHash(p, to)
		return
	}
	mp := e.describe(p)
	mp.Group = -1
	if to.group != 0 {
		mp.Group = int(to.group)
	}
	overlaid := mp.Overlay.Valid
	if overlaid && e.misrouted(mp) || to.group == 0 && to.port < 0 {
		e.drawAll(false)
		e.s.drop(p)
		return
	}
	d := e.model.Ingress(mp, now)
	e.drawAll(to.group != 0 && !again)
	e.remember(p)
	if mp.Overlay.Valid != overlaid {
		p.Size += e.overlayLen(mp.Overlay.Valid)
	}
	if d.Notice != model.None {
		e.notify(p, d.Notice)
	}
	if !d.Again {
		p.Size += e.o.bridge()
	}
	switch {
	case d.Again:
		p.Size += e.o.AgainLen
		e.s.enqueue(p, e.o.AgainPort)
	case to.group == 0:
		e.join(p, int(to.port))
	case d.Port < 0:
		e.s.drop(p)
	default:
		e.join(p, d.Port)
	}
}

// join sends a packet to a port, and trims it if the port's queue is full. The backlog is the
// queue at the last departure plus the packets that joined since.
func (e *native) join(p *Packet, port int) {
	if o := e.s.Port(port); e.backlog != nil && o != nil {
		p.native.trimmed = 0
		came := p.Size
		if e.persists {
			came = p.native.received
		}
		switch {
		case p.Kind == data && p.Trimmed != notTrimmed:
			p.priority = true
		case p.whole() && came > e.o.TrimLen && int(e.backlog[port]) >= e.o.TrimAt && e.s.net.opts.TrimmableDSCP > 0:
			cut := p.Size - e.o.TrimLen
			e.cut(p, cut)
			p.trimmed(o, cut)
			p.native.trimmed, p.priority = int32(cut), true
		default:
			e.backlog[port]++
		}
	}
	e.s.enqueue(p, port)
}

// misrouted reports whether a leaf drops a packet because its overlay header does not name another
// leaf: a failure has returned the leaf's own packet. A program for Tofino checks only packets
// that end at this leaf.
func (e *native) misrouted(p *model.Packet) bool {
	return e.o.Edge && p.From < 0 && (e.o.Hardware == nil || p.Group < 0)
}

// past reports whether a packet bypasses the scheme.
func (e *native) past(p *Packet) bool { return e.s.net.opts.Answers.Hashed && p.Kind.answers() }

// byHash sends a packet along the path of its flow's hash.
func (e *native) byHash(p *Packet, to way) {
	switch ports := e.look.groups[int(to.group)]; {
	case to.group != 0 && len(ports) > 0:
		hash := e.model.PathHash(p.tuple())
		e.s.enqueue(p, ports[hash%uint64(len(ports))])
	case to.group == 0 && to.port >= 0:
		e.s.enqueue(p, int(to.port))
	default:
		e.s.drop(p)
	}
}

// overlayLen returns the change in a packet's length when the overlay header is added or removed.
func (e *native) overlayLen(on bool) int {
	if !on {
		return -e.o.OverlayLen
	}
	return e.o.OverlayLen
}

// bridge returns the bytes that packets gain between ingress and egress.
func (o *Model) bridge() int {
	if o.Hardware == nil {
		return 0
	}
	return o.BridgeLen
}

// mirrored returns the length of a copy with a header in front, as hardware truncates it.
func (o *Model) mirrored(header, bytes int) int { return min(o.MirrorLen, header+bytes) }

// notify sends a copy of a packet back to the previous switch as a notice. It sends nothing to
// hosts.
func (e *native) notify(p *Packet, what model.Notice) {
	port, ok := e.look.sessions[e.o.NoticeSession+e.packet.In]
	if !ok {
		return
	}
	size := p.native.received
	if e.o.Hardware != nil {
		size = e.o.mirrored(e.o.NoticeLen, size)
	}
	c := e.s.copyOf(p, size)
	*c.tell() = control{form: noticeForm, notice: what, hold: e.o.Hold, hops: e.o.Relay}
	e.s.enqueue(c, port)
}

// relay forwards a notice to the next switch upstream. It sends nothing to hosts.
func (e *native) relay(p *Packet) {
	to, ok := e.model.Relay(p.from.Number, p.ctl.notice, p.ctl.hops)
	if !ok {
		return
	}
	port, ok := e.look.sessions[e.o.NoticeSession+to]
	if !ok {
		return
	}
	c := e.s.copyOf(p, p.Size)
	told := *p.ctl
	told.hops--
	*c.tell() = told
	e.s.enqueue(c, port)
}

// tell returns the control contents of a packet that a switch created.
func (p *Packet) tell() *control {
	if p.ctl == nil {
		p.ctl = new(control)
	}
	return p.ctl
}

func (e *native) cut(p *Packet, bytes int) {
	p.native.received -= bytes
	p.native.entered -= bytes
}

func (e *native) paused(o *Port, pause bool) { e.model.Paused(o.Number, pause) }

func (e *native) cell() int {
	if e.o.Hardware == nil {
		return 0
	}
	return e.o.Hardware.Cell
}

func (e *native) enqueued(p *Packet, o *Port, depth int) {
	if e.past(p) {
		return
	}
	e.model.Enqueued(o.Number, depth+int(e.s.cellsOf(p.Size)))
	if e.o.LoadNow {
		e.model.Arrived(o.Number, p.Size, &p.native.overlay, e.now())
	}
	p.depth = int32(depth)
	if e.persists {
		p.native.queued = e.now()
	}
}

func (e *native) egress(p *Packet, o *Port, depth int) fate {
	if e.backlog != nil {
		e.backlog[o.Number] = int32(depth)
	}
	if p.Flow == nil {
		return e.egressControl(p, o, depth)
	}
	if e.past(p) {
		return sent
	}
	if e.o.Hardware != nil && e.o.AgainLen > 0 && o.Number == e.o.AgainPort {
		p.recirculated = true // the packet has passed egress
		return round
	}
	p.Size -= e.o.bridge()
	d := model.Departure{Port: o.Number, Met: int(p.depth), Left: depth, Len: p.Size, Packet: &e.packet}
	if e.o.Hardware != nil {
		d.Len = p.native.entered
	}
	if e.persists {
		d.Packet, d.Queued = e.describe(p), p.native.queued
	}
	if e.o.Hardware == nil && e.o.AgainLen > 0 && o.Number == e.o.AgainPort {
		e.model.Recirculated(d)
		e.remember(p)
		p.recirculated, p.native.recirculatedAt = true, e.now()
		return round
	}
	r, due := e.model.Egress(d, e.now())
	e.remember(p)
	if due {
		e.report(p, r)
	}
	return sent
}

// egressControl handles a packet without a flow at egress. Measurements include probes.
func (e *native) egressControl(p *Packet, o *Port, depth int) fate {
	switch p.ctl.form {
	case reportForm:
		p.Size = int(p.native.reportLen)
		p.native.recirculatedAt = e.now()
		return round
	case noticeForm:
		if e.o.Hardware == nil {
			p.Size = ethernetLen + e.o.NoticeLen
		}
		return sent
	case probeForm:
		p.Size -= e.o.bridge()
	case pathForm:
		p.Size -= e.o.bridge()
		if e.o.ProbeMark > 0 && int(p.depth) > e.o.ProbeMark {
			p.ctl.path.flags |= probeMarked
		}
	}
	e.packet = e.describeControl(p)
	d := model.Departure{Port: o.Number, Met: int(p.depth), Left: depth, Len: p.Size, Packet: &e.packet}
	if r, due := e.model.Egress(d, e.now()); due {
		e.report(p, r)
	}
	return sent
}

// describeControl describes a packet without a flow for egress. A program for Tofino does not count its
// bytes, and records its ingress port unless packets recirculate. Flooded copies occur only with
// schemes that do not read these fields.
func (e *native) describeControl(p *Packet) model.Packet {
	mp := model.Packet{Group: -1}
	if e.o.Hardware == nil {
		return mp
	}
	mp.Len = ethernetLen
	if p.from != nil && e.o.AgainLen == 0 {
		mp.In = p.from.Number
	}
	return mp
}

// report recirculates a copy of a packet as a report.
func (e *native) report(p *Packet, r model.Report) {
	port, ok := e.look.sessions[e.o.ReportSession]
	if !ok {
		return
	}
	if e.o.Hardware != nil {
		c := e.s.copyOf(p, e.o.mirrored(e.o.ReportLen, p.Size))
		*c.tell() = control{form: reportForm, report: r}
		c.native.reportLen = int32(c.Size)
		e.s.enqueue(c, port)
		return
	}
	size := p.Size + int(p.native.trimmed)
	if e.o.MirrorLen > 0 {
		size = min(size, e.o.MirrorLen)
	}
	c := e.s.copyOf(p, size)
	*c.tell() = control{form: reportForm, report: r}
	// The report header replaces the original headers.
	short := e.o.ReportLen
	if p.Flow != nil {
		short += size - ethernetLen - e.s.net.ipLen()
		if p.native.overlay.Valid {
			short -= e.overlayLen(true)
		}
	}
	c.native.reportLen = int32(short)
	e.s.enqueue(c, port)
}

func (e *native) forget(*Packet) {}

// takeControl handles a packet of a switch or the controller at ingress.
func (e *native) takeControl(p *Packet) {
	if p.from == e.s.cpu {
		c, ok := readControl(p.head, e.o.Signal == "degree", e.o.Hardware != nil)
		if !ok {
			e.s.drop(p)
			return
		}
		*p.tell() = c
	}
	switch p.ctl.form {
	case reportForm:
		e.model.Learn(p.ctl.report, e.returned(p))
		e.s.drop(p)
	case noticeForm:
		e.model.Heed(p.from.Number, p.ctl.notice, p.ctl.hold, e.now())
		e.relay(p)
		e.s.drop(p)
	case probeForm:
		e.takeProbe(p)
	case pathForm:
		e.takePathProbe(p)
	case wovenForm:
		e.more.handleControl(p)
	}
}

// takeProbe handles a probe of HULA or DHLB, and floods it.
func (e *native) takeProbe(p *Packet) {
	group := e.o.ProbesUp
	if p.from != e.s.cpu {
		news, ok := e.model.Probe(p.ctl.probe, p.from.Number, e.now())
		if !ok || e.o.Edge {
			e.s.drop(p)
			return
		}
		p.ctl.probe, group = news, e.o.ProbesFrom+p.from.Number
	}
	for _, port := range e.look.multicast[group] {
		c := e.s.copyOf(p, p.Size)
		*c.tell() = *p.ctl
		e.send(c, port)
	}
	e.s.drop(p)
}

// send sends a probe from ingress to a port.
func (e *native) send(p *Packet, port int) {
	p.Size += e.o.bridge()
	e.s.enqueue(p, port)
}

// takePathProbe forwards a path probe, turns it back, or learns from it.
func (e *native) takePathProbe(p *Packet) {
	k := &p.ctl.path
	if p.from == e.s.cpu {
		k.sent = e.now()
		if ports := e.look.groups[int(k.dst)]; int(k.path) < len(ports) {
			e.send(p, ports[k.path])
			return
		}
		e.s.drop(p)
		return
	}
	port, onward := e.look.portTo(int(k.dst))
	switch {
	case onward:
		e.send(p, port)
	case int(k.dst) != e.look.home:
		e.s.drop(p)
	case k.flags&probeReply == 0:
		k.dst, k.src, k.flags = k.src, uint16(e.look.home), k.flags|probeReply
		e.send(p, p.from.Number)
	default:
		e.model.LearnPath(model.PathNews{
			Group: int(k.src), Slot: int(k.path), RTT: uint32(e.o.Hardware.Count(e.now().Since(k.sent))), Marked: k.flags&probeMarked != 0,
		}, e.now())
		e.s.drop(p)
	}
}

func (e *native) register(name string, dst []uint64) ([]uint64, error) {
	cells := e.model.Cells(name)
	if cells == nil {
		return dst, fmt.Errorf("the model of switch %s has no register %s", e.s.Name, name)
	}
	dst = append(dst, cells...)
	for range e.o.Cells[name] - len(cells) {
		dst = append(dst, 0)
	}
	return dst, nil
}

func (e *native) setRegister(name string, from, to int, value uint64) error {
	for i := from; i < to; i++ {
		if !e.model.SetCell(name, i, value) {
			return fmt.Errorf("the model of switch %s does not take the register %s", e.s.Name, name)
		}
	}
	return nil
}
