package model

// An Overlay is what leaves tell each other with every packet between them.
type Overlay struct {
	Valid bool
	Tag   uint8 // the path that the packet takes
	FbTag uint8 // a path of the leaf that it goes to

	CE, FbMetric  uint8 // CONGA: the congestion of either, 0 to 7
	Sent, FbDelay Time  // QDAPS*: when the packet left; the delay along FbTag
}

// overlaid is a signal that lives on such headers.
type overlaid interface {
	receive(leaf int, h *Overlay, now Time)
	send(group int, h *Overlay)
	pass(h *Overlay, port int, now Time)
}

// unwrap takes in what a packet says that comes from another leaf. Hardware looks
// at what ends here alone: what a failure sends through on its way to another leaf
// gets a new header.
func (s *Switch) unwrap(p *Packet, now Time) {
	p.carried = 0
	o, ok := s.signal.(overlaid)
	if !ok || !s.cfg.Edge || !p.Overlay.Valid {
		return
	}
	if s.tofino() {
		p.carried = 10
		if s.cfg.Signal == "one-way" {
			p.carried = 16
		}
		if p.Group >= 0 {
			p.Overlay = Overlay{}
			return
		}
	}
	if p.From >= 0 {
		o.receive(p.From, &p.Overlay, now)
		p.Overlay = Overlay{}
	}
}

// wrap tells the leaf at the other end about its paths to us, in turn.
func (s *Switch) wrap(p *Packet, slot int) {
	o, ok := s.signal.(overlaid)
	if !ok || !s.cfg.Edge {
		return
	}
	next := s.feedback.of(p.Group)
	tag := *next
	if tag >= s.cfg.Paths {
		tag = 0
	}
	*next = tag + 1
	p.Overlay = Overlay{Valid: true, Tag: uint8(slot), FbTag: uint8(tag)}
	o.send(p.Group, &p.Overlay)
}

// piggyback is CONGA's signal: the congestion of paths, which packets gather on
// their way and carry back, each in eighths of a link.
type piggyback struct {
	load
	toLeaf   byGroup[[MaxPaths]pathDegree]
	fromLeaf byGroup[[MaxPaths]uint8]
}

// cost is the larger one of the local congestion and that of the path.
func (g *piggyback) cost(p *pass, slot int) uint32 {
	remote := g.toLeaf.of(p.Group)[slot]
	if p.now.Since(remote.at) > g.cfg.Ageing {
		remote.degree = 0
		if g.tofino() { // whose clock comes round sooner: it forgets
			g.toLeaf.of(p.Group)[slot].degree = 0
		}
	}
	return uint32(max(remote.degree, g.eighths(g.sent(g.port(p, slot), p.now))))
}

func (g *piggyback) receive(leaf int, h *Overlay, now Time) {
	g.fromLeaf.of(leaf)[h.Tag] = h.CE
	g.toLeaf.of(leaf)[h.FbTag] = pathDegree{h.FbMetric, now, true}
}

func (g *piggyback) send(group int, h *Overlay) { h.FbMetric = g.fromLeaf.of(group)[h.FbTag] }

func (g *piggyback) pass(h *Overlay, port int, _ Time) {
	h.CE = max(h.CE, g.eighths(g.egressSide[port].bytes))
}
