package controller_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/controller/task"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme"
)

// A virtualNet is a network of data planes in virtual time with planned tables.
// Packets take the delay of each link and nothing else.
type virtualNet struct {
	t        *testing.T
	plan     *plan.Plan
	now      time.Duration
	switches map[string]*virtualSwitch
	flying   []flight
	// heard contains the packets that hosts have received.
	heard map[string][][]byte
	// silent switches do not report whether their queues are empty.
	silent bool
	// timeless switches have no readable clock.
	timeless bool
	// lost are links by their ends that lose everything.
	lost map[fabric.End]bool
	out  int // packets from the controller
}

type virtualSwitch struct {
	plan   *plan.Switch
	engine *dataplane.Engine
	ports  map[int]fabric.Port
}

// A flight is a packet on a link.
type flight struct {
	at   time.Duration
	to   fabric.End
	data []byte
}

var _ task.Fabric = (*virtualNet)(nil)

// pipelines are generated and compiled once for all tests.
var pipelines = struct {
	sync.Mutex
	made map[string]*plan.Pipeline
}{made: map[string]*plan.Pipeline{}}

// newPipeline generates and compiles the program of a scheme for a role: drill,
// or drill@tna for Tofino.
func newPipeline(t testing.TB, name string, role fabric.Role, set map[string]string) *plan.Pipeline {
	t.Helper()
	key := name + " " + string(role)
	for _, name := range slices.Sorted(keysOf(set)) {
		key += " " + name + "=" + set[name]
	}
	pipelines.Lock()
	defer pipelines.Unlock()
	if p := pipelines.made[key]; p != nil {
		return p
	}
	base, arch, _ := strings.Cut(name, "@")
	row, err := codegen.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	program, err := scheme.Of(row).Build(codegen.Params{Arch: arch, Role: string(role), Ports: 4, MaxPort: 64, Set: set})
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := program.Compiled()
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Pipeline{Manifest: program.Manifest, P4Info: compiled.P4Info, Config: compiled.JSON()}
	pipelines.made[key] = p
	return p
}

