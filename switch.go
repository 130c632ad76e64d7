package p4lb

import (
	"fmt"
	"maps"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A Switch runs a program on packets, as BMv2's simple_switch or a pipe of Tofino
// would: parser, tables, registers, queues, clones and recirculation. Its clock
// stands still but for what Send and Advance say.
type Switch struct {
	engine *dataplane.Engine
	sw     *dataplane.Switch
	now    time.Duration
}

// An Entry is a table entry, by the names of the program. Names of tables,
// actions and fields may lack their first components where one has such an end.
//
// Values are numbers (10, 0x1f), IPv4 and IPv6 addresses, and MAC addresses. The
// value of a field that is matched by prefix is VALUE/LENGTH, of a ternary one
// VALUE &&& MASK, of a range LOW..HIGH; a single value stands for itself alone,
// and a field that is left out for any.
type Entry struct {
	Table    string
	Match    map[string]string // nil: the table's default
	Priority int               // of ternary and range entries, of which the largest wins
	Action   string
	Args     map[string]string
}

// A Packet is one that has left a switch.
type Packet struct {
	Port int
	Data []byte
}

// NewSwitch returns a switch that runs a program with empty tables. It configures the
// clone sessions that programs of load balancers need.
func NewSwitch(p *Program) (*Switch, error) {
	sw, err := dataplane.New(p.compiled.Config, dataplane.Options{})
	if err != nil {
		return nil, err
	}
	if p.built != nil {
		for _, c := range p.built.Manifest.CloneSessions {
			if c.PerPort {
				continue
			}
			if err := sw.SetMirror(uint32(c.Session), dataplane.MirrorSession{Port: uint32(c.Port), HasPort: true, Length: c.Bytes}); err != nil {
				return nil, fmt.Errorf("clone session %d: %w", c.Session, err)
			}
		}
	}
	return &Switch{engine: dataplane.NewEngine(sw), sw: sw, now: time.Second}, nil
}

// gap is the time between two packets of Send.
const gap = time.Millisecond

// Send delivers a packet to a port one millisecond after the previous event, runs the
// switch until its queues are empty, and returns the packets that left.
func (s *Switch) Send(port int, data []byte) []Packet {
	s.now += gap
	list := packets(s.engine.Process(uint32(port), data, s.now))
	const most = 10000 // a packet may recirculate forever
	for range most {
		at, ok := s.engine.Next()
		if !ok {
			break
		}
		s.now = max(s.now, at)
		list = append(list, packets(s.engine.Run(s.now))...)
	}
	return list
}

// Advance lets time pass.
func (s *Switch) Advance(d time.Duration) { s.now += max(0, d) }

func packets(out []dataplane.Out) []Packet {
	return lists.Map(out, func(o dataplane.Out) Packet { return Packet{int(o.Port), slices.Clone(o.Data)} })
}

// Insert adds an entry to a table, or sets the default.
func (s *Switch) Insert(e Entry) error {
	t, err := s.table(e.Table)
	if err != nil {
		return err
	}
	call, err := s.call(t, e.Action, e.Args)
	if err != nil {
		return fmt.Errorf("table %s: %w", t.Name, err)
	}
	target := dataplane.Target{Action: call}
	if e.Match == nil {
		return s.sw.TableSetDefault(t.Name, target)
	}
	entry, err := s.entry(t.Name, e)
	if err != nil {
		return fmt.Errorf("table %s: %w", t.Name, err)
	}
	entry.Target = target
	_, err = s.sw.TableAdd(t.Name, entry)
	return err
}

// topPriority turns priorities around: within the switch the smallest wins.
const topPriority = 1 << 30

// entry returns the entry for a table.
func (s *Switch) entry(table string, e Entry) (dataplane.Entry, error) {
	fields, ordered, err := s.sw.TableKey(table)
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

// call is an action of a table with its arguments.
func (s *Switch) call(t *bmv2.Table, action string, args map[string]string) (dataplane.ActionCall, error) {
	name, err := named("action", action, t.Actions)
	if err != nil {
		return dataplane.ActionCall{}, err
	}
	i := slices.IndexFunc(s.sw.Config().Actions, func(a *bmv2.Action) bool { return a.Name == name })
	call := dataplane.ActionCall{Name: name}
	var params []string
	for _, p := range s.sw.Config().Actions[i].RuntimeData {
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

// Register is a cell of a register, by its name in the program.
func (s *Switch) Register(name string, index int) (uint64, error) {
	v, err := s.sw.RegisterRead(name, index)
	switch {
	case err != nil:
		return 0, err
	case !v.IsUint64():
		return 0, fmt.Errorf("register %s: cell %d is wider than 64 bits", name, index)
	}
	return v.Uint64(), nil
}

func (s *Switch) table(short string) (*bmv2.Table, error) {
	tables := map[string]*bmv2.Table{}
	for _, p := range s.sw.Config().Pipelines {
		for _, t := range p.Tables {
			tables[t.Name] = t
		}
	}
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
	switch len(found) {
	case 0:
		return "", fmt.Errorf("there is no %s %q: there are %s", what, short, strings.Join(names, ", "))
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%s %q can be %s", what, short, strings.Join(found, " or "))
}

// number reads a value of so many bits, big-endian.
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
