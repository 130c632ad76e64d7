package lab

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/sim"
)

// A deployment is the configuration of the switches of a run, with the methods to
// change it.
type deployment interface {
	// change replaces the plan of the switches.
	change(ctx context.Context, plan *plan.Plan) error
	close()
}

// directDeployment configures P4 programs by calls to the data plane. Packets see the
// same tables, groups and registers as after a deployment over P4Runtime.
type directDeployment struct{ switches map[string]*configured }

// A configured is a switch with its current plan.
type configured struct {
	sw      *dataplane.Switch
	tables  map[string]*bmv2.Table
	filters []plan.Filter
	entries map[string]heldEntry // nil: the plan never changes
	groups  map[uint32]bool
	mirrors map[uint32]bool
}

// A heldEntry is an entry of the current plan in a table. The default action has no
// handle.
type heldEntry struct {
	table, value string
	handle       dataplane.Handle
	preset       bool
	parts        *parts
}

// A parts holds the members and the group that an entry uses in an action profile.
type parts struct {
	profile string
	members []dataplane.Handle
	group   *dataplane.Handle // nil: the entry uses one member
}

func deployDirect(_ context.Context, r *running) (deployment, error) {
	chance := r.newChance()
	changes := slices.ContainsFunc(r.Case.Faults, func(f spec.Fault) bool { return f.Down || f.Known })
	d := directDeployment{map[string]*configured{}}
	for i, s := range r.planned.Switches {
		drops := &[bmv2.DropReasons]int64{}
		r.drops = append(r.drops, drops)
		cpu, seed := uint32(s.CPUPort), r.Seed+uint64(i)
		sw, err := chance.load(s.Pipeline.Config, dataplane.Options{
			CPU: &cpu, Looped: s.Looped(), Priorities: s.Pipeline.Manifest.Queues, Random: dataplane.Uniform(rand.NewPCG(seed, seed)),
			Endless: func(e dataplane.Ended) bool { r.faulty(s.Name + ": " + e.Endless()); return true },
			Digest:  func(d dataplane.Digest) { r.passDigest(s.Name, d) }, Dropped: func(_ uint32, why bmv2.DropReason) { drops[why]++ },
		})
		if err != nil {
			return nil, fmt.Errorf("deploying %s: %w", s.Name, err)
		}
		c := &configured{sw: sw, tables: map[string]*bmv2.Table{}, groups: map[uint32]bool{}, mirrors: map[uint32]bool{}}
		for _, p := range sw.Config().Pipelines {
			for _, t := range p.Tables {
				c.tables[t.Name] = t
			}
		}
		if changes {
			c.entries = map[string]heldEntry{}
		}
		if err := c.hold(s); err != nil {
			return nil, fmt.Errorf("deploying %s: %w", s.Name, err)
		}
		s.Entries = nil // drop the entries: large networks have millions
		chance.seed(sw, sim.Random(r.Seed, s.Name))
		r.load(s, sw)
		d.switches[s.Name] = c
	}
	return d, nil
}

// load makes a simulated switch run a program.
func (r *running) load(s *plan.Switch, sw *dataplane.Switch) {
	at := r.net.Switch(s.Name)
	at.Load(sw)
	if s.Pipeline.Manifest.Header(manifest.PauseHeader) != nil {
		at.PassPFC()
	}
}

func (d directDeployment) change(_ context.Context, p *plan.Plan) error {
	for _, s := range p.Switches {
		if err := d.switches[s.Name].hold(s); err != nil {
			return fmt.Errorf("deploying %s: %w", s.Name, err)
		}
	}
	return nil
}

func (directDeployment) close() {}

// hold applies a plan to the switch. It sets registers first, then new and changed objects in the
// order of the plan, and finally deletes all others.
func (c *configured) hold(s *plan.Switch) error {
	for _, r := range s.Registers {
		if err := c.sw.Registers().WriteRange(r.Register, r.From, r.To, new(big.Int).SetUint64(r.Value)); err != nil {
			return err
		}
	}
	for _, f := range s.Filters {
		if err := c.setFilter(f); err != nil {
			return err
		}
	}
	c.filters = s.Filters
	if err := c.replicate(s); err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, e := range s.Entries {
		var key string
		if c.entries != nil {
			key = fmt.Sprint(e.Key(), " ", e.Priority)
			wanted[key] = true
		}
		if err := c.put(key, e); err != nil {
			return err
		}
	}
	for key, e := range c.entries {
		if wanted[key] {
			continue
		}
		if err := c.remove(e); err != nil {
			return err
		}
		delete(c.entries, key)
	}
	return nil
}