func keysOf(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// configs has the configurations of pipelines, by their JSON.
var configs sync.Map

func configOf(t testing.TB, p *plan.Pipeline) *bmv2.Config {
	t.Helper()
	if c, ok := configs.Load(&p.Config[0]); ok {
		return c.(*bmv2.Config)
	}
	c, err := bmv2.Load(p.Config)
	if err != nil {
		t.Fatal(err)
	}
	configs.Store(&p.Config[0], c)
	return c
}

// newPlan plans a scheme on a topology.
func newPlan(t testing.TB, top *fabric.Topology, scheme string, set map[string]string) *plan.Plan {
	t.Helper()
	made := map[fabric.Role]*plan.Pipeline{}
	for _, s := range top.Switches {
		if made[s.Role] == nil {
			made[s.Role] = newPipeline(t, scheme, s.Role, set)
		}
	}
	plan, err := plan.New(top, made, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// leafSpine is two leaves and two spines with two links between each pair.
func leafSpine(t testing.TB, delay time.Duration) *fabric.Topology {
	t.Helper()
	top, err := fabric.LeafSpine{Parallel: 2, Links: fabric.Links{
		HostRate: 100 * fabric.Mbps, Rate: 400 * fabric.Mbps, Delay: delay, Queue: 64,
	}}.Make()
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// leftToPlainRun skips a test of virtual networks in the short form, which is for
// the race detector.
func leftToPlainRun(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a virtual network has one goroutine: the race detector has nothing to see")
	}
}

func newVirtualNet(t *testing.T, top *fabric.Topology, scheme string, set map[string]string) *virtualNet {
	t.Helper()
	n := &virtualNet{
		t: t, plan: newPlan(t, top, scheme, set), now: time.Second,
		switches: map[string]*virtualSwitch{}, heard: map[string][][]byte{}, lost: map[fabric.End]bool{},
	}
	for _, s := range n.plan.Switches {
		n.switches[s.Name] = n.newSwitch(s)
	}
	return n
}

func (n *virtualNet) newSwitch(s *plan.Switch) *virtualSwitch {
	n.t.Helper()
	sw, err := dataplane.New(configOf(n.t, s.Pipeline), dataplane.Options{})
	if err != nil {
		n.t.Fatal(err)
	}
	v := &virtualSwitch{plan: s, engine: dataplane.NewEngine(sw), ports: map[int]fabric.Port{}}
	for _, p := range n.plan.Topology.Ports(s.Name) {
		v.ports[p.Number] = p
	}
	n.fill(sw, s)
	return v
}

// fill writes the planned state to a data plane.
func (n *virtualNet) fill(sw *dataplane.Switch, s *plan.Switch) {
	n.t.Helper()
	check := func(err error) {
		n.t.Helper()
		if err != nil {
			n.t.Fatalf("%s: %v", s.Name, err)
		}
	}
	for _, e := range s.Entries {
		control, _, _ := strings.Cut(e.Table, ".")
		call := dataplane.ActionCall{Name: control + "." + e.Action}
		for _, a := range e.Args {
			call.Params = append(call.Params, bigEndian(a.Value))
		}
		target := dataplane.Target{Kind: dataplane.TargetAction, Action: call}
		if len(e.Match) == 0 {
			check(sw.Tables().SetDefault(e.Table, target))
			continue
		}
		entry := dataplane.Entry{Target: target}
		key, _, err := sw.Tables().Key(e.Table)
		check(err)
		entry.Priority = math.MaxInt32 - e.Priority
		for i, m := range e.Match {
			match := dataplane.Match{Value: bigEndian(m.Value), PrefixLen: m.Bits}
			if key[i].Kind == dataplane.MatchTernary {
				match.PrefixLen, match.Mask = 0, bigEndian(1<<m.Width-1)
				if m.Mask != nil {
					match.Mask = bigEndian(*m.Mask)
				}
			}
			entry.Match = append(entry.Match, match)
		}
		_, err = sw.Tables().Add(e.Table, entry)
		check(err)
	}
	for _, c := range s.Sessions {
		check(sw.Mirrors().Set(uint32(c.ID), dataplane.MirrorSession{HasPort: true, Port: uint32(c.Port)}))
	}
	for _, g := range s.Groups {
		var list []dataplane.Replica
		for i, p := range g.Ports {
			list = append(list, dataplane.Replica{Instance: uint32(i), Port: uint32(p)})
		}
		check(sw.Replication().SetGroup(uint32(g.ID), list))
	}
	for _, f := range s.Filters {
		for _, array := range sw.Config().FilterArrays {
			for i := range array.Size {
				if strings.HasSuffix(array.Name, "."+f.Name) {
					check(sw.Filters().Set(array.Name, i, dataplane.FilterSpec{Rate: !f.Sample, Gain: f.Time, Decay: f.Time, Shift: f.Shift}))
				}
			}
		}
	}
	for _, c := range s.Registers {
		check(sw.Registers().WriteRange(c.Register, c.From, c.To, new(big.Int).SetUint64(c.Value)))
	}
}

func bigEndian(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

// send has a switch process a packet now.
func (n *virtualNet) send(at fabric.End, data []byte) {
	s := n.switches[at.Node]
	for _, o := range s.engine.Process(uint32(at.Port), data, n.now) {
		n.leave(s, int(o.Port), slices.Clone(o.Data))
	}
}

// leave puts a packet on the link behind a port.
func (n *virtualNet) leave(s *virtualSwitch, port int, data []byte) {
	p, ok := s.ports[port]
	if !ok || p.Down || n.lost[fabric.End{Node: s.plan.Name, Port: port}] {
		return
	}
	if p.PeerTier == 0 {
		n.heard[p.Peer] = append(n.heard[p.Peer], data)
		return
	}
	n.flying = append(n.flying, flight{n.now + p.Delay, fabric.End{Node: p.Peer, Port: p.PeerPort}, data})
}

// settle advances time at least to a given time, and until no packet is in flight.
func (n *virtualNet) settle(until time.Duration) {
	for len(n.flying) > 0 {
		slices.SortStableFunc(n.flying, func(a, b flight) int { return cmp.Compare(a.at, b.at) })
		f := n.flying[0]
		n.flying = n.flying[1:]
		n.now = max(n.now, f.at)
		n.send(f.to, f.data)
	}
	n.now = max(n.now, until)
}

// play runs tasks and their effects until a time.
func (n *virtualNet) play(tasks []task.Task, until time.Duration) {
	n.t.Helper()
	s := task.NewSchedule(tasks, n.now)
	for s.Next() <= until {
		n.settle(s.Next())
		for _, err := range s.Run(n.now, n) {
			n.t.Fatal(err)
		}
	}
	n.settle(until)
}

// step runs a task once, and continues to when it is due again.
func (n *virtualNet) step(task task.Task) {
	n.t.Helper()
	next, err := task.Run(n.now, n)
	if err != nil {
		n.t.Fatal(err)
	}
	n.now = next
}

// tasks returns the tasks of the plan.
func (n *virtualNet) tasks(o task.Options) []task.Task {
	n.t.Helper()
	list, err := task.ForPlan(n.plan, o)
	if err != nil {
		n.t.Fatal(err)
	}
	return list
}

func (n *virtualNet) ReadRegister(sw, register string, from, to int, dst []uint64) ([]uint64, error) {
	cells, err := n.switches[sw].engine.Switch().Registers().Cells(register, nil)
	if err != nil {
		return dst, err
	}
	return append(dst, cells[from:to]...), nil
}

func (n *virtualNet) WriteRegister(sw, register string, from, to int, value uint64) error {
	return n.switches[sw].engine.Switch().Registers().WriteRange(register, from, to, new(big.Int).SetUint64(value))
}

func (n *virtualNet) Clock(string) (time.Duration, error) {
	if n.timeless {
		return 0, registers.ErrNoClock
	}
	return n.now, nil
}

func (n *virtualNet) PacketOut(sw string, frame []byte) error {
	n.out++
	n.send(fabric.End{Node: sw, Port: n.switches[sw].plan.CPUPort}, frame)
	return nil
}

func (n *virtualNet) PacketAt(sw string, port int, frame []byte) error {
	n.send(fabric.End{Node: sw, Port: port}, frame)
	return nil
}

func (n *virtualNet) QueuesEmpty(string) (bool, error) {
	if n.silent {
		return false, errors.ErrUnsupported
	}
	return true, nil
}

// cell reads one cell.
func (n *virtualNet) cell(sw, register string, i int) uint64 {
	n.t.Helper()
	cells, err := n.ReadRegister(sw, register, i, i+1, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	return cells[0]
}

// Write sets one cell.
func (n *virtualNet) write(sw, register string, i int, v uint64) {
	n.t.Helper()
	if err := n.WriteRegister(sw, register, i, i+1, v); err != nil {
		n.t.Fatal(err)
	}
}

// registers returns the registers of one switch for an inspector.
func (n *virtualNet) registers(sw string) registers.Access { return virtualRegisters{n, sw} }

type virtualRegisters struct {
	n  *virtualNet
	sw string
}

func (r virtualRegisters) Read(_ context.Context, name string, from, to int, dst []uint64) ([]uint64, error) {
	return r.n.ReadRegister(r.sw, name, from, to, dst)
}

func (r virtualRegisters) Write(_ context.Context, name string, from, to int, value uint64) error {
	return r.n.WriteRegister(r.sw, name, from, to, value)
}

func (r virtualRegisters) Clock(context.Context) (time.Duration, error) { return r.n.now, nil }

// host sends a UDP packet from one host to another.
func (n *virtualNet) host(from, to string, sport uint16, size int) {
	n.t.Helper()
	src, dst := n.plan.Topology.Host(from), n.plan.Topology.Host(to)
	n.send(fabric.End{Node: src.Switch, Port: src.Port}, udp(src, dst, sport, size))
}

// udp makes a packet of a size, from Ethernet on.
func udp(src, dst *fabric.Host, sport uint16, size int) []byte {
	b := slices.Concat(dst.MAC[:], src.MAC[:], []byte{8, 0})
	b = append(b, 0x45, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(size-14))
	b = append(b, 0, 0, 0, 0, 64, 17, 0, 0)
	for _, a := range []netip.Addr{src.IP.Addr(), dst.IP.Addr()} {
		four := a.As4()
		b = append(b, four[:]...)
	}
	binary.BigEndian.PutUint16(b[24:], ipChecksum(b[14:34]))
	b = binary.BigEndian.AppendUint16(b, sport)
	b = binary.BigEndian.AppendUint16(b, 9)
	b = binary.BigEndian.AppendUint16(b, uint16(size-34))
	b = append(b, 0, 0)
	return append(b, make([]byte, size-len(b))...)
}

// ipChecksum returns the checksum of a header with a zero checksum field.
func ipChecksum(header []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	sum = sum>>16 + sum&0xffff
	return ^uint16(sum>>16 + sum)
}
