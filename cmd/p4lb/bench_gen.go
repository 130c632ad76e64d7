package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/dataplane"
	"github.com/p4lb/p4lb/scheme"
)

// benchGen measures the generator, and each program of the catalogue on the
// embedded switch with four paths.
func benchGen(ctx context.Context, runs int) ([]measurement, error) {
	var wall []time.Duration
	var list []*scheme.Program
	spent, err := repeat(ctx, min(runs, 5), 3*time.Second, processTime, func() (err error) {
		start := time.Now()
		if list, err = generateAll(ctx, new(scheme.Library).All(), codegen.Params{}); err != nil {
			return err
		}
		for _, g := range list {
			if _, err := filesOf(g); err != nil {
				return err
			}
		}
		wall = append(wall, time.Since(start))
		return nil
	})
	if err != nil {
		return nil, err
	}
	result := []measurement{{"gen.all", milliseconds(median(spent)), "ms",
		fmt.Sprintf("generate and compile the %d programs of the catalogue, CPU time of all cores, median of %d (%.3g ms by the clock)", len(list), len(spent), milliseconds(median(wall)))}}
	for _, g := range list {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		rate, err := benchForwarding(ctx, g, runs)
		if err != nil {
			return nil, fmt.Errorf("measuring %s: %w", g.Name, err)
		}
		result = append(result, measurement{"gen." + g.Name, rate, "Mpkt/s", "its program on the embedded switch, " + benchTraffic})
	}
	hardware, err := benchHardware(ctx, runs)
	return append(result, hardware...), err
}

// benchTraffic says what the programs forward.
const benchTraffic = "4 paths, 200-byte packets of 256 flows, CPU time of one core"

// benchForwarding is the median rate of some runs in packets per µs of CPU time.
func benchForwarding(ctx context.Context, p *scheme.Program, runs int) (float64, error) {
	leaf, err := newLeaf(p, 4)
	if err != nil {
		return 0, err
	}
	packets := leafPackets(256)
	now := time.Second
	n := 0
	pass := func() error {
		for range leafRun {
			now += 2 * time.Microsecond
			if out := leaf.Process(hostPort, packets[n%len(packets)], now); len(out) != 1 {
				return fmt.Errorf("packet %d: %d came out", n, len(out))
			}
			n++
		}
		return nil
	}
	if err := pass(); err != nil { // warms up
		return 0, err
	}
	spent, err := repeat(ctx, runs, time.Second, threadTime, pass)
	if err != nil {
		return 0, err
	}
	return leafRun / float64(median(spent).Nanoseconds()) * 1e3, nil
}

// leafRun is how many packets one run of benchForwarding has: it is shorter
// than a time slice, so that few runs are interrupted.
const leafRun = 2000

// hostPort is where the hosts of a leaf are attached.
const hostPort = 100

// newLeaf starts a generated program as a leaf with a group of paths to
// 10.0.0.0/8 behind ports 1 to paths, and hosts in 192.168.0.0/16.
func newLeaf(p *scheme.Program, paths int) (*dataplane.Engine, error) {
	compiled, err := p.Compiled()
	if err != nil {
		return nil, err
	}
	sw, err := dataplane.New(compiled.Config, dataplane.Options{})
	if err != nil {
		return nil, err
	}
	l := &leafRig{sw: sw, paths: paths, widths: map[string][]paramWidth{}}
	for _, a := range compiled.Config.Actions {
		for _, p := range a.RuntimeData {
			l.widths[a.Name] = append(l.widths[a.Name], paramWidth{p.Name, p.Bitwidth})
		}
	}
	for _, s := range p.Manifest.CloneSessions {
		if !s.PerPort {
			l.keep(sw.SetMirror(uint32(s.Session), dataplane.MirrorSession{Port: uint32(s.Port), HasPort: true, Length: s.Bytes}))
		}
	}
	if p.Manifest.Arch.Hardware() {
		l.bake(&p.Manifest)
	}
	for _, t := range p.Manifest.Tables {
		if fill, ok := leafTables[t.Name]; ok {
			fill(l)
		}
	}
	return dataplane.NewEngine(sw), l.err
}

// A leafRig fills the tables of a leaf.
type leafRig struct {
	sw     *dataplane.Switch
	paths  int
	widths map[string][]paramWidth
	baked  map[string]bool // tables
	err    error
}

