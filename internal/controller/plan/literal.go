package plan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// This file evaluates the explicit parts of a manifest: entries, cells, sessions and
// groups with expressions over facts of the network (facts.go).

// addEntries adds the explicit entries of a table. After each it calls added with the index of
// the entry and the number of planned entries before it.
func (b *planner) addEntries(t *manifest.Table, added func(before, entry int)) {
	seen := map[string]string{} // action of each key
	for i := range t.Entries {
		e := &t.Entries[i]
		before, repeat := len(b.out.Entries), e.Repeat
		if e.OneOf != "" {
			repeat.Where = manifest.Expr{} // The condition applies to members of the selector; entry evaluates it.
		}
		err := b.each(&repeat, func(p *place) error {
			made, err := p.entry(b.x.ByName[t.Name], e)
			if err != nil || made == nil {
				return err
			}
			key := made.Key() + fmt.Sprint(made.Priority)
			have, ok := seen[key]
			switch {
			case !ok:
				seen[key] = made.call()
				b.out.Entries = append(b.out.Entries, *made)
			case have != made.call():
				return fmt.Errorf("there is an entry %s already, with the action %s: this one has %s", made.Key(), have, made.call())
			}
			return nil
		})
		if err != nil {
			b.fail("", "table %s, entry %d of the manifest: %w", t.Name, i+1, err)
		}
		added(before, i)
	}
}

// entry computes the entry for a place. It returns nil if no member of a selector meets the
// entry's condition.
func (p *place) entry(info *p4info.Table, e *manifest.Entry) (*Entry, error) {
	a := info.Actions[manifest.Short(e.Action)]
	if a == nil {
		return nil, fmt.Errorf("there is no action %s", e.Action)
	}
	if e.OneOf != "" && (info.Profile == nil || !info.Profile.Selector) {
		return nil, errors.New("one_of needs a table with an action selector: this entry can have one action")
	}
	out := &Entry{Table: info.Name, Action: a.Name}
	if !e.Default {
		out.Match = []Match{}
	}
	for _, f := range info.Fields {
		if e.Default {
			break
		}
		m, err := p.match(f, e.Match)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		out.Match = append(out.Match, m)
	}
	if !e.Default && overlaps(info) {
		n, err := e.Priority.Eval(p.fact)
		if err != nil {
			return nil, fmt.Errorf("priority: %w", err)
		}
		out.Priority = max(1, int(n)) // P4Runtime does not allow priority 0
	}
	if e.OneOf == "" {
		var err error
		out.Args, err = p.args(a, e.Args)
		return out, err
	}
	if err := p.oneOf(out, a, e); err != nil || len(out.OneOf) == 0 {
		return nil, err
	}
	return out, nil
}

// oneOf adds the members of a selector: the repetitions that meet the condition.
func (p *place) oneOf(out *Entry, a *p4info.Action, e *manifest.Entry) error {
	out.Action = ""
	err := p.nest(e.OneOf.Words(), func(q *place) error {
		if ok, err := q.holds(e.Where); err != nil || !ok {
			return err
		}
		args, err := q.args(a, e.Args)
		out.OneOf = append(out.OneOf, Call{a.Name, args})
		return err
	})
	if err == nil && len(out.OneOf) == 0 && e.Where.IsZero() {
		err = fmt.Errorf("there is no %s to choose from", e.OneOf)
	}
	return err
}

// overlaps reports whether several entries of a table can match one packet without a
// longest prefix, so that entries need a priority.
func overlaps(t *p4info.Table) bool {
	return slices.ContainsFunc(t.Fields, func(f p4info.Field) bool {
		return f.Kind != configv1.MatchField_EXACT && f.Kind != configv1.MatchField_LPM
	})
}

func (p *place) args(a *p4info.Action, list map[string]manifest.Expr) ([]Arg, error) {
	var out []Arg
	for _, q := range a.Params {
		upper, v, err := p.value(list[q.Name], q.Width)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q.Name, err)
		}
		out = append(out, Arg{Name: q.Name, Value: v, Upper: upper, Width: q.Width})
	}
	return out, nil
}

