package main

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/tools/differential/internal/generator"
	"github.com/p4lb/p4lb/tools/differential/internal/source"
)

// A result is the outcome of the comparison of one program.
type result struct {
	err     error // the difference, or nil
	packets int   // number of packets compared
	skipped int   // number of packets with undefined results, not compared
	applied int   // number of tables applied to packets
}

// An engine is one of p4lb's engines running a program.
type engine struct {
	name    string
	counted []counted
	sw      *dataplane.Switch
	e       *dataplane.Engine
	digests [][]byte
}

// A counted is an entry with a direct counter.
type counted struct {
	table  string
	handle dataplane.Handle
	entry  *source.Entry
}

// compare compiles a program and sends its packets through both engines and the
// evaluator. A packet whose result the specification leaves undefined ends the
// comparison, because the state after it is undefined too.
func compare(c *generator.Case, wrong bool) (r result) {
	defer func() {
		if p := recover(); p != nil {
			r.err = fmt.Errorf("panic: %v", p)
		}
	}()
	text := c.Program.Text()
	compiled, err := p4.CompileText("p.p4", []byte(text), p4.Options{})
	if err != nil {
		r.err = fmt.Errorf("refused: %s", mistakes(err))
		return r
	}
	var engines []*engine
	for _, closures := range []bool{false, true} {
		e, err := start(c.Program, compiled.Config, closures)
		if err != nil {
			r.err = fmt.Errorf("setup: %w", err)
			return r
		}
		engines = append(engines, e)
	}
	c.Program.Reset()
	m := &source.Machine{Prog: c.Program, Wrong: wrong}
	now := time.Second
	for i, in := range c.Packets {
		now += time.Millisecond
		if err := m.Process(in.Port, in.Data); err != nil {
			r.skipped = len(c.Packets) - i
			return r
		}
		var errs []error
		var names []string
		for _, e := range engines {
			if err := e.packet(m, in, now); err != nil {
				errs, names = append(errs, err), append(names, e.name)
			}
		}
		if len(errs) > 0 {
			r.err = fmt.Errorf("%s: packet %d at port %d: %x\n%w", strings.Join(names, " and "), i, in.Port, in.Data, errs[0])
			return r
		}
		r.packets++
	}
	r.applied = m.Applied
	for _, e := range engines {
		if err := e.state(c.Program); err != nil {
			r.err = fmt.Errorf("%s: after %d packets: %w", e.name, len(c.Packets), err)
			return r
		}
	}
	return r
}

