package p4lb

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A Control changes and reads the tables, registers and other objects of one switch, like
// a controller of P4Runtime. A name may lack its first components if only one object has
// such an end: routes is Ingress.routes. Errors name the object, the value and the value that
// would be right. A Control must not be used by several goroutines at once.
type Control struct {
	sw *dataplane.Switch
	// owned holds the members and groups of entries in tables with an action profile, by table
	// and key.
	owned map[string]target
}

// An Entry is a table entry, by the names of the program.
//
// Values are numbers (10, 0x1f), IPv4 and IPv6 addresses, and MAC addresses. The
// value of a field that is matched by prefix is VALUE/LENGTH, of a ternary one
// VALUE &&& MASK, of a range LOW..HIGH. A single value matches itself, and a field
// that is left out matches any value.
type Entry struct {
	Table    string
	Match    map[string]string // nil: the table's default
	Priority int               // priority of ternary and range entries: the highest wins
	Action   string
	Args     map[string]string
	// OneOf lists the actions of an entry in a table with an action selector, one of which is
	// selected for each packet. Action and Args are then empty.
	OneOf []Call
}

// A Call is an action with its arguments.
type Call struct {
	Action string
	Args   map[string]string
}

// A Count is the value of a counter.
type Count struct{ Packets, Bytes uint64 }

// A Rate is a rate of a meter: bytes or packets per second, as the program declares the
// meter, and the burst that it allows.
type Rate struct {
	PerSecond float64
	Burst     uint64
}

// A target is the member or the group to which an entry of an action profile refers.
type target struct {
	profile string
	group   *dataplane.Handle // nil: a single member
	members []dataplane.Handle
}

func newControl(sw *dataplane.Switch) Control {
	return Control{sw: sw, owned: map[string]target{}}
}

// Insert adds an entry to a table, or sets the default.
func (c *Control) Insert(e Entry) error {
	return c.change(e, func(t *bmv2.Table, entry dataplane.Entry) error {
		_, err := c.sw.Tables().Add(t.Name, entry)
		return err
	})
}

// Modify changes the action of the entry with the same match and priority.
func (c *Control) Modify(e Entry) error {
	return c.change(e, func(t *bmv2.Table, entry dataplane.Entry) error {
		h, err := c.find(t, entry)
		if err != nil {
			return err
		}
		return c.sw.Tables().Modify(t.Name, h, entry.Target)
	})
}

// find returns the handle of the entry with the match and priority of e.
func (c *Control) find(t *bmv2.Table, e dataplane.Entry) (dataplane.Handle, error) {
	h, err := c.sw.Tables().Find(t.Name, e.Match, e.Priority)
	if errors.Is(err, dataplane.ErrBadHandle) {
		return h, errors.New("there is no entry with this match and priority")
	}
	return h, err
}

// locate returns the entry of a table with the match and priority of e, and its handle.
func (c *Control) locate(t *bmv2.Table, e Entry) (entry dataplane.Entry, h dataplane.Handle, err error) {
	if entry, err = c.entry(t.Name, e); err == nil {
		h, err = c.find(t, entry)
	}
	return entry, h, inTable(t.Name, err)
}

// inTable adds the name of a table to an error, unless the error begins with it.
func inTable(name string, err error) error {
	prefix := "table " + name + ": "
	if err == nil || strings.HasPrefix(err.Error(), prefix) {
		return err
	}
	return fmt.Errorf("%s%w", prefix, err)
}

// Delete removes the entry with the match and priority of e; without a match it restores
// the program's default action.
func (c *Control) Delete(e Entry) error {
	t, err := c.table(e.Table)
	if err != nil {
		return err
	}
	if e.Match == nil {
		return c.sw.Tables().ResetDefault(t.Name)
	}
	entry, h, err := c.locate(t, e)
	if err != nil {
		return err
	}
	if err := c.sw.Tables().Delete(t.Name, h); err != nil {
		return inTable(t.Name, err)
	}
	key := keyOf(t.Name, entry)
	c.free(c.owned[key])
	delete(c.owned, key)
	return nil
}

