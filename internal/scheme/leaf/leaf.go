// Package leaf runs a generated program as a single leaf on the embedded
// switch, with a group of paths, hosts, and packets for them. It is used to
// measure programs and to compare their arithmetic with the fitted integers
// (verify.go).
package leaf

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// HostPort is the port of the leaf's hosts.
const HostPort = 100

// New starts a generated program as a leaf with a group of paths to 10.0.0.0/8
// through ports 1 to paths, and hosts in 192.168.0.0/16.
func New(p *scheme.Program, paths int) (*dataplane.Engine, error) {
	compiled, err := p.Compiled()
	if err != nil {
		return nil, err
	}
	sw, err := dataplane.New(compiled.Config, dataplane.Options{})
	if err != nil {
		return nil, err
	}
	l := &rig{sw: sw, paths: paths, widths: map[string][]paramWidth{}}
	for _, a := range compiled.Config.Actions {
		for _, p := range a.RuntimeData {
			l.widths[a.Name] = append(l.widths[a.Name], paramWidth{p.Name, p.Bitwidth})
		}
	}
	for _, s := range p.Manifest.CloneSessions {
		if !s.PerPort {
			l.keep(sw.Mirrors().Set(uint32(s.Session), dataplane.MirrorSession{Port: uint32(s.Port), HasPort: true, Length: s.Bytes}))
		}
	}
	if p.Manifest.Arch.Hardware() {
		// Fill the tables that replace arithmetic, and configure the filters.
		for _, f := range l.sw.Config().FilterArrays {
			for i := range f.Size {
				l.keep(l.sw.Filters().Set(f.Name, i, dataplane.FilterSpec{Rate: true, Gain: time.Millisecond, Shift: 8}))
			}
		}
		l.baked = map[string]bool{}
		for _, t := range p.Manifest.Tables {
			if t.Baked != nil {
				l.baked[t.Name] = true
				l.bakeTable(t.Name, t.Baked)
			}
		}
	}
	for _, t := range p.Manifest.Tables {
		if fill, ok := leafTables[t.Name]; ok {
			fill(l)
		}
	}
	return dataplane.NewEngine(sw), l.err
}

// A rig fills the tables of a leaf and counts its groups.
type rig struct {
	sw     *dataplane.Switch
	paths  int
	widths map[string][]paramWidth
	baked  map[string]bool // tables with precomputed entries
	err    error
}

type paramWidth struct {
	name string
	bits int
}

func (l *rig) keep(err error) {
	if l.err == nil {
		l.err = err
	}
}