func (p *place) match(f p4info.Field, list map[string]manifest.Match) (Match, error) {
	m, given := list[f.Name]
	if !given {
		m.Kind = manifest.AnyMatch
	}
	return p.matchOf(f, m)
}

// matchOf converts a match of the manifest to a match of a field.
func (p *place) matchOf(f p4info.Field, m manifest.Match) (Match, error) {
	out := Match{Field: f.Name, Width: f.Width, Bits: f.Width}
	if m.Kind == manifest.AnyMatch {
		out.Any, out.Bits = true, 0
		return out, nil
	}
	var err error
	out.Upper, out.Value, err = p.value(m.Value, f.Width)
	var other int64
	if err == nil {
		other, err = m.Other.Eval(p.fact)
	}
	if err != nil {
		return out, err
	}
	end := uint64(other)
	switch m.Kind {
	case manifest.MaskMatch:
		out.Mask = &end
	case manifest.RangeMatch:
		if out.High = &end; end < out.Value {
			return out, fmt.Errorf("the range %d..%d is empty", out.Value, end)
		}
	case manifest.PrefixMatch:
		if other < 0 || other > int64(f.Width) {
			return out, fmt.Errorf("a prefix of %d bits: the field has %d", other, f.Width)
		}
		out.Bits = int(other)
		free := f.Width - out.Bits
		out.Value &^= uint64(1)<<free - 1
		if free > 64 {
			out.Upper &^= uint64(1)<<(free-64) - 1
		}
	default:
		if f.Kind == configv1.MatchField_LPM && m.Value.String() == "$"+string(manifest.Destination) {
			out.Bits = int(p.facts[manifest.PrefixLength])
		}
	}
	return out, nil
}

// value evaluates an expression for a field of the given width. Only a wide field can hold an
// IPv6 address, which is returned in upper and lower.
func (p *place) value(e manifest.Expr, width int) (upper, lower uint64, err error) {
	a, ok := e.Address()
	if f, node, one := e.Fact(); one && !ok {
		a, ok = p.address(f, node)
	}
	if ok && a.Is6() && width > 64 {
		upper, lower = halves(a)
		if width < 128 && upper>>(width-64) != 0 {
			return 0, 0, fmt.Errorf("%v does not fit %d bits", e, width)
		}
		return upper, lower, nil
	}
	v, err := e.Eval(p.fact)
	if err == nil {
		err = fits(v, width)
	}
	return 0, uint64(v), err
}

// address returns the address that a fact is.
func (p *place) address(f manifest.Fact, node string) (netip.Addr, bool) {
	t := p.b.plan.Topology
	switch {
	case f == manifest.HostAddress && node != "":
		if h := t.Host(node); h != nil {
			return h.IP.Addr(), true
		}
	case f == manifest.HostAddress:
		if n := p.facts[manifest.HostNumber]; n > 0 {
			return t.Hosts[n-1].IP.Addr(), true
		}
	case f == manifest.SenderAddress && node == "":
		if n := p.facts[manifest.SenderNumber]; n > 0 {
			return t.Hosts[n-1].IP.Addr(), true
		}
	case f == manifest.ServiceAddress && node == "":
		if n := p.facts[manifest.ServiceNumber]; n > 0 {
			return t.Services[n-1].Address, true
		}
	case f == manifest.Destination && p.way != nil && p.way.prefix.IsValid():
		return p.way.prefix.Addr(), true
	}
	return netip.Addr{}, false
}

func halves(a netip.Addr) (upper, lower uint64) {
	b := a.As16()
	return binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
}

// fits returns an error for a number that does not fit in the width.
func fits(v int64, width int) error {
	if width < 64 && uint64(v)>>width != 0 {
		return fmt.Errorf("%d does not fit %d bits", v, width)
	}
	return nil
}

