package spec

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A LinkChange changes links of the topology from the start.
type LinkChange struct {
	Link  string  `yaml:"link"` // such as l1-s2, l1:3, or s1 for all its links
	Rate  Bitrate `yaml:"rate"`
	Delay Time    `yaml:"delay"`
	Queue int     `yaml:"queue"`
	Down  bool    `yaml:"down"`
}

// Network makes the topology of a setting: with the queues of its switches, its changed links,
// and without the links that fail from the start. Its errors are of type *keyError.
func (s *Setting) Network(read Reader) (*fabric.Topology, error) {
	t, err := s.Topology.make(read)
	if err != nil {
		return nil, &keyError{"topology", err}
	}
	if n := s.Switches.Queue; n > 0 {
		links := slices.Clone(t.Links)
		for i := range links {
			links[i].Queue = n
		}
		if t, err = t.WithLinks(links); err != nil {
			return nil, &keyError{"switches.queue", err}
		}
	}
	if s.IPv6 {
		if t, err = t.ToIPv6(); err != nil {
			return nil, &keyError{"ipv6", err}
		}
	}
	for i := range s.Links {
		if t, err = s.Links[i].apply(t); err != nil {
			return nil, &keyError{fmt.Sprintf("links[%d]", i), err}
		}
	}
	for _, name := range s.Fail {
		links, err := t.FindLinks(name)
		if err != nil {
			return nil, &keyError{"fail", err}
		}
		t = t.Fail(links...)
	}
	return t, nil
}

// NetworkOf returns the network of a case. It reads files with read, and keeps the last network,
// because the check, the warnings and the runs of an experiment need the same one, and a large
// network takes long to make.
func (x *Experiment) NetworkOf(c *Case, read Reader) (*fabric.Topology, error) {
	if x.last == nil {
		return c.Network(read)
	}
	return x.last.network(&c.Setting, read)
}

// A lastNetwork is the network that was made last, with the part of the setting that it was
// made from.
type lastNetwork struct {
	mu   sync.Mutex
	from Setting
	net  *fabric.Topology
}

func (l *lastNetwork) network(s *Setting, read Reader) (*fabric.Topology, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := Setting{Topology: s.Topology.clone(), Links: slices.Clone(s.Links), Fail: slices.Clone(s.Fail), IPv6: s.IPv6}
	from.Switches.Queue = s.Switches.Queue
	if l.net != nil && reflect.DeepEqual(from, l.from) {
		return l.net, nil
	}
	t, err := from.Network(read)
	if err == nil {
		l.from, l.net = from, t
	}
	return t, err
}

// Limits of the size of IP packets that hosts send.
const (
	minMTU   = 256
	maxMTU   = 9216
	usualMTU = 1500
)

// checkMTU reports an MTU that hosts cannot have.
func (s *Setting) checkMTU() error {
	if s.MTU != 0 && (s.MTU < minMTU || s.MTU > maxMTU) {
		return fmt.Errorf("mtu %d: want %d to %d bytes", s.MTU, minMTU, maxMTU)
	}
	return nil
}

// Frame returns the size of the largest frame, which queue limits and ECN thresholds
// in packets refer to.
func (s *Setting) Frame() int { return cmp.Or(s.MTU, usualMTU) + 14 }

// A keyError is an error with the key of a setting.
type keyError struct {
	key string
	err error
}

// Error returns the message with the key.
func (e *keyError) Error() string { return e.key + ": " + e.err.Error() }

// Unwrap returns the error without the key.
func (e *keyError) Unwrap() error { return e.err }

// make makes the network from its name or generator.
func (n Network) make(read Reader) (*fabric.Topology, error) {
	switch {
	case n.LeafSpine != nil:
		m := n.LeafSpine
		return fabric.LeafSpine{
			Name: "leaf-spine", Leaves: m.Leaves, Spines: m.Spines, Parallel: m.Parallel, Hosts: m.Hosts, Rails: m.Rails, DualToR: m.DualToR,
			Oversubscription: m.Oversubscription, Buffer: fabric.Size(m.Buffer), Links: m.links(),
		}.Make()
	case n.Rail != nil:
		m := n.Rail
		return fabric.Rail{
			Name: "rail", Rails: m.Rails, Servers: m.Servers, Spines: m.Spines, Planes: m.Planes, Buffer: fabric.Size(m.Buffer), Links: m.links(),
		}.Make()
	case n.FatTree != nil:
		m := n.FatTree
		return fabric.FatTree{Name: "fat-tree", K: m.K, Hosts: m.Hosts, Buffer: fabric.Size(m.Buffer), Links: m.links()}.Make()
	}
	if text, err := read(n.Name); err == nil {
		return fabric.Load(n.Name, text)
	}
	p, err := fabric.PresetNamed(n.Name)
	if err != nil {
		return nil, fmt.Errorf("%w (p4lb topo presets lists them)", err)
	}
	return p.Make()
}

