// Package plan computes the configuration of every switch of a network from the
// topology and from the manifests of the programs, one for each role.
//
// A plan consists of names and numbers and does not depend on the target. Two plans
// can be compared without a switch, and the same plan fills a P4Runtime server, a
// simulation and a printed table. A manifest describes a table by its purpose
// (fill.go) or by entries with expressions over facts of the network (literal.go,
// facts.go).
package plan

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A Pipeline is a compiled program with its manifest. Switches of one role share it,
// so it must not be copied or changed once it is in use.
type Pipeline struct {
	Manifest manifest.Manifest
	P4Info   *configv1.P4Info
	Config   []byte // p4_device_config: BMv2 JSON, or the format of the target
	// Schema makes the BfRt schema of a program for Tofino; nil for other programs.
	Schema func() ([]byte, error)

	once  sync.Once
	index *p4info.Index
	err   error

	mu    sync.Mutex
	baked map[string][]Entry // by table; shared by all switches
}

// Options supplement a topology. The zero value works.
type Options struct {
	// MTU is the packet size in bytes for converting rates to packets per second; 0: 1500.
	MTU int
	// Queue is the capacity of a queue in packets if the topology states no queue size and no
	// buffer; 0: 64.
	Queue int
	// Coefficients of a polynomial that the controller sets, by the names of the action's
	// parameters.
	Coefficients map[string]int64
	// Grouping is the meaning of group ids if no program requires one.
	Grouping fabric.Grouping
}

// A Plan is the planned configuration of every switch of a network.
type Plan struct {
	Scheme   string           `json:"scheme"`
	Topology *fabric.Topology `json:"-"`
	Routes   *fabric.Routes   `json:"-"`
	Grouping fabric.Grouping  `json:"-"` // meaning of group ids
	Switches []*Switch        `json:"switches"`
	Options  Options          `json:"-"` // with defaults filled in
	byName   map[string]*Switch
	tooWide  map[string]*widthError // by table and name; only during planning
}

// ByMAC reports whether hosts send to each other's MAC addresses.
func (p *Plan) ByMAC() bool {
	return manifest.OneSegment(lists.Map(p.Switches, func(s *Switch) *manifest.Manifest { return &s.Pipeline.Manifest }))
}

// Queues returns the number of queues of each port that the programs use.
func (p *Plan) Queues() int {
	n := 1
	for _, s := range p.Switches {
		n = max(n, s.Pipeline.Manifest.Queues)
	}
	return n
}

// VirtualAddresses returns the services of the topology and the programs' virtual addresses, with
// their MAC addresses. A zero MAC address stands for the switch's.
func (p *Plan) VirtualAddresses() map[netip.Addr]fabric.MAC {
	list := map[netip.Addr]fabric.MAC{}
	for _, s := range p.Topology.Services {
		list[s.Address] = fabric.MAC{}
	}
	for _, s := range p.Switches {
		for _, v := range s.Pipeline.Manifest.VirtualAddresses {
			mac, _ := net.ParseMAC(v.MAC) // checked with the manifest
			var m fabric.MAC
			copy(m[:], mac)
			list[netip.MustParseAddr(v.Address)] = m
		}
	}
	return list
}

// A Switch is the planned configuration of one switch.
type Switch struct {
	Name     string       `json:"name"`
	Role     fabric.Role  `json:"role"`
	Device   uint64       `json:"device_id"`
	Leaf     int          `json:"leaf,omitempty"` // number as a destination; 0: it has no hosts
	CPUPort  int          `json:"cpu_port"`
	Pipeline *Pipeline    `json:"-"`
	Routes   fabric.Table `json:"-"` // routes from which Entries were made

	Entries   []Entry     `json:"entries"`
	Sessions  []Session   `json:"clone_sessions"`
	Groups    []Multicast `json:"multicast_groups"`
	Registers []Cells     `json:"registers"`
	Queues    []Queue     `json:"queues"`
	Filters   []Filter    `json:"filters,omitempty"` // filters of Tofino
	Frames    []Frame     `json:"frames,omitempty"`  // frames that the controller sends
}

// An Entry is an entry of a table. Without Match it is the default action.
type Entry struct {
	Table    string  `json:"table"`
	Match    []Match `json:"match,omitempty"`
	Priority int     `json:"priority,omitempty"` // the highest wins if entries overlap
	Action   string  `json:"action"`
	Args     []Arg   `json:"args,omitempty"`
	// OneOf lists the actions of an action selector, one of which the switch selects for each
	// packet. Action is then unused.
	OneOf []Call `json:"one_of,omitempty"`
	// Common entries are in the tables of all switches of the pipeline, which share their memory.
	Common bool `json:"-"`
}

// A Call is an action with its arguments.
type Call struct {
	Action string `json:"action"`
	Args   []Arg  `json:"args,omitempty"`
}

// A Match is the match of an entry on one key field.
type Match struct {
	Field string  `json:"field"`
	Value uint64  `json:"value"`
	Upper uint64  `json:"upper,omitempty"` // bits of the value from 64 on
	Bits  int     `json:"bits"`            // prefix length; all bits for an exact match
	Mask  *uint64 `json:"mask,omitempty"`  // mask of a ternary match; nil: all bits count
	High  *uint64 `json:"high,omitempty"`  // end of a range that begins with Value
	Any   bool    `json:"any,omitempty"`   // matches any value
	Width int     `json:"-"`
}