// addFills sets the initial values of cells.
func (b *planner) addFills(r *manifest.Register) {
	info := b.x.Registers[r.Name]
	for i := range r.Cells {
		c := &r.Cells[i]
		err := b.each(&c.Repeat, func(p *place) error {
			at, err := c.At.Eval(p.fact)
			if err != nil {
				return err
			}
			v, err := c.Value.Eval(p.fact)
			if err == nil && (at < 0 || at >= int64(info.Size)) {
				err = fmt.Errorf("there is no cell %d, but %d", at, info.Size)
			}
			if err != nil {
				return err
			}
			b.out.Registers = append(b.out.Registers, Cells{Register: r.Name, From: int(at), To: int(at) + 1, Value: uint64(v)})
			return nil
		})
		if err != nil {
			b.fail("", "register %s, cells %d of the manifest: %w", r.Name, i+1, err)
		}
	}
}

// addSession adds a clone session, once for each repetition.
func (b *planner) addSession(s *manifest.Session) {
	err := b.each(&s.Repeat, func(p *place) error {
		id, port := int64(s.Session), int64(s.Port)
		var err error
		if !s.At.IsZero() {
			id, err = s.At.Eval(p.fact)
		}
		if !s.To.IsZero() && err == nil {
			port, err = s.To.Eval(p.fact)
		}
		if err == nil && id < 1 {
			err = fmt.Errorf("session %d: want a number from 1", id)
		}
		if err == nil && slices.ContainsFunc(b.out.Sessions, func(have Session) bool { return have.ID == int(id) }) {
			err = fmt.Errorf("there is a session %d already", id)
		}
		if err == nil {
			b.out.Sessions = append(b.out.Sessions, Session{ID: int(id), Port: int(port), Bytes: s.Bytes})
		}
		return err
	})
	if err != nil {
		b.fail("", "clone sessions of the manifest: %w", err)
	}
}

// addGroup adds a multicast group, once for each repetition.
func (b *planner) addGroup(g *manifest.Multicast) {
	err := b.each(&g.Repeat, func(p *place) error {
		id := int64(g.Group)
		var err error
		if !g.At.IsZero() {
			if id, err = g.At.Eval(p.fact); err != nil {
				return err
			}
		}
		ports, err := p.leadsTo(g)
		if err != nil {
			return err
		}
		switch {
		case id < 1:
			return fmt.Errorf("group %d: want a number from 1", id)
		case slices.ContainsFunc(b.out.Groups, func(have Multicast) bool { return have.ID == int(id) }):
			return fmt.Errorf("there is a group %d already", id)
		}
		b.addMulticast(int(id), ports)
		return nil
	})
	if err != nil {
		b.fail("", "multicast groups of the manifest: %w", err)
	}
}

// leadsTo returns the ports of a multicast group.
func (p *place) leadsTo(g *manifest.Multicast) ([]int, error) {
	if g.To.IsZero() {
		return p.b.members(g, nil), nil
	}
	var ports []int
	for i := range p.b.ports {
		yes, err := g.To.Eval(p.to(i).fact)
		if err != nil {
			return nil, err
		}
		if yes != 0 {
			ports = append(ports, p.b.ports[i].Number)
		}
	}
	return ports, nil
}

// to returns the place with the facts of a possible port of a multicast group.
func (p *place) to(i int) *place {
	port := p.b.portFacts(&p.b.ports[i])
	var host int64
	if port[manifest.Neighbouring] == 0 {
		host = p.b.numberOf(p.b.ports[i].Peer)
	}
	return p.with(map[manifest.Fact]int64{
		manifest.ToPort: port[manifest.EgressPort], manifest.ToNeighbour: port[manifest.Neighbouring], manifest.ToHost: host,
		manifest.ToAbove: port[manifest.LeadsAbove], manifest.ToBelow: port[manifest.LeadsBelow],
	})
}

// A Frame is a packet that the controller sends to a switch periodically.
type Frame struct {
	Every  time.Duration `json:"every_ns"`
	Bytes  []byte        `json:"bytes"`
	Port   *int          `json:"port,omitempty"` // port at which it arrives; nil: the CPU port
	Stamps []Stamp       `json:"stamps,omitempty"`
	// Returns is the register whose cells change when a frame comes back.
	Returns string `json:"returns,omitempty"`
	Cells   int    `json:"-"`
	Toward  string `json:"-"` // the neighbour that the task repeats for; "": none
}