// clone returns a copy that shares nothing with n.
func (n Network) clone() Network {
	return Network{n.Name, copied(n.LeafSpine), copied(n.FatTree), copied(n.Rail)}
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func (l Links) links() fabric.Links {
	return fabric.Links{
		HostRate: fabric.Rate(l.HostRate), Rate: fabric.Rate(l.Rate),
		HostDelay: time.Duration(l.HostDelay), Delay: time.Duration(l.Delay), Queue: l.Queue,
	}
}

// apply returns the topology with the changed links.
func (c *LinkChange) apply(t *fabric.Topology) (*fabric.Topology, error) {
	places, err := c.places(t)
	if err != nil {
		return nil, err
	}
	links := slices.Clone(t.Links)
	for _, i := range places {
		l := &links[i]
		if c.Rate > 0 {
			l.Rate = fabric.Rate(c.Rate)
		}
		if c.Delay > 0 {
			l.Delay = time.Duration(c.Delay)
		}
		if c.Queue > 0 {
			l.Queue = c.Queue
		}
		l.Down = l.Down || c.Down
	}
	return t.WithLinks(links)
}

// places returns the indices of the links.
func (c *LinkChange) places(t *fabric.Topology) ([]int, error) {
	if t.Switch(c.Link) == nil {
		return t.FindLinks(c.Link)
	}
	return lists.Map(t.Ports(c.Link), func(p fabric.Port) int { return p.Link }), nil
}

// rate returns the arrivals per second: ρ·base / (8·E(F)).
func (d *flowMaker) rate(load float64) (float64, error) {
	if d.Rate > 0 {
		return d.Rate, nil
	}
	if d.Load > 0 {
		load = d.Load
	} else if d.Share > 0 {
		load *= d.Share
	}
	base, err := d.capacity()
	if err != nil {
		return 0, err
	}
	r := load * base / (8 * d.Mean())
	if !(r > 0) {
		return 0, fmt.Errorf("load %g of %g bit/s: there would be no flow", load, base)
	}
	return r, nil
}

// capacity returns the rate in bit/s of all flows at a load of 1.
func (d *flowMaker) capacity() (float64, error) {
	switch d.LoadOf {
	case OfHosts, "":
		return d.hostRate(), nil
	case OfFabric:
		return d.fabricRate() / d.crossing() / max(1, d.Grown), nil
	}
	r, err := fabric.ParseRate(d.LoadOf)
	return float64(r), err
}

// hostRate returns the total rate of the sending hosts.
func (d *flowMaker) hostRate() float64 {
	sum := 0.0
	rates := HostRates(d.t)
	for _, h := range lists.Set(d.from) {
		sum += float64(rates[h])
	}
	return sum
}

// fabricRate returns the total rate of the uplinks of the sending leaves.
func (d *flowMaker) fabricRate() float64 {
	sum := 0.0
	for _, name := range d.SendingLeaves() {
		for _, p := range d.t.Ports(name) {
			if p.PeerTier > 0 && !p.Down {
				sum += float64(p.Rate)
			}
		}
	}
	return sum
}

// SendingLeaves returns the names of the leaves of the sending hosts, sorted.
func (d *flowMaker) SendingLeaves() []string {
	leaves := map[string]bool{}
	for _, h := range d.from {
		leaves[d.t.Hosts[h].Switch] = true
	}
	return slices.Sorted(maps.Keys(leaves))
}

// crossing returns the share of flows that leave their leaf.
func (d *flowMaker) crossing() float64 {
	if d.Pattern == permutation || d.Pattern == Incast {
		return 1
	}
	cross, all := 0, 0
	count := func(a, b int) {
		if a != b {
			all++
			if d.leaf[a] != d.leaf[b] {
				cross++
			}
		}
	}
	for _, p := range d.pairs {
		count(p[0], p[1])
	}
	if d.Pattern != pairs {
		for _, a := range d.from {
			for _, b := range d.to {
				count(a, b)
			}
		}
	}
	if cross == 0 {
		return 1
	}
	return float64(cross) / float64(all)
}

// Expected returns the number of flows of a traffic and their mean size.
func (tr *Traffic) Expected(t *fabric.Topology, load float64, length time.Duration) (flows, mean float64, err error) {
	if tr.Pattern == List {
		for _, f := range tr.flows {
			mean += float64(f.Bytes) / float64(len(tr.flows))
		}
		return float64(len(tr.flows)), mean, nil
	}
	d, err := tr.Maker(t)
	if err != nil {
		return 0, 0, err
	}
	if tr.Pattern == Collective {
		all := d.collective()
		for _, f := range all {
			mean += float64(f.Bytes) / float64(len(all))
		}
		return float64(len(all)), mean, nil
	}
	mean = d.Mean()
	switch {
	case tr.Pattern == pairs && len(tr.At) > 0:
		return float64(len(tr.At) * len(d.pairs)), mean, nil
	case tr.Pattern == burst:
		return float64(len(tr.At)*len(d.from)) * float64(max(tr.Degree, 1)), mean, nil
	}
	rate, err := d.rate(load)
	if err != nil {
		return 0, 0, err
	}
	stop := length
	if s := time.Duration(tr.Stop); s > 0 {
		stop = min(stop, s)
	}
	flows = rate * max(0, stop-time.Duration(tr.Start)).Seconds()
	if tr.Flows > 0 {
		flows = float64(tr.Flows)
	}
	if tr.Pattern == Incast { // the size of a request is the total of its answers
		answers := float64(min(max(tr.Degree, 1), len(d.from)))
		return flows * answers, mean / answers, nil
	}
	return flows, mean, nil
}

// An Offer is the demand of a run: the number of flows, and their share of the
// capacity of the hosts' links and of the leaves' uplinks.
type Offer struct {
	Flows, Hosts, Fabric float64
}

// Offer returns the demand of a case at a load, or false if the flows are listed
// individually.
func (c *Case) Offer(t *fabric.Topology, load float64) (Offer, bool) {
	var o Offer
	if len(c.Jobs) > 0 {
		return o, false
	}
	length := c.Length()
	for i := range c.Traffic {
		tr := &c.Traffic[i]
		if tr.Pattern == List || tr.Pattern == Collective || tr.Pattern == burst || len(tr.At) > 0 || tr.background() {
			return o, false
		}
		flows, mean, err := tr.Expected(t, load, length)
		if err != nil {
			return o, false
		}
		d, err := tr.Maker(t)
		if err != nil {
			return o, false
		}
		o.Flows += flows
		bits := flows * mean * 8 / length.Seconds()
		o.Hosts += bits / d.hostRate()
		if rate := d.fabricRate(); rate > 0 {
			o.Fabric += bits * d.crossing() / rate
		}
	}
	return o, o.Flows > 0
}

// Maker returns a generator of flows for a traffic outside of any run.
func (tr *Traffic) Maker(t *fabric.Topology) (*flowMaker, error) {
	return newDraw(tr, t, NewRandom(1, 0))
}

// Phases returns the network at the start, and after each turn of the case's faults.
func (c *Case) Phases(t *fabric.Topology) ([]*fabric.Topology, error) {
	turns, err := c.Turns(t)
	if err != nil {
		return nil, err
	}
	list := []*fabric.Topology{t}
	var down Outage
	for _, turn := range turns {
		down.Toggle(turn)
		list = append(list, down.Apply(t))
	}
	return list, nil
}

// Strikes lists the faults of a setting, repetitions included.
func (s *Setting) Strikes() (list []Fault) {
	for _, f := range s.Faults {
		every := f.Every
		for range max(1, f.Times) {
			f.Every, f.Times = 0, 0
			list = append(list, f)
			f.At, f.Until = f.At+every, f.Until+every
		}
	}
	return list
}

// A Turn is a time at which links fail or are repaired, or servers leave their pools or return.
type Turn struct {
	At      Time
	Links   []int
	Servers []fabric.Member
	Fail    bool
}

// Turns lists the times at which the case's faults change links or pools, in order.
func (c *Case) Turns(t *fabric.Topology) ([]Turn, error) {
	var list []Turn
	for _, f := range c.Strikes() {
		if !f.Down {
			continue
		}
		links, err := f.Links(t)
		if err != nil {
			return nil, err
		}
		servers, err := f.Servers(t)
		if err != nil {
			return nil, err
		}
		list = append(list, Turn{f.At, links, servers, true})
		if f.Until > 0 {
			list = append(list, Turn{f.Until, links, servers, false})
		}
	}
	slices.SortStableFunc(list, func(a, b Turn) int { return cmp.Compare(a.At, b.At) })
	return list, nil
}

// An Outage is the set of links that are down and of servers outside their pools.
type Outage struct {
	links   []int
	servers []fabric.Member
}

// Toggle adds the links and servers of a failure, or removes repaired ones.
func (o *Outage) Toggle(t Turn) {
	o.links, o.servers = toggled(o.links, t.Links, t.Fail), toggled(o.servers, t.Servers, t.Fail)
}

// Clone returns a copy.
func (o *Outage) Clone() *Outage {
	return &Outage{slices.Clone(o.links), slices.Clone(o.servers)}
}

// Apply returns the topology during the outage.
func (o *Outage) Apply(t *fabric.Topology) *fabric.Topology {
	t = t.Fail(o.links...)
	if len(o.servers) > 0 {
		t = t.Drain(o.servers...)
	}
	return t
}

// toggled adds items to a list, or removes them.
func toggled[T comparable](list, items []T, on bool) []T {
	list = slices.DeleteFunc(list, func(l T) bool { return slices.Contains(items, l) })
	if on {
		list = append(list, items...)
	}
	return list
}

// checkPools returns an error if the faults leave a service without a server in its pool.
func (c *Case) checkPools(t *fabric.Topology) error {
	turns, err := c.Turns(t)
	if err != nil {
		return err
	}
	var down Outage
	for _, turn := range turns {
		down.Toggle(turn)
		for _, s := range t.Drain(down.servers...).Services {
			if len(s.Drained) == len(s.Servers) {
				return fmt.Errorf("at %v the pool of service %s is empty: want at least one of its servers %s in it", turn.At, s.Name, strings.Join(s.Servers, ", "))
			}
		}
	}
	return nil
}

// check returns an error if the fault is invalid.
func (f *Fault) check(t *fabric.Topology) error {
	switch {
	case one(f.Down, f.Drop != 0, f.Hole != 0, f.Rate != 0, f.Errors != 0) != 1:
		return errors.New("want one of down, drop, black-hole, rate and bit-errors")
	case f.Known && f.Rate == 0:
		return errors.New("known: want it beside rate: the controller is always notified of links that are down, and never of other faults")
	case f.Drop < 0 || f.Drop > 1 || f.Hole < 0 || f.Hole > 1:
		return errors.New("want a share from 0 to 1")
	case !(f.Errors >= 0 && f.Errors < 1):
		return fmt.Errorf("bit-errors %g: want a share of bits from 0 to below 1", f.Errors)
	case (f.Every != 0 || f.Times != 0) && (f.Times < 2 || f.Times > maxFaults || f.Until == 0 || f.Every <= f.Until-f.At):
		return fmt.Errorf("every %v, times %d: want 2 to %d times, and every longer than from at to until", f.Every, f.Times, maxFaults)
	case f.Until != 0 && f.Until <= f.At:
		return fmt.Errorf("until %v is not after at %v", f.Until, f.At)
	case one(f.Link != "", f.Switch != "", f.Plane != 0, f.Server != "") != 1:
		return errors.New("want one of link, switch, plane and server")
	case f.Of != "" && f.Server == "":
		return errors.New("service: want it beside server")
	case f.Server != "" && !f.Down:
		return fmt.Errorf("server %s: want down: true: it leaves the pool; for other faults, want its link", f.Server)
	case !f.Down && f.Rate == 0 && f.Errors == 0 && f.Switch == "":
		return errors.New("drop and black-hole are of a switch")
	}
	if _, err := f.Servers(t); err != nil {
		return err
	}
	_, err := f.Links(t)
	return err
}

// Servers returns the places in pools that the fault's server leaves.
func (f *Fault) Servers(t *fabric.Topology) (list []fabric.Member, err error) {
	if f.Server == "" {
		return nil, nil
	}
	for _, s := range t.Services {
		if slices.Contains(s.Servers, f.Server) && (f.Of == "" || f.Of == s.Name) {
			list = append(list, fabric.Member{Service: s.Name, Server: f.Server})
		}
	}
	if len(list) > 0 {
		return list, nil
	}
	var all []string
	for _, s := range t.Services {
		if f.Of == "" || f.Of == s.Name {
			all = append(all, s.Servers...)
		}
	}
	switch {
	case len(t.Services) == 0:
		return nil, fmt.Errorf("server %s: topology %s has no services", f.Server, t.Name)
	case len(all) == 0:
		names := lists.Map(t.Services, func(s fabric.Service) string { return s.Name })
		return nil, fmt.Errorf("there is no service %q: want one of %s", f.Of, strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("%s is not a server of %s: want one of %s", f.Server, cmp.Or(f.Of, "a service"), strings.Join(lists.Set(all), ", "))
}

// one returns the number of keys that are set, for checking that only one is.
func one(keys ...bool) (n int) {
	for _, set := range keys {
		if set {
			n++
		}
	}
	return n
}

// Links returns the indices in Topology.Links of the fault's links.
func (f *Fault) Links(t *fabric.Topology) ([]int, error) {
	if f.Link != "" {
		return t.FindLinks(f.Link)
	}
	if f.Server != "" {
		return nil, nil
	}
	if f.Plane != 0 {
		switches, err := t.Plane(f.Plane)
		var links []int
		for _, s := range switches {
			for _, p := range t.Ports(s) {
				links = lists.Add(links, p.Link)
			}
		}
		return links, err
	}
	if t.Switch(f.Switch) == nil {
		return nil, fmt.Errorf("there is no switch %q", f.Switch)
	}
	return lists.Map(t.Ports(f.Switch), func(p fabric.Port) int { return p.Link }), nil
}
