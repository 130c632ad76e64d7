package dataplane

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/examples"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/program"
	"github.com/p4lb/p4lb/internal/p4"
)

// twins are two switches with the same program and the same entries. One runs
// machine code, the other closures.
type twins struct {
	engines [2]*Engine
	said    [2]bytes.Buffer // digests and logs
}

// newTwins returns two switches, or nil if both refuse the program.
func newTwins(t testing.TB, c *bmv2.Config, fill func(*Switch)) *twins {
	t.Helper()
	w := new(twins)
	var errs [2]error
	for i := range w.engines {
		out := &w.said[i]
		s, err := New(c, Options{
			Closures: i == 1,
			Digest:   func(d Digest) { fmt.Fprintln(out, d.List, d.Data) },
			Log:      func(line string) { fmt.Fprintln(out, line) },
		})
		if errs[i] = err; err != nil {
			continue
		}
		fill(s)
		w.engines[i] = NewEngine(s)
	}
	if fmt.Sprint(errs[0]) != fmt.Sprint(errs[1]) {
		t.Fatalf("one is refused with %v, the other with %v", errs[0], errs[1])
	}
	if errs[0] != nil {
		return nil
	}
	return w
}

// process sends a packet through both switches and compares the packets that
// leave.
func (w *twins) process(t testing.TB, port uint32, packet []byte, now time.Duration) {
	t.Helper()
	out := [2][]Out{w.engines[0].Process(port, packet, now), w.engines[1].Process(port, packet, now)}
	same := slices.EqualFunc(out[0], out[1], func(a, b Out) bool { return a.Port == b.Port && bytes.Equal(a.Data, b.Data) })
	if !same {
		t.Fatalf("packet %x at port %d:\ncompiled %v\nclosures %v", packet, port, out[0], out[1])
	}
	if a, b := w.said[0].String(), w.said[1].String(); a != b {
		t.Fatalf("packet %x at port %d:\ncompiled says %q\nclosures say %q", packet, port, a, b)
	}
	w.said[0].Reset()
	w.said[1].Reset()
}

// compare compares registers, counters and entries after the packets.
func (w *twins) compare(t testing.TB) {
	t.Helper()
	a, b := w.engines[0].sw, w.engines[1].sw
	for name, r := range a.prog.Registers {
		if !slices.Equal(r.Cells, b.prog.Registers[name].Cells) {
			t.Errorf("register %s differs", name)
		}
	}
	for name, c := range a.prog.Counters {
		if !slices.Equal(c.Cells, b.prog.Counters[name].Cells) {
			t.Errorf("counter %s differs", name)
		}
	}
	for name, x := range a.prog.Tables {
		y := b.prog.Tables[name]
		if x.Missed != y.Missed {
			t.Errorf("table %s: %v misses and %v", name, x.Missed, y.Missed)
		}
		for i := range x.Entries {
			if x.Entries[i].Counter != y.Entries[i].Counter || x.Entries[i].LastHit != y.Entries[i].LastHit {
				t.Errorf("table %s: entry %d differs", name, i)
			}
		}
	}
	if w.engines[0].Drops() != w.engines[1].Drops() {
		t.Errorf("%d packets found no room, and %d", w.engines[0].Drops(), w.engines[1].Drops())
	}
}

// populate gives the tables of a switch entries, sessions and groups, which
// depend on the seed alone.
func populate(s *Switch, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 2))
	params := map[string][]bmv2.RuntimeParam{}
	for _, a := range s.prog.Config.Actions {
		params[a.Name] = a.RuntimeData
	}
	target := func(t *bmv2.Table) Target {
		call := ActionCall{Name: t.Actions[r.IntN(len(t.Actions))]}
		for _, d := range params[call.Name] {
			call.Params = append(call.Params, number(r, d.Bitwidth))
		}
		return Target{Action: call}
	}
	for _, pl := range s.prog.Config.Pipelines {
		for _, t := range pl.Tables {
			tb := s.prog.Tables[t.Name]
			if len(t.Actions) == 0 || tb.Profile != nil {
				continue
			}
			for range r.IntN(8) {
				e := Entry{Priority: r.IntN(4), Target: target(t)}
				for i := range tb.Key.Fields {
					e.Match = append(e.Match, match(r, &tb.Key.Fields[i]))
				}
				_, _ = s.Tables().Add(t.Name, e) // some are there already
			}
			if r.IntN(2) == 0 {
				_ = s.Tables().SetDefault(t.Name, target(t)) // some are fixed
			}
		}
	}
	for _, session := range []uint32{5, 7, 500, 1003} {
		_ = s.Mirrors().Set(session, MirrorSession{Port: session % 502, HasPort: true, Group: session % 4})
	}
	for _, group := range []uint32{1, 3} {
		_ = s.Replication().SetGroup(group, []Replica{{1, 1}, {2, 2}})
	}
}

// number returns a number of at most width bits, usually a small one.
func number(r *rand.Rand, width int) []byte {
	b := make([]byte, (width+7)/8)
	last := len(b) - 1
	b[last] = byte(r.IntN(6))
	if r.IntN(4) == 0 {
		for i := range b {
			b[i] = byte(r.Uint32())
		}
	}
	if width%8 != 0 {
		b[0] &= byte(num.Mask64(width % 8))
	}
	return b
}

