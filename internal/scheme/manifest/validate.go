package manifest

import (
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
	"github.com/p4lb/p4lb/internal/text/tree"
)

// validate checks everything that does not depend on the program. The error is the
// first in the manifest's order and of type *Error, without a file.
func (m *Manifest) validate() error {
	for _, check := range []func() error{
		m.validateWords, m.validateHead, m.validateRegisters, m.validateTables, m.validateHeaders, m.validateReplication, m.ValidateTasks,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// validateWords checks the words of all enumerations.
func (m *Manifest) validateWords() error { return checkWords("", reflect.ValueOf(m).Elem()) }

func checkWords(place string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return checkWords(place, v.Elem())
		}
	case reflect.Struct:
		for _, f := range tree.FieldsOf(v.Type()) {
			if err := checkWords(tree.Join(place, f.Key), v.FieldByIndex(f.Index)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Struct {
			return nil // numbers, facts and values have no nested fields
		}
		for i := range v.Len() {
			if err := checkWords(fmt.Sprintf("%s[%d]", place, i), v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if err := checkWords(place, key); err != nil {
				return err
			}
		}
	case reflect.String:
		if e, ok := v.Interface().(enumeration); ok && v.String() != "" && !slices.Contains(wordNames(e), v.String()) {
			return at(place, "there is no %q%s", v.String(), plain.Meant(v.String(), wordNames(e)))
		}
	}
	return nil
}

// at makes an error about a place in the manifest.
func at(place, format string, args ...any) error {
	return &Error{Place: place, Msg: fmt.Sprintf(format, args...)}
}

func (m *Manifest) validateHead() error {
	switch {
	case m.Version != Version:
		return at("version", "is %d: want %d", m.Version, Version)
	case m.Scheme == "":
		return at("scheme", "is missing: want a name for the program")
	case m.Arch == "":
		return at("arch", "is missing: want %s", strings.Join(wordNames(m.Arch), ", "))
	case m.Paths < 0 || m.Paths > MaxPaths:
		return at("paths", "is %d: want 1 to %d, or 0 where the program has no groups", m.Paths, MaxPaths)
	case m.Queues < 0 || m.Queues > m.Arch.maxQueues():
		return at("queues", "is %d: want 1 to %d", m.Queues, m.Arch.maxQueues())
	case m.Decides != "" && !m.knows(m.Decides):
		return at("decides", "there is no register %q%s", m.Decides, plain.Meant(m.Decides, m.labels()))
	case m.Weights != nil && m.Weights.From == "":
		return at("weights.from", "is missing: want %s", strings.Join(wordNames(m.Weights.From), ", "))
	case m.Weights != nil && m.Weights.From != FromController && !m.knows(m.Weights.Register):
		return at("weights.register", "there is no register %q%s", m.Weights.Register, plain.Meant(m.Weights.Register, m.labels()))
	}
	return nil
}

// labels returns the names of the registers and their fields for readers.
func (m *Manifest) labels() []string {
	var list []string
	for i := range m.Registers {
		r := &m.Registers[i]
		if len(r.Fields) == 0 {
			list = append(list, r.Called())
		}
		for _, f := range r.Fields {
			list = append(list, f.Label)
		}
	}
	return list
}

// knows reports whether there is a register or a field with a label.
func (m *Manifest) knows(label string) bool { return slices.Contains(m.labels(), label) }

func (m *Manifest) validateRegisters() error {
	seen := map[string]int{}
	labels := m.labels()
	for i := range m.Registers {
		r, place := &m.Registers[i], fmt.Sprintf("registers[%d]", i)
		first, twice := seen[r.Name]
		switch {
		case r.Name == "":
			return at(place+".name", "is missing")
		case twice:
			return at(place+".name", "register %s is there twice, first as registers[%d]", r.Name, first)
		case r.Size < 0:
			return at(place+".size", "is %d: want a number of cells", r.Size)
		case r.Width < 0 || r.Width > 64:
			return at(place+".width", "is %d: want 1 to 64 bits", r.Width)
		case len(r.Fields) > 0 && r.Kind != "":
			return at(place+".kind", "register %s has fields: they have kinds, it has none", r.Name)
		case r.Index == ByMemory && r.Each < 1:
			return at(place+".each", "register %s is by memory: want how many cells a group has", r.Name)
		case r.Copy != nil && (r.Copy.Of < 1 || r.Copy.Slot < 0 || r.Copy.Slot >= r.Copy.Of || r.Copy.Of > MaxPaths):
			return at(place+".copy", "is %d of %d: want a slot below the number of copies, which is %d at most", r.Copy.Slot, r.Copy.Of, MaxPaths)
		}
		seen[r.Name] = i
		if err := r.Content.validate(place, "register "+r.Name, r.Width, labels); err != nil {
			return err
		}
		for k := range r.Cells {
			if err := r.Cells[k].validate(fmt.Sprintf("%s.cells[%d]", place, k)); err != nil {
				return err
			}
		}
		for k, f := range r.Fields {
			place, what := fmt.Sprintf("%s.fields[%d]", place, k), "field "+f.Label+" of register "+r.Name
			switch {
			case f.Label == "":
				return at(place+".label", "is missing: want what readers call the field")
			case f.Width < 1 || f.Shift < 0 || f.Shift+f.Width > 64:
				return at(place+".width", "%s is %d bits from bit %d on: want 1 to 64 in all", what, f.Width, f.Shift)
			case r.Width > 0 && f.Shift+f.Width > r.Width:
				return at(place+".width", "%s ends at bit %d, the cells have %d bits", what, f.Shift+f.Width-1, r.Width)
			}
			if err := f.Content.validate(place, what, f.Width, labels); err != nil {
				return err
			}
		}
	}
	return nil
}

// timed lists the kinds of value that are in a unit of time.
var timed = []Kind{Moment, Deadline, Interval, Delay}

func (c *Content) validate(place, what string, width int, labels []string) error {
	for _, ref := range []struct{ key, label string }{{"of", c.Of}, {"reports", c.Reports}, {"per", c.Per}} {
		if ref.label != "" && !slices.Contains(labels, ref.label) {
			return at(place+"."+ref.key, "there is no register %q%s", ref.label, plain.Meant(ref.label, labels))
		}
	}
	switch {
	case slices.Contains(timed, c.Kind) && c.Unit.Nanoseconds() == 0:
		return at(place+".unit", "%s is a %s: want a unit of time, ns, us, ms or 1024ns", what, c.Kind)
	case c.Scale < 0:
		return at(place+".scale", "is %d: want a number above 0", c.Scale)
	case c.Valid < 0 || c.Valid > 63 || width > 0 && c.Valid >= width:
		return at(place+".valid", "%s has %d bits, there is no bit %d", what, width, c.Valid)
	case c.Event != "" && c.Kind != Moment && c.Kind != Deadline:
		return at(place+".event", "%s is no moment and no deadline: only they are of an event", what)
	case c.Window != 0 && c.Kind != Rate:
		return at(place+".window", "%s is no rate: only they fade", what)
	}
	return nil
}

func (m *Manifest) validateHeaders() error {
	seen := map[string]int{}
	for i, h := range m.Headers {
		place := fmt.Sprintf("headers[%d]", i)
		first, twice := seen[h.Name]
		switch {
		case h.Name == "":
			return at(place+".name", "is missing")
		case twice:
			return at(place+".name", "header %s is there twice, first as headers[%d]", h.Name, first)
		case h.EtherType < 0 || h.EtherType > 0xffff:
			return at(place+".ether_type", "is %d: want 16 bits", h.EtherType)
		}
		seen[h.Name] = i
		for k, f := range h.Fields {
			switch {
			case f.Width < 1:
				return at(fmt.Sprintf("%s.fields[%d].width", place, k), "is %d: want a number of bits", f.Width)
			case f.Width < 64 && f.Value>>f.Width != 0:
				return at(fmt.Sprintf("%s.fields[%d].value", place, k), "%d does not fit the %d bits of %s.%s", f.Value, f.Width, h.Name, f.Name)
			}
		}
	}
	return nil
}

func (m *Manifest) validateReplication() error {
	for i := range m.CloneSessions {
		s, place := &m.CloneSessions[i], fmt.Sprintf("clone_sessions[%d]", i)
		if err := s.checkAll(place, map[string]Expr{"where": s.Where, "at": s.At, "to": s.To}); err != nil {
			return err
		}
		switch {
		case s.Session < 0:
			return at(place+".session", "is %d: want a number from 0", s.Session)
		case s.Each != "" && (s.At.IsZero() || s.PerPort):
			return at(place+".at", "the session is for each %s: want its number, as in at: 100 + $port", s.Each)
		case !s.At.IsZero() && s.Session != 0:
			return at(place+".at", "want either a session or at")
		case !s.To.IsZero() && (s.Port != 0 || s.PerPort):
			return at(place+".to", "want either a port or to")
		case s.PerPort && s.Port != 0:
			return at(place+".port", "is %d: the session is per_port, which leads to each", s.Port)
		case s.Bytes < 0:
			return at(place+".bytes", "is %d: want a number of bytes", s.Bytes)
		}
	}
	for i := range m.MulticastGroups {
		g, place := &m.MulticastGroups[i], fmt.Sprintf("multicast_groups[%d]", i)
		if err := g.checkAll(place, map[string]Expr{"where": g.Where, "at": g.At}); err != nil {
			return err
		}
		if err := g.check(place+".to", g.To, toFacts...); err != nil {
			return err
		}
		switch {
		case g.Group < 1 && g.At.IsZero():
			return at(place+".group", "is %d: want a number from 1", g.Group)
		case !g.At.IsZero() && g.Group != 0:
			return at(place+".at", "want either a group or at")
		case g.Each != "" && (g.At.IsZero() || g.PerPort):
			return at(place+".at", "the group is for each %s: want its number, as in at: 100 + $port", g.Each)
		case !g.To.IsZero() && g.Members != "":
			return at(place+".to", "want either members or to")
		case !g.To.IsZero():
		case g.Members == "":
			return at(place+".members", "is missing: want %s", strings.Join(wordNames(g.Members), ", "))
		case g.Members == MembersOnward && !g.PerPort:
			return at(place+".per_port", "the members onward depend on where a packet came in: want per_port: true")
		case (g.Members == MembersPorts) != (len(g.Ports) > 0):
			return at(place+".ports", "the members are %s: want a list of ports with the members ports alone", g.Members)
		}
	}
	for i, v := range m.VirtualPorts {
		if v.Port < 1 {
			return at(fmt.Sprintf("virtual_ports[%d].port", i), "is %d: want a number from 1", v.Port)
		}
	}
	for i, v := range m.VirtualAddresses {
		place := fmt.Sprintf("virtual_addresses[%d]", i)
		if a, err := netip.ParseAddr(v.Address); err != nil || a.Zone() != "" {
			return at(place+".address", "%q: want an address such as 10.0.2.100 or 2001:db8::100", v.Address)
		}
		if mac, err := net.ParseMAC(v.MAC); v.MAC != "" && (err != nil || len(mac) != 6) {
			return at(place+".mac", "%q: want a MAC address such as 02:00:00:00:01:00", v.MAC)
		}
	}
	return nil
}

// ValidateTasks checks that tasks have the fields that their kinds require.
func (m *Manifest) ValidateTasks() error {
	for i := range m.Tasks {
		if err := m.validateTask(&m.Tasks[i], fmt.Sprintf("tasks[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manifest) validateTask(t *Task, place string) error {
	if t.Kind == "" {
		return at(place+".kind", "is missing: want %s", strings.Join(wordNames(t.Kind), ", "))
	}
	if err := checkWords(place+".kind", reflect.ValueOf(t.Kind)); err != nil {
		return err
	}
	needs := t.Kind.needs()
	if err := m.validateFrame(t, needs.Header, place); err != nil {
		return err
	}
	for _, part := range needs.Registers {
		if t.Registers[part] == "" {
			return at(place+".registers", "task %s wants a register for %s", t.Kind, part)
		}
	}
	if len(needs.Either) > 0 && !slices.ContainsFunc(needs.Either, func(p Part) bool { return t.Registers[p] != "" }) {
		return at(place+".registers", "task %s wants a register for %v or %v", t.Kind, needs.Either[0], needs.Either[1])
	}
	for part, label := range t.Registers {
		if !m.knows(label) && m.Register(label) == nil {
			return at(fmt.Sprintf("%s.registers.%s", place, part), "there is no register %q%s", label, plain.Meant(label, m.labels()))
		}
	}
	value := reflect.ValueOf(t).Elem()
	for _, f := range tree.FieldsOf(value.Type()) {
		if slices.Contains(needs.Fields, f.Key) && value.FieldByIndex(f.Index).IsZero() {
			return at(place+"."+f.Key, "is missing: task %s wants it", t.Kind)
		}
	}
	if err := t.checkEach(place); err != nil {
		return err
	}
	if err := t.check(place+".where", t.Where); err != nil {
		return err
	}
	for k, f := range t.Frame {
		if err := t.checkFrame(fmt.Sprintf("%s.frame[%d]", place, k), f); err != nil {
			return err
		}
	}
	if err := t.check(place+".in", t.In); err != nil {
		return err
	}
	switch {
	case !t.In.IsZero() && t.Kind != SendFrame:
		return at(place+".in", "task %s sends no frame of yours: want the kind %s", t.Kind, SendFrame)
	case t.Returns != "" && t.Kind != SendFrame:
		return at(place+".returns", "task %s sends no frame of yours: want the kind %s", t.Kind, SendFrame)
	case t.Frame != nil && t.Kind != SendFrame:
		return at(place+".frame", "task %s sends no frame of yours: want the kind %s", t.Kind, SendFrame)
	case t.Kind == ProbeFlood && (t.Period == 0) == (t.Theta == 0):
		return at(place+".period", "task probe wants either a period or theta, which the period follows from")
	case t.Period != 0 && time.Duration(t.Period) < shortestPeriod:
		return at(place+".period", "%v is too short: want at least %v", time.Duration(t.Period), shortestPeriod)
	case needs.Filters && len(t.Filters) == 0:
		return at(place+".filters", "task %s wants the filters that it sets", t.Kind)
	}
	return nil
}

// shortestPeriod bounds the work of a controller: a simulation runs every task of every switch in each
// period.
const shortestPeriod = time.Microsecond

// checkFrame checks a field of a frame.
func (t *Task) checkFrame(place string, f FrameField) error {
	late := false
	f.Value.facts(func(name Fact, _ string) { late = late || slices.Contains(sendFacts, name) })
	if _, _, alone := f.Value.Fact(); late && !alone {
		return at(place, "%s: $%s and $%s stand alone, because they are known when the frame is sent", f.Value, SendTime, SendCount)
	}
	return t.check(place, f.Value, sendFacts...)
}

// validateFrame checks the header of a task's packets.
func (m *Manifest) validateFrame(t *Task, roles []FieldRole, place string) error {
	if len(roles) == 0 {
		return nil
	}
	h := m.HeaderNamed(t.Header)
	switch {
	case t.Header == "":
		return at(place+".header", "is missing: task %s wants the header of its packets", t.Kind)
	case h == nil:
		names := lists.Map(m.Headers, func(h Header) string { return h.Name })
		return at(place+".header", "there is no header %q%s", t.Header, plain.Meant(t.Header, names))
	case h.EtherType == 0:
		return at(place+".header", "header %s has no ether_type, by which its packets are known", t.Header)
	}
	for _, role := range roles {
		if !slices.ContainsFunc(h.Fields, func(f HeaderField) bool { return f.Carries == role }) {
			return at(place+".header", "header %s has no field that carries %s, which task %s sends", t.Header, role, t.Kind)
		}
	}
	return nil
}