// change creates the target of an entry and passes the entry to apply. It frees the replaced
// target, or the new one if the change failed.
func (c *Control) change(e Entry, apply func(*bmv2.Table, dataplane.Entry) error) error {
	t, err := c.table(e.Table)
	if err != nil {
		return err
	}
	fail := func(err error) error { return inTable(t.Name, err) }
	var entry dataplane.Entry
	if e.Match != nil {
		if entry, err = c.entry(t.Name, e); err != nil {
			return fail(err)
		}
	}
	made := target{profile: t.ActionProfile}
	if entry.Target, err = c.target(t, e, &made); err == nil {
		if e.Match == nil {
			err = c.sw.Tables().SetDefault(t.Name, entry.Target)
		} else {
			err = apply(t, entry)
		}
	}
	if err != nil {
		c.free(made)
		return fail(err)
	}
	if t.ActionProfile != "" {
		key := keyOf(t.Name, entry)
		c.free(c.owned[key])
		c.owned[key] = made
	}
	return nil
}

// keyOf identifies an entry of a table.
func keyOf(table string, e dataplane.Entry) string { return fmt.Sprint(table, e.Priority, e.Match) }

// target creates the target of an entry, and records its members and group in made.
func (c *Control) target(t *bmv2.Table, e Entry, made *target) (dataplane.Target, error) {
	calls := e.OneOf
	switch {
	case len(calls) > 0 && e.Action != "":
		return dataplane.Target{}, fmt.Errorf("an entry with OneOf has the action %s as well: want one of both", e.Action)
	case len(calls) > 0 && t.Type != bmv2.TableIndirectSelect:
		return dataplane.Target{}, errors.New("has no action selector: want Action in place of OneOf")
	case len(calls) == 0:
		calls = []Call{{e.Action, e.Args}}
	}
	for _, call := range calls {
		action, err := c.call(t, call.Action, call.Args)
		if err != nil || t.ActionProfile == "" {
			return dataplane.Target{Action: action}, err
		}
		h, err := c.sw.Profiles().AddMember(t.ActionProfile, action)
		if err != nil {
			return dataplane.Target{}, err
		}
		made.members = append(made.members, h)
	}
	if len(e.OneOf) == 0 {
		return dataplane.Target{Kind: dataplane.TargetMember, Index: made.members[0]}, nil
	}
	group, err := c.sw.Profiles().AddGroup(t.ActionProfile)
	if err != nil {
		return dataplane.Target{}, err
	}
	made.group = &group
	for _, h := range made.members {
		if err := c.sw.Profiles().AddToGroup(t.ActionProfile, group, h); err != nil {
			return dataplane.Target{}, err
		}
	}
	return dataplane.Target{Kind: dataplane.TargetGroup, Index: group}, nil
}

// free removes a group and members that no entry uses.
func (c *Control) free(t target) {
	if t.group != nil {
		for _, h := range t.members {
			c.sw.Profiles().RemoveFromGroup(t.profile, *t.group, h)
		}
		c.sw.Profiles().DeleteGroup(t.profile, *t.group)
	}
	for _, h := range t.members {
		c.sw.Profiles().DeleteMember(t.profile, h)
	}
}

// Tables returns the names of the tables.
func (c *Control) Tables() []string { return slices.Sorted(maps.Keys(c.tables())) }

// tables returns the tables that are in the program's source, by name.
func (c *Control) tables() map[string]*bmv2.Table {
	all := map[string]*bmv2.Table{}
	for _, p := range c.sw.Config().Pipelines {
		for _, t := range p.Tables {
			if !t.Hidden() {
				all[t.Name] = t
			}
		}
	}
	return all
}

// Len returns the number of entries of a table.
func (c *Control) Len(table string) (int, error) {
	t, err := c.table(table)
	if err != nil {
		return 0, err
	}
	return c.sw.Tables().Count(t.Name)
}

// topPriority turns priorities around: within the switch the smallest wins.
const topPriority = 1 << 30