// An Arg is an argument of an action.
type Arg struct {
	Name  string `json:"name"`
	Value uint64 `json:"value"`
	Upper uint64 `json:"upper,omitempty"` // bits of the value from 64 on
	Width int    `json:"-"`
}

// A Session is a clone session that leads to a port.
type Session struct {
	ID    int `json:"id"`
	Port  int `json:"port"`
	Bytes int `json:"bytes,omitempty"` // length to which copies are truncated; 0: not truncated
}

// A Multicast is a multicast group with the ports that it leads to.
type Multicast struct {
	ID    int   `json:"id"`
	Ports []int `json:"ports"`
}

// Cells are initial values for the cells From ≤ i < To of a register.
type Cells struct {
	Register string `json:"register"`
	From     int    `json:"from"`
	To       int    `json:"to"`
	Value    uint64 `json:"value"`
}

// A Queue is the queue of a port.
type Queue struct {
	Port  int    `json:"port"`
	Rate  uint64 `json:"rate"`  // packets per second
	Depth int    `json:"depth"` // packets
	// Signal is the electrical configuration of the port, which only Tofino has.
	fabric.Signal
}

// Has reports whether a queue has the wanted configuration. The signal of its port may be
// unknown.
func (q Queue) Has(want Queue) bool {
	return q.Port == want.Port && q.Rate == want.Rate && q.Depth == want.Depth && (q.Signal == fabric.Signal{} || q.Signal.Has(want.Signal))
}

// Around returns the ports on which the program recirculates packets. They must have no link.
func (s *Switch) Around() []int {
	return s.Pipeline.Manifest.VirtualNumbers()
}

// Looped returns the ports that the manifest puts in loopback on Tofino.
func (s *Switch) Looped() (ports []uint32) {
	for _, v := range s.Pipeline.Manifest.VirtualPorts {
		if v.Kind == manifest.RecirculationPort {
			ports = append(ports, uint32(v.Port))
		}
	}
	return ports
}

// Switch returns the plan of the named switch, or nil.
func (p *Plan) Switch(name string) *Switch { return p.byName[name] }

// Empty lists the tables with a key for which neither plan nor program has an entry on some
// switch, so that every packet takes the default action. It omits tables of groups on switches
// with a single path to every destination, and tables whose entries a manifest assigns to other
// switches.
func (p *Plan) Empty() []string {
	var list []string
	for _, s := range p.Switches {
		x, err := s.Pipeline.Index()
		if err != nil {
			continue // without a program there is no plan
		}
		for _, t := range x.Tables {
			filled := slices.ContainsFunc(s.Entries, func(e Entry) bool { return e.Table == t.Name }) ||
				slices.ContainsFunc(s.Pipeline.Manifest.Tables, func(m manifest.Table) bool {
					paths := m.Purpose == manifest.Group || m.Purpose == manifest.Member
					return m.Name == t.Name && (paths && len(s.Routes.Groups) == 0 || len(m.Entries) > 0 && p.fills(t.Name))
				})
			if len(t.Fields) > 0 && !t.Fixed && !t.Begun && !filled && !slices.Contains(list, t.Name) && !p.lacksAddresses(s, t) {
				list = append(list, t.Name)
			}
		}
	}
	return list
}

// lacksAddresses reports whether a table is about a version of IP that no host has.
func (p *Plan) lacksAddresses(s *Switch, t *p4info.Table) bool {
	i := slices.IndexFunc(s.Pipeline.Manifest.Tables, func(m manifest.Table) bool { return m.Name == t.Name })
	if i < 0 {
		return false
	}
	key := s.Pipeline.Manifest.Tables[i].Key(manifest.Destination)
	if key == nil {
		return false
	}
	width := lists.First(t.Fields, func(f p4info.Field) bool { return f.Name == key.Name }).Width
	return !slices.ContainsFunc(p.Topology.Hosts, func(h fabric.Host) bool { return h.IP.Addr().BitLen() == width })
}

// fills reports whether any switch has an entry in a table.
func (p *Plan) fills(table string) bool {
	return slices.ContainsFunc(p.Switches, func(s *Switch) bool {
		return slices.ContainsFunc(s.Entries, func(e Entry) bool { return e.Table == table })
	})
}

// Balances reports whether any switch has more than one path to somewhere.
func (p *Plan) Balances() bool {
	return slices.ContainsFunc(p.Switches, func(s *Switch) bool { return len(s.Routes.Groups) > 0 })
}

// Cut returns a line for each node that is unreachable because of failed links, or
// nil. Switches drop packets to such nodes; the plan can still be deployed.
func (p *Plan) Cut() []string {
	var list []string
	for i := range p.Topology.Hosts {
		if h := &p.Topology.Hosts[i]; p.Topology.PortOf(h).Down {
			list = append(list, fmt.Sprintf("%s at %s: its link is down", h.Name, h.Switch))
		}
	}
	leaves := p.Topology.Leaves()
	for _, to := range leaves {
		for _, from := range leaves {
			if hops, _ := p.Routes.NextHops(from.Name, to.Name); from != to && len(hops) == 0 && from.Leaf < to.Leaf {
				list = append(list, fmt.Sprintf("the hosts of %s: no way from %s", to.Name, from.Name))
				break
			}
		}
	}
	return list
}

// Index returns the index, which is computed once.
func (p *Pipeline) Index() (*p4info.Index, error) {
	p.once.Do(func() {
		p.index, p.err = p4info.New(p.P4Info, p.Config)
		if p.err == nil {
			p.err = p.index.Match(&p.Manifest, p.P4Info)
		}
	})
	return p.index, p.err
}