// setFilter configures the cells of a filter, unless they have this configuration: setting it
// again would restart them.
func (c *configured) setFilter(f plan.Filter) error {
	if slices.Contains(c.filters, f) {
		return nil
	}
	for _, a := range c.sw.Config().FilterArrays {
		if !f.Is(plan.Filter{Name: a.Name}) {
			continue
		}
		for i := range a.Size {
			if err := c.sw.Filters().Set(a.Name, i, dataplane.FilterSpec{Rate: !f.Sample, Gain: f.Time, Decay: f.Time, Shift: f.Shift}); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("the program has no filter %s", f.Name)
}

// firstSession is the multicast group of clone session 0, as in P4Runtime servers.
const firstSession = 1 << 15

// replicate sets clone sessions and multicast groups.
func (c *configured) replicate(s *plan.Switch) error {
	groups, mirrors := map[uint32]bool{}, map[uint32]bool{}
	set := func(id uint32, ports []int) error {
		groups[id] = true
		var list []dataplane.Replica
		for _, p := range ports {
			list = append(list, dataplane.Replica{Port: uint32(p), Instance: 1})
		}
		return c.sw.Replication().SetGroup(id, list)
	}
	for _, m := range s.Sessions {
		id := uint32(m.ID)
		mirrors[id] = true
		if err := c.sw.Mirrors().Set(id, dataplane.MirrorSession{Group: firstSession + id, Length: m.Bytes}); err != nil {
			return err
		}
		if err := set(firstSession+id, []int{m.Port}); err != nil {
			return err
		}
	}
	for _, g := range s.Groups {
		if err := set(uint32(g.ID), g.Ports); err != nil {
			return err
		}
	}
	for id := range c.mirrors {
		if !mirrors[id] {
			if err := c.sw.Mirrors().Delete(id); err != nil {
				return err
			}
		}
	}
	for id := range c.groups {
		if !groups[id] {
			if err := cmp.Or(c.sw.Replication().SetGroup(id, nil), c.sw.Replication().DeleteGroup(id)); err != nil {
				return err
			}
		}
	}
	c.groups, c.mirrors = groups, mirrors
	return nil
}

// put adds or changes an entry.
func (c *configured) put(key string, e plan.Entry) error {
	if c.tables[e.Table] == nil {
		return fmt.Errorf("the program has no table %s", e.Table)
	}
	var value string
	if c.entries != nil {
		value = fmt.Sprint(e.Action, e.Args, e.OneOf)
	}
	had, ok := c.entries[key]
	if ok && had.value == value {
		return nil
	}
	t, parts, err := c.target(e)
	if err != nil {
		return err
	}
	h := heldEntry{table: e.Table, value: value, handle: had.handle, preset: e.Match == nil, parts: parts}
	switch {
	case h.preset:
		err = c.sw.Tables().SetDefault(e.Table, t)
	case ok:
		err = c.sw.Tables().Modify(e.Table, had.handle, t)
	default:
		var entry dataplane.Entry
		if entry, err = c.entry(e); err == nil {
			entry.Target = t
			h.handle, err = c.sw.Tables().Add(e.Table, entry)
		}
	}
	if c.entries != nil {
		c.entries[key] = h
	}
	return cmp.Or(err, c.drop(had.parts))
}

func (c *configured) remove(e heldEntry) error {
	if e.preset {
		return cmp.Or(c.sw.Tables().ResetDefault(e.table), c.drop(e.parts))
	}
	return cmp.Or(c.sw.Tables().Delete(e.table, e.handle), c.drop(e.parts))
}

// drop deletes the members and the group that an entry used.
func (c *configured) drop(p *parts) error {
	if p == nil {
		return nil
	}
	if p.group != nil {
		if err := c.sw.Profiles().DeleteGroup(p.profile, *p.group); err != nil {
			return err
		}
	}
	for _, m := range p.members {
		if err := c.sw.Profiles().DeleteMember(p.profile, m); err != nil {
			return err
		}
	}
	return nil
}

// entry converts the match of an entry.
func (c *configured) entry(e plan.Entry) (dataplane.Entry, error) {
	key, _, err := c.sw.Tables().Key(e.Table)
	if err != nil {
		return dataplane.Entry{}, err
	}
	out := dataplane.Entry{Match: make([]dataplane.Match, len(key)), Priority: math.MaxInt32 - e.Priority}
	for i, f := range key {
		out.Match[i] = matchOf(f, e.Match[i])
	}
	return out, nil
}

// matchOf converts the match of a key field.
func matchOf(f dataplane.KeyField, m plan.Match) dataplane.Match {
	all := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(f.Width)), big.NewInt(1))
	value := wide(m.Upper, m.Value)
	switch f.Kind {
	case dataplane.MatchLPM:
		if m.Any || m.Bits == 0 {
			return dataplane.Match{Value: []byte{0}}
		}
		return dataplane.Match{Value: value, PrefixLen: m.Bits}
	case dataplane.MatchTernary:
		low := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(max(0, f.Width-m.Bits))), big.NewInt(1))
		mask := low.Xor(low, all)
		if m.Mask != nil {
			mask = new(big.Int).SetUint64(*m.Mask)
		}
		if m.Any || mask.Sign() == 0 {
			return dataplane.Match{Value: []byte{0}, Mask: []byte{0}}
		}
		v := new(big.Int).SetBytes(value)
		return dataplane.Match{Value: shortest(v.And(v, mask)), Mask: shortest(mask)}
	case dataplane.MatchRange:
		if m.Any {
			return dataplane.Match{Value: []byte{0}, High: shortest(all)}
		}
		high := m.Value
		if m.High != nil {
			high = *m.High
		}
		return dataplane.Match{Value: value, High: wide(0, high)}
	case dataplane.MatchOptional:
		if m.Any {
			return dataplane.Match{}
		}
	}
	return dataplane.Match{Value: value}
}