// entry returns the entry for a table.
func (c *Control) entry(table string, e Entry) (dataplane.Entry, error) {
	fields, ordered, err := c.sw.Tables().Key(table)
	if err != nil {
		return dataplane.Entry{}, err
	}
	entry := dataplane.Entry{Match: make([]dataplane.Match, len(fields))}
	if ordered {
		entry.Priority = topPriority - e.Priority
	}
	names := lists.Map(fields, func(f dataplane.KeyField) string { return f.Name })
	given := map[string]string{}
	for short, value := range e.Match {
		name, err := named("key field", short, names)
		if err != nil {
			return entry, err
		}
		given[name] = value
	}
	for i, f := range fields {
		value, ok := given[f.Name]
		if entry.Match[i], err = match(f, value, ok); err != nil {
			return entry, fmt.Errorf("key field %s: %w", f.Name, err)
		}
	}
	return entry, nil
}

// match returns the match of a key field; without a text it matches any value.
func match(f dataplane.KeyField, text string, given bool) (dataplane.Match, error) {
	all := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(f.Width)), big.NewInt(1)).Bytes()
	separator := map[dataplane.MatchKind]string{dataplane.MatchLPM: "/", dataplane.MatchTernary: "&&&", dataplane.MatchRange: ".."}[f.Kind]
	switch {
	case !given && f.Kind == dataplane.MatchRange:
		return dataplane.Match{Value: []byte{0}, High: all}, nil
	case !given && separator == "" && f.Kind != dataplane.MatchOptional:
		return dataplane.Match{}, fmt.Errorf("want a value: it is matched %v", f.Kind)
	case !given:
		return dataplane.Match{}, nil
	}
	left, right, two := strings.Cut(text, separator)
	if separator == "" {
		left, two = text, false
	}
	v, err := number(strings.TrimSpace(left), f.Width)
	if err != nil || f.Kind == dataplane.MatchExact || separator == "" {
		return dataplane.Match{Value: v}, err
	}
	right = strings.TrimSpace(right)
	switch f.Kind {
	case dataplane.MatchLPM:
		length := f.Width
		if two {
			if length, err = strconv.Atoi(right); err != nil || length < 0 || length > f.Width {
				return dataplane.Match{}, fmt.Errorf("%q: want a length of at most %d behind the /", text, f.Width)
			}
		}
		return dataplane.Match{Value: v, PrefixLen: length}, nil
	case dataplane.MatchTernary:
		mask := all
		if two {
			mask, err = number(right, f.Width)
		}
		return dataplane.Match{Value: v, Mask: mask}, err
	}
	high := v
	if two {
		high, err = number(right, f.Width)
	}
	return dataplane.Match{Value: v, High: high}, err
}

// call returns an action of a table with its arguments.
func (c *Control) call(t *bmv2.Table, action string, args map[string]string) (dataplane.ActionCall, error) {
	if action == "" {
		return dataplane.ActionCall{}, fmt.Errorf("there is no action in the entry: want one of %s", strings.Join(t.Actions, ", "))
	}
	name, err := named("action", action, t.Actions)
	if err != nil {
		return dataplane.ActionCall{}, err
	}
	i := slices.IndexFunc(c.sw.Config().Actions, func(a *bmv2.Action) bool { return a.Name == name })
	call := dataplane.ActionCall{Name: name}
	var params []string
	for _, p := range c.sw.Config().Actions[i].RuntimeData {
		text, ok := args[p.Name]
		if !ok {
			return call, fmt.Errorf("action %s: want a value for %s", name, p.Name)
		}
		v, err := number(text, p.Bitwidth)
		if err != nil {
			return call, fmt.Errorf("action %s, %s: %w", name, p.Name, err)
		}
		call.Params = append(call.Params, v)
		params = append(params, p.Name)
	}
	for _, given := range slices.Sorted(maps.Keys(args)) {
		if !slices.Contains(params, given) {
			return call, fmt.Errorf("action %s has no parameter %s: it has %s", name, given, strings.Join(params, ", "))
		}
	}
	return call, nil
}