func match(r *rand.Rand, f *program.KeyField) Match {
	m := Match{Value: number(r, f.Width)}
	switch f.Kind {
	case MatchLPM:
		m.PrefixLen = r.IntN(f.Width + 1)
	case MatchTernary:
		m.Mask = number(r, f.Width)
	case MatchRange:
		m.High = bytes.Repeat([]byte{0xff}, len(m.Value))
		if f.Width%8 != 0 {
			m.High[0] = byte(num.Mask64(f.Width % 8))
		}
	case MatchValid:
		m.Value = []byte{byte(r.IntN(2))}
	}
	return m
}

// traffic returns a packet that most programs process or refuse.
func traffic(r *rand.Rand) []byte {
	p := udp(60+r.IntN(60), uint32(r.IntN(4)), 0x0a000000+uint32(r.IntN(3)), uint16(r.IntN(4)), uint16(r.IntN(3)))
	if r.IntN(3) == 0 {
		p[23] = 6
	}
	if r.IntN(3) == 0 { // a scheme's own header
		p = slices.Concat(p[:12], []byte{0x88, 0xB5 + byte(r.IntN(3)), byte(r.IntN(4)), byte(r.IntN(2)), byte(r.IntN(4)), 0, 0, 0, byte(r.Uint32())}, p[14:])
	}
	for range r.IntN(3) {
		p[r.IntN(len(p))] = byte(r.Uint32())
	}
	if r.IntN(8) == 0 {
		p = p[:r.IntN(len(p))]
	}
	return p
}

// Machine code and closures give the same bits: all rows of the catalogue, the
// examples, and programs compiled by p4c.
func TestCompiledIsEqual(t *testing.T) {
	list := programs(t)
	maps.Copy(list, schemes(t, codegen.Names()...))
	maps.Copy(list, pipeRows(t, bmv2.TNA))
	maps.Copy(list, pipeRows(t, bmv2.T2NA))
	for _, name := range []string{"reflector", "router", "flowlet", "feedback"} {
		out, err := p4.Compile(examples.FS, name+".p4", p4.Options{})
		must(t, err)
		list["examples/"+name] = out.JSON()
	}
	seeds := uint64(4)
	if testing.Short() { // under the race detector each takes long
		seeds = 1
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		t.Run(name, func(t *testing.T) {
			c, err := bmv2.Load(list[name])
			must(t, err)
			for seed := range seeds {
				w := newTwins(t, c, func(s *Switch) { populate(s, seed) })
				if asm.Supported && w.engines[0].sw.prog.Compiled == nil {
					t.Fatal("the program is not compiled")
				}
				r := rand.New(rand.NewPCG(seed, 3))
				now := time.Second
				for range 200 {
					now += time.Duration(r.IntN(300)) * time.Microsecond
					w.process(t, uint32(r.IntN(6)), traffic(r), now)
				}
				w.compare(t)
			}
		})
	}
}

// Changes to a running switch take effect in machine code: entries, default
// actions, registers.
func TestCompiledSeesTheControlPlane(t *testing.T) {
	s := load(t, "router", Options{})
	e := NewEngine(s)
	packet := udp(64, 1, 0x0a000001, 1, 2)
	ports := func() (list []uint32) {
		for _, o := range e.Process(1, packet, time.Second) {
			list = append(list, o.Port)
		}
		return list
	}
	if got := ports(); len(got) != 0 {
		t.Fatalf("without entries the packet leaves at %v", got)
	}
	entry := func(port uint64) Entry {
		return Entry{Match: []Match{{Value: be(0x0a000000, 4), PrefixLen: 8}}, Target: act("I.route", be(port, 2), be(1, 6))}
	}
	h, err := s.Tables().Add("I.routes", entry(3))
	must(t, err)
	if got := ports(); !slices.Equal(got, []uint32{3}) {
		t.Errorf("with an entry for port 3 the packet leaves at %v", got)
	}
	must(t, s.Tables().Modify("I.routes", h, entry(4).Target))
	if got := ports(); !slices.Equal(got, []uint32{4}) {
		t.Errorf("with an entry for port 4 the packet leaves at %v", got)
	}
	must(t, s.Tables().Delete("I.routes", h))
	must(t, s.Tables().SetDefault("I.routes", act("I.route", be(5, 2), be(1, 6))))
	if got := ports(); !slices.Equal(got, []uint32{5}) {
		t.Errorf("with a default for port 5 the packet leaves at %v", got)
	}
}

// Switches with the same program share its machine code.
func TestCompiledIsShared(t *testing.T) {
	a, b, c := load(t, "router", Options{}), load(t, "router", Options{}), load(t, "flowlet", Options{})
	if !asm.Supported {
		t.Skip("machine code cannot be run here")
	}
	if a.prog.Compiled.Code != b.prog.Compiled.Code || a.prog.Compiled.Code == c.prog.Compiled.Code {
		t.Error("code is shared by the wrong switches")
	}
}