// target converts the action of an entry. An entry of a table with an action profile gets
// a member, and with OneOf a group with a member for each action.
func (c *configured) target(e plan.Entry) (dataplane.Target, *parts, error) {
	p := &parts{profile: c.tables[e.Table].ActionProfile}
	calls := e.OneOf
	if len(calls) == 0 {
		calls = []plan.Call{{Action: e.Action, Args: e.Args}}
	}
	for _, one := range calls {
		call, err := c.call(e.Table, one)
		if err != nil {
			return dataplane.Target{}, nil, err
		}
		if p.profile == "" {
			return dataplane.Target{Action: call}, nil, nil
		}
		member, err := c.sw.Profiles().AddMember(p.profile, call)
		if err != nil {
			return dataplane.Target{}, nil, err
		}
		p.members = append(p.members, member)
	}
	if len(e.OneOf) == 0 {
		return dataplane.Target{Kind: dataplane.TargetMember, Index: p.members[0]}, p, nil
	}
	group, err := c.sw.Profiles().AddGroup(p.profile)
	for _, m := range p.members {
		err = cmp.Or(err, c.sw.Profiles().AddToGroup(p.profile, group, m))
	}
	p.group = &group
	return dataplane.Target{Kind: dataplane.TargetGroup, Index: group}, p, err
}

// call converts an action, which a plan names without its control.
func (c *configured) call(table string, from plan.Call) (dataplane.ActionCall, error) {
	t := c.tables[table]
	i := slices.IndexFunc(t.Actions, func(name string) bool {
		return name == from.Action || strings.HasSuffix(name, "."+from.Action)
	})
	if i < 0 {
		return dataplane.ActionCall{}, fmt.Errorf("table %s: unknown action %s", table, from.Action)
	}
	call := dataplane.ActionCall{Name: t.Actions[i]}
	for _, a := range from.Args {
		call.Params = append(call.Params, wide(a.Upper, a.Value))
	}
	return call, nil
}

// wide returns a number of up to 128 bits in as few big-endian bytes as possible.
func wide(upper, lower uint64) []byte {
	b := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, upper), lower)
	return shortest(new(big.Int).SetBytes(b))
}

func shortest(v *big.Int) []byte {
	if v.Sign() == 0 {
		return []byte{0}
	}
	return v.Bytes()
}

// A chance provides the random numbers of a switch, which depend on the run's seed and the
// switch's name. The name is set after the switch has been created.
type chance struct {
	mu      sync.Mutex
	configs map[string]*bmv2.Config
	sources map[*dataplane.Switch]*drawing

	rounds int // limit on the rounds of a packet: see dataplane.Options
	ended  func(dataplane.Ended)
}

type drawing struct{ draw func(lo, hi uint64) uint64 }

func (r *running) newChance() *chance {
	return &chance{configs: map[string]*bmv2.Config{}, sources: map[*dataplane.Switch]*drawing{}, rounds: r.rounds, ended: r.packetEnded}
}

// load links a program. The program is parsed once for all switches that run it.
func (c *chance) load(program []byte, o dataplane.Options) (*dataplane.Switch, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	config := c.configs[string(program)]
	if config == nil {
		var err error
		if config, err = bmv2.Load(program); err != nil {
			return nil, err
		}
		c.configs[string(program)] = config
	}
	o.Rounds, o.Ended = c.rounds, c.ended
	d := &drawing{o.Random}
	o.Random = func(lo, hi uint64) uint64 { return d.draw(lo, hi) }
	sw, err := dataplane.New(config, o)
	if err == nil {
		c.sources[sw] = d
	}
	return sw, err
}

func (c *chance) seed(sw *dataplane.Switch, draw func(lo, hi uint64) uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sources[sw].draw = draw
}