// Register returns a cell of a register whose value has at most 64 bits.
func (c *Control) Register(name string, index int) (uint64, error) {
	name, err := c.register(name)
	if err != nil {
		return 0, err
	}
	v, err := c.sw.Registers().Read(name, index)
	switch {
	case err != nil:
		return 0, err
	case !v.IsUint64():
		return 0, fmt.Errorf("register %s: cell %d is wider than 64 bits: want BigRegister", name, index)
	}
	return v.Uint64(), nil
}

// Registers returns all cells of a register of at most 64 bits.
func (c *Control) Registers(name string) ([]uint64, error) {
	name, err := c.register(name)
	if err != nil {
		return nil, err
	}
	return c.sw.Registers().Cells(name, nil)
}

// SetRegister sets a cell of a register.
func (c *Control) SetRegister(name string, index int, value uint64) error {
	return c.SetBigRegister(name, index, new(big.Int).SetUint64(value))
}

// BigRegister returns a cell of a register of any width.
func (c *Control) BigRegister(name string, index int) (*big.Int, error) {
	name, err := c.register(name)
	if err != nil {
		return nil, err
	}
	return c.sw.Registers().Read(name, index)
}

// BigRegisters returns all cells of a register of any width.
func (c *Control) BigRegisters(name string) ([]*big.Int, error) {
	name, err := c.register(name)
	if err != nil {
		return nil, err
	}
	return c.sw.Registers().ReadAll(name)
}

// SetBigRegister sets a cell of a register of any width.
func (c *Control) SetBigRegister(name string, index int, value *big.Int) error {
	name, err := c.register(name)
	if err != nil {
		return err
	}
	_, width, err := c.sw.Registers().Info(name)
	switch {
	case err != nil:
		return err
	case value == nil || value.Sign() < 0:
		return fmt.Errorf("register %s: %v does not fit into %d bits: want a number from 0", name, value, width)
	case value.BitLen() > width:
		return fmt.Errorf("register %s: %v does not fit into %d bits", name, value, width)
	}
	return c.sw.Registers().Write(name, index, value)
}

func (c *Control) register(short string) (string, error) {
	return named("register", short, lists.Map(c.sw.Config().RegisterArrays, func(r *bmv2.RegisterArray) string { return r.Name }))
}

// Counter returns a cell of a counter.
func (c *Control) Counter(name string, index int) (Count, error) {
	var names []string
	for _, a := range c.sw.Config().CounterArrays {
		if !a.IsDirect {
			names = append(names, a.Name)
		} else if a.Name == name || strings.HasSuffix(a.Name, "."+name) {
			return Count{}, fmt.Errorf("counter %s counts the entries of a table: want EntryCounter", a.Name)
		}
	}
	name, err := named("counter", name, names)
	if err != nil {
		return Count{}, err
	}
	v, err := c.sw.Counters().Read(name, index)
	return Count(v), err
}

// EntryCounter returns the direct counter of the entry with the match and priority of e.
func (c *Control) EntryCounter(e Entry) (Count, error) {
	t, err := c.table(e.Table)
	if err != nil {
		return Count{}, err
	}
	if !t.WithCounters {
		return Count{}, fmt.Errorf("table %s has no direct counter", t.Name)
	}
	_, h, err := c.locate(t, e)
	if err != nil {
		return Count{}, err
	}
	v, err := c.sw.Tables().Counter(t.Name, h)
	return Count(v), err
}

// SetEntryMeter sets the rates of the direct meter of the entry with the match and priority of
// e, like SetMeter.
func (c *Control) SetEntryMeter(e Entry, rates ...Rate) error {
	t, err := c.table(e.Table)
	if err != nil {
		return err
	}
	if t.DirectMeters == "" {
		return fmt.Errorf("table %s has no direct meter", t.Name)
	}
	_, h, err := c.locate(t, e)
	if err != nil {
		return err
	}
	return c.setMeter(t.DirectMeters, int(h), rates)
}