// A Stamp is a field of a frame whose value is known when the frame is sent.
type Stamp struct {
	Fact  manifest.Fact `json:"fact"`
	Bit   int           `json:"bit"` // offset of the field in the frame
	Width int           `json:"width"`
}

// Write writes the lowest bits of a value into a frame.
func (s Stamp) Write(frame []byte, v uint64) {
	for i := range s.Width {
		at := s.Bit + s.Width - 1 - i
		mask := byte(1) << (7 - at%8)
		frame[at/8] &^= mask
		if v>>i&1 != 0 {
			frame[at/8] |= mask
		}
	}
}

// addFrames adds the frames that tasks send.
func (b *planner) addFrames() {
	for i := range b.m.Tasks {
		t := &b.m.Tasks[i]
		if t.Kind != manifest.SendFrame {
			continue
		}
		err := b.each(&t.Repeat, func(p *place) error {
			frame, err := p.frame(t.Frame)
			if err == nil {
				frame.Port, err = p.arrival(t.In)
			}
			frame.Every, frame.Toward = time.Duration(t.Period), p.peer()
			if r := b.m.Register(t.Returns); r != nil {
				frame.Returns, frame.Cells = r.Name, r.Size
			} else if t.Returns != "" && err == nil {
				err = fmt.Errorf("returns: the program has no register %s", t.Returns)
			}
			b.out.Frames = append(b.out.Frames, frame)
			return err
		})
		if err != nil {
			b.fail("", "task %d of the manifest: %w", i+1, err)
		}
	}
}

// peer returns the neighbour at the port of the place, or "" without a port.
func (p *place) peer() string {
	for _, port := range p.b.ports {
		if int64(port.Number) == p.facts[manifest.EgressPort] {
			return port.Peer
		}
	}
	return ""
}

// arrival returns the port where a frame arrives, or nil for the CPU port.
func (p *place) arrival(in manifest.Expr) (*int, error) {
	if in.IsZero() {
		return nil, nil
	}
	v, err := in.Eval(p.fact)
	if err != nil {
		return nil, fmt.Errorf("in: %w", err)
	}
	port := int(v)
	switch {
	case slices.ContainsFunc(p.b.ports, func(q fabric.Port) bool { return q.Number == port }):
		return &port, nil
	case port != 0 && port == p.b.out.CPUPort:
		return nil, nil
	}
	return nil, fmt.Errorf("in: port %d of %s has no link: want one that has, or $cpu", v, p.b.sw.Name)
}

// frame returns a frame.
func (p *place) frame(fields []manifest.FrameField) (Frame, error) {
	var w BitWriter
	var out Frame
	bits := 0
	for _, f := range fields {
		var v int64
		var err error
		if name, _, ok := f.Value.Fact(); ok && (name == manifest.SendTime || name == manifest.SendCount) {
			out.Stamps = append(out.Stamps, Stamp{name, bits, f.Bits})
		} else {
			v, err = f.Value.Eval(p.fact)
		}
		if err == nil {
			err = fits(v, f.Bits)
		}
		if err != nil {
			return out, err
		}
		w.Write(uint64(v), f.Bits)
		bits += f.Bits
	}
	switch {
	case w.free != 0:
		return out, errors.New("the frame is no whole number of bytes")
	case len(w.Bytes) < 14:
		return out, fmt.Errorf("the frame has %d bytes, an Ethernet header 14", len(w.Bytes))
	}
	out.Bytes = w.Bytes
	return out, nil
}

// A BitWriter appends numbers of any width, the most significant bit first.
type BitWriter struct {
	Bytes []byte
	free  int // free bits of the last byte
}

func (w *BitWriter) Write(v uint64, width int) {
	for width > 0 {
		if w.free == 0 {
			w.Bytes = append(w.Bytes, 0)
			w.free = 8
		}
		n := min(width, w.free)
		part := byte(v>>(width-n)) & (1<<n - 1)
		w.free -= n
		width -= n
		w.Bytes[len(w.Bytes)-1] |= part << w.free
	}
}