// leafTables contains a function for each table that a leaf needs for forwarding.
var leafTables = map[string]func(*rig){
	"LbIngress.ipv4_route": func(l *rig) {
		l.add("LbIngress.ipv4_route", "LbIngress.set_group", l.value(map[string]int64{"gid": 1, "n": int64(l.paths)}),
			dataplane.Match{Value: []byte{10, 0, 0, 0}, PrefixLen: 8})
		l.add("LbIngress.ipv4_route", "LbIngress.forward", l.value(map[string]int64{"port": HostPort, "dmac": 1, "smac": 2}),
			dataplane.Match{Value: []byte{192, 168, 0, 0}, PrefixLen: 16})
	},
	"LbIngress.member": func(l *rig) {
		for slot := range int64(l.paths) {
			l.add("LbIngress.member", "LbIngress.forward", l.value(map[string]int64{"port": slot + 1, "dmac": 0x0200_0000_0100 + slot, "smac": 0x0200_0000_0001}),
				dataplane.Match{Value: []byte{0, 1}}, dataplane.Match{Value: []byte{byte(slot)}})
		}
	},
	"LbIngress.candidates": func(l *rig) {
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
	"LbIngress.path_a": func(l *rig) { l.drawn("_a") },
	"LbIngress.path_b": func(l *rig) { l.drawn("_b") },
	"LbIngress.path_m": func(l *rig) { l.drawn("_m") },
	"LbIngress.grids": func(l *rig) {
		if !l.baked["LbIngress.grids"] { // otherwise the weights of the group are in the table
			l.add("LbIngress.grids", "LbIngress.set_ends", evenEnd(l.paths), dataplane.Match{Value: []byte{0, 1}})
		}
	},
	"LbEgress.port_cfg": func(l *rig) {
		for _, port := range append(countTo(l.paths), HostPort) {
			l.add("LbEgress.port_cfg", "LbEgress.set_port_cfg", l.value(map[string]int64{"rl": 255 << 16 / 63}),
				dataplane.Match{Value: binary.BigEndian.AppendUint16(nil, uint16(port))})
		}
	},
}

// drawn fills a table that maps the number of a randomly chosen path to its port.
func (l *rig) drawn(name string) {
	table, action := "LbIngress.path"+name, "LbIngress.set_port"+name
	if l.widths[action] == nil {
		action = "LbIngress.set_queue" + name
	}
	for slot := range l.paths {
		port := slot + 1
		to := map[string]int64{"port": int64(port), "queue": int64(dataplane.QueueNumber(uint32(port), 0))}
		l.add(table, action, l.value(to), dataplane.Match{Value: []byte{0, 1}}, dataplane.Match{Value: []byte{byte(slot)}})
	}
}

func countTo(n int) []int {
	var list []int
	for i := range n {
		list = append(list, i+1)
	}
	return list
}

// value returns a function that looks up a parameter by its name.
func (l *rig) value(values map[string]int64) func(string) int64 {
	return func(name string) int64 { return values[name] }
}

func (l *rig) add(table, action string, value func(name string) int64, key ...dataplane.Match) {
	call := dataplane.ActionCall{Name: action}
	for _, p := range l.widths[action] {
		call.Params = append(call.Params, big.NewInt(value(p.name)).FillBytes(make([]byte, (p.bits+7)/8)))
	}
	if _, err := l.sw.Tables().Add(table, dataplane.Entry{Match: key, Target: dataplane.Target{Action: call}}); err != nil {
		l.keep(fmt.Errorf("table %s: %w", table, err))
	}
}

// Packets returns UDP packets of the given number of flows from hosts to
// 10.0.0.0/8.
func Packets(flows int) [][]byte {
	var list [][]byte
	for f := range flows {
		p := make([]byte, 200)
		copy(p, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 0, 8, 0, 0x45, 0, 0, 186, 0, 0, 0, 0, 64, 17, 0, 0, 192, 168, 0, 9, 10, 0, 0, byte(f)})
		binary.BigEndian.PutUint16(p[34:], uint16(1000+f))
		binary.BigEndian.PutUint16(p[36:], 80)
		binary.BigEndian.PutUint16(p[24:], HeaderChecksum(p[14:34]))
		list = append(list, p)
	}
	return list
}

// HeaderChecksum returns the checksum of an IPv4 header; its checksum field
// must be 0.
func HeaderChecksum(header []byte) uint16 {
	var sum uint32
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// evenEnd returns the last of 256 grid cells of each path, with equal shares.
func evenEnd(paths int) func(string) int64 {
	return func(name string) int64 {
		slot, err := strconv.Atoi(strings.TrimPrefix(name, "end_"))
		if err != nil {
			return 0
		}
		return int64(256*(slot+1)/paths - 1)
	}
}

// bakeTable adds an entry for every key; the first field advances fastest.
func (l *rig) bakeTable(table string, b *manifest.Baked) {
	control, _, _ := strings.Cut(table, ".")
	levels := make([]int, len(b.Keys))
	for i := 0; ; i++ {
		args := []int{0}
		if len(b.Weights) > 0 {
			args = b.Ends(levels)
		} else if i < len(b.Values) {
			args[0] = b.Values[i]
		}
		key := make([]dataplane.Match, len(levels))
		for k, level := range levels {
			key[k].Value = []byte{byte(level >> 8), byte(level)}
		}
		next := -1
		l.add(table, control+"."+b.Action, func(string) int64 { next++; return int64(args[next]) }, key...)
		if l.err != nil || !countUp(levels, b.Keys) {
			return
		}
	}
}

// countUp advances to the next key. It returns false after the last one.
func countUp(levels []int, keys []manifest.BakedKey) bool {
	for i := range levels {
		if levels[i]++; levels[i] < keys[i].Values {
			return true
		}
		levels[i] = 0
	}
	return false
}