// SetMeter sets the two rates of a cell of a meter: the committed rate, above which packets
// are yellow, and the peak rate, above which they are red. Without rates the meter marks every
// packet green.
func (c *Control) SetMeter(name string, index int, rates ...Rate) error {
	var names []string
	for _, m := range c.sw.Config().MeterArrays {
		if !m.IsDirect {
			names = append(names, m.Name)
		} else if m.Name == name || strings.HasSuffix(m.Name, "."+name) {
			return fmt.Errorf("meter %s measures the entries of a table: want SetEntryMeter", m.Name)
		}
	}
	name, err := named("meter", name, names)
	if err != nil {
		return err
	}
	return c.setMeter(name, index, rates)
}

func (c *Control) setMeter(name string, index int, rates []Rate) error {
	if len(rates) == 0 {
		return c.sw.Meters().Reset(name, index)
	}
	if len(rates) != 2 || rates[0].PerSecond > rates[1].PerSecond || rates[0].PerSecond < 0 {
		return fmt.Errorf("meter %s: rates %v: want the committed rate and a peak rate that is not lower, neither negative", name, rates)
	}
	return c.sw.Meters().Set(name, index, lists.Map(rates, func(r Rate) dataplane.MeterRate {
		return dataplane.MeterRate{PerMicrosecond: r.PerSecond / 1e6, Burst: r.Burst}
	}))
}

// SetClone makes a session send clones to a port. If bytes is above 0, clones are truncated to
// this length.
func (c *Control) SetClone(session, port, bytes int) error {
	if session < 1 || port < 0 || port >= maxPorts || bytes < 0 {
		return fmt.Errorf("clone session %d to port %d with %d bytes: want a session from 1, a port from 0 to %d, and no negative number", session, port, bytes, maxPorts-1)
	}
	return c.sw.Mirrors().Set(uint32(session), dataplane.MirrorSession{Port: uint32(port), HasPort: true, Length: bytes})
}

// SetMulticast makes a multicast group send one copy to each of the ports.
func (c *Control) SetMulticast(group int, ports ...int) error {
	if group < 1 || group > math.MaxUint16 || slices.ContainsFunc(ports, func(p int) bool { return p < 0 || p >= maxPorts }) {
		return fmt.Errorf("multicast group %d to ports %v: want a group from 1 to %d, and ports from 0 to %d", group, ports, math.MaxUint16, maxPorts-1)
	}
	return c.sw.Replication().SetGroup(uint32(group), lists.Map(ports, func(p int) dataplane.Replica { return dataplane.Replica{Port: uint32(p)} }))
}

func (c *Control) table(short string) (*bmv2.Table, error) {
	tables := c.tables()
	name, err := named("table", short, slices.Sorted(maps.Keys(tables)))
	return tables[name], err
}

// named finds a name, which may lack its first components.
func named(what, short string, names []string) (string, error) {
	var found []string
	for _, n := range names {
		if n == short {
			return n, nil
		}
		if strings.HasSuffix(n, "."+short) && !slices.Contains(found, n) {
			found = append(found, n)
		}
	}
	switch {
	case len(names) == 0:
		return "", fmt.Errorf("there is no %s %q: the program has none", what, short)
	case len(found) == 0:
		return "", fmt.Errorf("there is no %s %q: there are %s", what, short, strings.Join(names, ", "))
	case len(found) == 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%s %q can be %s", what, short, strings.Join(found, " or "))
}

// number parses a value of the given width as big-endian bytes.
func number(text string, width int) ([]byte, error) {
	v, ok := new(big.Int).SetString(text, 0)
	if !ok {
		if ip, err := netip.ParseAddr(text); err == nil {
			v = new(big.Int).SetBytes(ip.AsSlice())
		} else if mac, err := net.ParseMAC(text); err == nil {
			v = new(big.Int).SetBytes(mac)
		} else {
			return nil, fmt.Errorf("%q: want a number, an IP address or a MAC address", text)
		}
	}
	if v.Sign() < 0 || v.BitLen() > width {
		return nil, fmt.Errorf("%s does not fit into %d bits", text, width)
	}
	return v.FillBytes(make([]byte, max(1, (width+7)/8))), nil
}