type paramWidth struct {
	name string
	bits int
}

func (l *leafRig) keep(err error) {
	if l.err == nil {
		l.err = err
	}
}

// leafTables fills the tables that a leaf needs for forwarding.
var leafTables = map[string]func(*leafRig){
	"LbIngress.ipv4_route": func(l *leafRig) {
		l.add("LbIngress.ipv4_route", "LbIngress.set_group", l.value(map[string]int64{"gid": 1, "n": int64(l.paths)}),
			dataplane.Match{Value: []byte{10, 0, 0, 0}, PrefixLen: 8})
		l.add("LbIngress.ipv4_route", "LbIngress.forward", l.value(map[string]int64{"port": hostPort, "dmac": 1, "smac": 2}),
			dataplane.Match{Value: []byte{192, 168, 0, 0}, PrefixLen: 16})
	},
	"LbIngress.member": func(l *leafRig) {
		for slot := range int64(l.paths) {
			l.add("LbIngress.member", "LbIngress.forward", l.value(map[string]int64{"port": slot + 1, "dmac": 0x0200_0000_0100 + slot, "smac": 0x0200_0000_0001}),
				dataplane.Match{Value: []byte{0, 1}}, dataplane.Match{Value: []byte{byte(slot)}})
		}
	},
	"LbIngress.candidates": func(l *leafRig) {
		l.add("LbIngress.candidates", "LbIngress.set_candidates", func(name string) int64 {
			attribute, slot, _ := strings.Cut(name, "_")
			n := int64(slot[0] - '0')
			if len(slot) > 1 {
				n = n*10 + int64(slot[1]-'0')
			}
			switch {
			case n >= int64(l.paths):
				return 0
			case attribute == "port":
				return n + 1
			case attribute == "svc":
				return 20 << 16 // 20 µs
			}
			return 1
		}, dataplane.Match{Value: []byte{0, 1}})
	},
	"LbIngress.grids": func(l *leafRig) {
		if !l.baked["LbIngress.grids"] { // then the weights are those of the group
			l.add("LbIngress.grids", "LbIngress.set_ends", evenEnd(l.paths), dataplane.Match{Value: []byte{0, 1}})
		}
	},
	"LbEgress.port_cfg": func(l *leafRig) {
		for _, port := range append(countTo(l.paths), hostPort) {
			l.add("LbEgress.port_cfg", "LbEgress.set_port_cfg", l.value(map[string]int64{"rl": 255 << 16 / 63}),
				dataplane.Match{Value: binary.BigEndian.AppendUint16(nil, uint16(port))})
		}
	},
}

func countTo(n int) []int {
	var list []int
	for i := range n {
		list = append(list, i+1)
	}
	return list
}

// value gives parameters of an action their values by name.
func (l *leafRig) value(values map[string]int64) func(string) int64 {
	return func(name string) int64 { return values[name] }
}

func (l *leafRig) add(table, action string, value func(name string) int64, key ...dataplane.Match) {
	call := dataplane.ActionCall{Name: action}
	for _, p := range l.widths[action] {
		call.Params = append(call.Params, big.NewInt(value(p.name)).FillBytes(make([]byte, (p.bits+7)/8)))
	}
	if _, err := l.sw.TableAdd(table, dataplane.Entry{Match: key, Target: dataplane.Target{Action: call}}); err != nil {
		l.keep(fmt.Errorf("table %s: %w", table, err))
	}
}

// leafPackets are UDP packets of so many flows from hosts to 10.0.0.0/8.
func leafPackets(flows int) [][]byte {
	var list [][]byte
	for f := range flows {
		p := make([]byte, 200)
		copy(p, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 0, 8, 0, 0x45, 0, 0, 186, 0, 0, 0, 0, 64, 17, 0, 0, 192, 168, 0, 9, 10, 0, 0, byte(f)})
		binary.BigEndian.PutUint16(p[34:], uint16(1000+f))
		binary.BigEndian.PutUint16(p[36:], 80)
		binary.BigEndian.PutUint16(p[24:], headerChecksum(p[14:34]))
		list = append(list, p)
	}
	return list
}

// headerChecksum is the checksum of an IPv4 header whose own field is 0.
func headerChecksum(header []byte) uint16 {
	var sum uint32
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