// mistakes returns the lines of an error except warnings.
func mistakes(err error) string {
	lines := strings.Split(err.Error(), "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, " warning: ") }), "\n")
}

// start creates a switch with the entries of a program.
func start(p *source.Program, config *bmv2.Config, closures bool) (*engine, error) {
	e := &engine{name: "machine code"}
	if closures {
		e.name = "closures"
	}
	var err error
	// The evaluator bounds the copies of a packet itself.
	e.sw, err = dataplane.New(config, dataplane.Options{Closures: closures, Rounds: 1 << 62, Digest: func(d dataplane.Digest) {
		e.digests = append(e.digests, bytes.Clone(d.Data))
	}})
	if err != nil {
		return nil, err
	}
	e.e = dataplane.NewEngine(e.sw)
	return e, e.configure(p)
}

// configure sets up tables, value sets, sessions and groups.
func (e *engine) configure(p *source.Program) (err error) {
	p.Tables(func(control string, t *source.Table) {
		name := control + "." + t.Name
		if _, missing := e.sw.Tables().Count(name); missing != nil || err != nil {
			return // the compiler has removed the table, because no packet reaches it
		}
		var members, groups []dataplane.Handle
		if t.Profile != nil {
			members, groups, err = e.profile(control, t)
		}
		for _, x := range t.Runtime {
			if err != nil {
				return
			}
			entry := e.entry(t, x)
			switch {
			case t.Profile == nil:
				entry.Target.Action = call(control, t, x.Do)
			case x.Do.Group:
				entry.Target = dataplane.Target{Kind: dataplane.TargetGroup, Index: groups[x.Do.Action]}
			default:
				entry.Target = dataplane.Target{Kind: dataplane.TargetMember, Index: members[x.Do.Action]}
			}
			var h dataplane.Handle
			if h, err = e.sw.Tables().Add(name, entry); t.Counted {
				e.counted = append(e.counted, counted{name, h, x})
			}
		}
	})
	for _, m := range p.Meters {
		for i, bursts := range m.Bursts {
			if bursts != nil {
				rates := []dataplane.MeterRate{{Burst: uint64(bursts[0])}, {Burst: uint64(bursts[1])}}
				err = errors.Join(err, e.sw.Meters().Set(m.Name, i, rates))
			}
		}
	}
	for _, v := range p.Parser.Sets {
		var list []dataplane.SetMember
		for _, m := range v.Members {
			list = append(list, dataplane.SetMember{Value: m.Value.Bytes(), Mask: m.Mask.Bytes()})
		}
		err = errors.Join(err, e.sw.ValueSets().Set(p.Parser.Name+"."+v.Name, list))
	}
	for id, port := range p.Sessions {
		err = errors.Join(err, e.sw.Mirrors().Set(id, dataplane.MirrorSession{Port: port, HasPort: true}))
	}
	for id, list := range p.Groups {
		var replicas []dataplane.Replica
		for _, r := range list {
			replicas = append(replicas, dataplane.Replica{Port: r.Port, Instance: r.RID})
		}
		err = errors.Join(err, e.sw.Replication().SetGroup(id, replicas))
	}
	return err
}

// profile adds the members and groups of a table's profile.
func (e *engine) profile(control string, t *source.Table) (members, groups []dataplane.Handle, err error) {
	name := control + "." + t.Profile.Name
	for _, do := range t.Profile.Members {
		h, e := e.sw.Profiles().AddMember(name, call(control, t, do))
		members, err = append(members, h), errors.Join(err, e)
	}
	for _, list := range t.Profile.Groups {
		h, e2 := e.sw.Profiles().AddGroup(name)
		groups, err = append(groups, h), errors.Join(err, e2)
		for _, i := range list {
			err = errors.Join(err, e.sw.Profiles().AddToGroup(name, h, members[i]))
		}
	}
	return members, groups, err
}

// entry returns an entry in the form of p4lb's control plane.
func (e *engine) entry(t *source.Table, x *source.Entry) dataplane.Entry {
	entry := dataplane.Entry{Priority: x.Priority}
	for i, k := range t.Keys {
		if k.Kind == "selector" {
			continue
		}
		c := x.Match[i]
		m := dataplane.Match{Value: number(c.Value)}
		switch k.Kind {
		case "ternary":
			m.Mask = number(c.Mask)
		case "lpm":
			m.PrefixLen = c.Prefix
		case "range":
			m.High = number(c.High)
		case "optional":
			// Like p4c, the compiler turns optional fields into ternary ones.
			m.Mask = number(source.Ones(k.Bits().Width))
			if c.Any {
				m.Value, m.Mask = []byte{0}, []byte{0}
			}
		}
		entry.Match = append(entry.Match, m)
	}
	return entry
}

func call(control string, t *source.Table, do source.Invoke) dataplane.ActionCall {
	a := dataplane.ActionCall{Name: control + "." + t.Actions[do.Action].Action.Name}
	for _, v := range do.Args {
		a.Params = append(a.Params, number(v))
	}
	return a
}

// number returns a number as bytes, at least one.
func number(v *big.Int) []byte {
	if v.Sign() == 0 {
		return []byte{0}
	}
	return v.Bytes()
}

// packet sends a packet through the engine and compares the packets that leave with
// the evaluator's.
func (e *engine) packet(m *source.Machine, in generator.Input, now time.Duration) error {
	e.digests = nil
	var got, want []string
	collect := func(list []dataplane.Out) {
		for _, o := range list {
			got = append(got, fmt.Sprintf("port %d: %s", o.Port, hex.EncodeToString(o.Data)))
		}
	}
	collect(e.e.Process(in.Port, bytes.Clone(in.Data), now))
	for range 100 {
		at, ok := e.e.Next()
		if !ok {
			break
		}
		collect(e.e.Run(max(at, now)))
	}
	for _, o := range m.Out {
		want = append(want, fmt.Sprintf("port %d: %s", o.Port, hex.EncodeToString(o.Data)))
	}
	for _, d := range e.digests {
		got = append(got, "digest: "+hex.EncodeToString(d))
	}
	for _, d := range m.Digests {
		want = append(want, "digest: "+hex.EncodeToString(d.Data))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("expected\n  %s\ngot\n  %s", strings.Join(want, "\n  "), strings.Join(got, "\n  "))
	}
	return nil
}

// state compares registers, counters and the counters of entries.
func (e *engine) state(p *source.Program) error {
	for _, r := range p.Registers {
		for i := range r.Size {
			want := r.Number(i)
			got, err := e.sw.Registers().Read(r.Name, i)
			if err != nil {
				return err
			}
			if want != nil && unsigned(got, r).Cmp(want) != 0 {
				return fmt.Errorf("register %s[%d]: expected %v, got %v", r.Name, i, want, got)
			}
		}
	}
	for _, c := range p.Counters {
		for i := range c.Size {
			got, err := e.sw.Counters().Read(c.Name, i)
			if err != nil {
				return err
			}
			if got.Packets != uint64(c.Packets[i]) {
				return fmt.Errorf("counter %s[%d]: expected %d packets, got %d", c.Name, i, c.Packets[i], got.Packets)
			}
		}
	}
	for _, c := range e.counted {
		got, err := e.sw.Tables().Counter(c.table, c.handle)
		if err != nil {
			return err
		}
		if got.Packets != uint64(c.entry.Hits) {
			return fmt.Errorf("entry %d of %s: expected %d packets, got %d", c.handle, c.table, c.entry.Hits, got.Packets)
		}
	}
	return nil
}

// unsigned returns the bits of a register's cell as a non-negative number.
func unsigned(v *big.Int, r *source.Register) *big.Int {
	if t, ok := r.Type.(source.Bits); ok && v.Sign() < 0 {
		return new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), uint(t.Width)))
	}
	return v
}

// entries formats the run-time entries of a program for people.
func entries(p *source.Program) string {
	var b strings.Builder
	p.Tables(func(control string, t *source.Table) {
		for _, x := range t.Runtime {
			fmt.Fprintf(&b, "entry of %s.%s: %s\n", control, t.Name, t.Entry(x))
		}
	})
	for _, v := range p.Parser.Sets {
		for _, m := range v.Members {
			fmt.Fprintf(&b, "member of %s: %#x &&& %#x\n", v.Name, m.Value, m.Mask)
		}
	}
	return b.String()
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
