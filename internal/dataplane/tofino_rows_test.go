package dataplane

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/internal/p4"
)

// rows are the compiled programs of the catalogue for an architecture.
var rows = map[string]func() map[string]*bmv2.Config{
	bmv2.TNA:  sync.OnceValue(func() map[string]*bmv2.Config { return compileRows(bmv2.TNA) }),
	bmv2.T2NA: sync.OnceValue(func() map[string]*bmv2.Config { return compileRows(bmv2.T2NA) }),
}

func compileRows(arch string) map[string]*bmv2.Config {
	list := map[string]*bmv2.Config{}
	files, err := filepath.Glob("../../p4src/" + arch + "/*.p4")
	if err != nil || len(files) == 0 {
		panic(fmt.Sprintf("no programs for %s: %v", arch, err))
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			panic(err)
		}
		name := filepath.Base(f)
		if strings.Contains(name, "poly") && name != "qall-poly3.p4" {
			continue // one program with other tables
		}
		p, err := p4.CompileText(name, data, p4.Options{Arch: arch})
		if err != nil {
			panic(err)
		}
		list[strings.TrimSuffix(name, ".p4")] = p.Config
	}
	return list
}

// pipeLeaf runs a row as a leaf: four paths to 10.0.0.0/8 at ports 9 to 12,
// hosts at port 100.
func pipeLeaf(t testing.TB, arch, row string) *Engine {
	t.Helper()
	c := rows[arch]()[row]
	if c == nil {
		t.Fatalf("no %s for %s", row, arch)
	}
	s, err := New(c, Options{})
	must(t, err)
	l := leafTables{t, s, map[string][]bmv2.RuntimeParam{}}
	for _, a := range c.Actions {
		l.params[a.Name] = a.RuntimeData
	}
	for name, fill := range map[string]func(string){
		"ipv4_route": func(table string) {
			l.add(table, "set_group", func(p string) uint64 { return map[string]uint64{"gid": 1, "n": 4}[p] }, Match{Value: []byte{10, 0, 0, 0}, PrefixLen: 8})
		},
		"member": func(table string) {
			for slot := range uint64(4) {
				l.add(table, "forward", func(p string) uint64 { return map[string]uint64{"port": 9 + slot, "dmac": slot}[p] }, Match{Value: []byte{1}}, Match{Value: be(slot, 1)})
			}
		},
		"candidates": func(table string) {
			l.add(table, "set_candidates", func(p string) uint64 { return 9 + uint64(p[len(p)-1]-'0') }, Match{Value: []byte{1}})
		},
		"grids": func(table string) {
			l.orElse(table, "set_ends", func(p string) uint64 { return 64 * uint64(p[len(p)-1]-'0'+1) })
		},
		"index": func(table string) { l.orElse(table, "set_level", func(string) uint64 { return 3 }) },
	} {
		if s.prog.Tables["LbIngress."+name] != nil {
			fill("LbIngress." + name)
		} else if s.prog.Tables["LbEgress."+name] != nil {
			fill("LbEgress." + name)
		}
	}
	for _, session := range []uint32{1, 2} {
		must(t, s.Mirrors().Set(session, MirrorSession{Port: s.GeneratorPort(), HasPort: true, Length: 64}))
	}
	for name := range s.prog.Filters {
		for i := range s.prog.Filters[name].Cells {
			must(t, s.Filters().Set(name, i, FilterSpec{Rate: true, Gain: time.Millisecond, Shift: 10}))
		}
	}
	return NewEngine(s)
}

type leafTables struct {
	t      testing.TB
	s      *Switch
	params map[string][]bmv2.RuntimeParam
}

func (l leafTables) call(table, action string, value func(string) uint64) Target {
	name := table[:strings.Index(table, ".")+1] + action
	call := ActionCall{Name: name}
	for _, p := range l.params[name] {
		call.Params = append(call.Params, be(value(p.Name), (p.Bitwidth+7)/8))
	}
	return Target{Action: call}
}

func (l leafTables) add(table, action string, value func(string) uint64, key ...Match) {
	l.t.Helper()
	_, err := l.s.Tables().Add(table, Entry{Match: key, Target: l.call(table, action, value)})
	must(l.t, err)
}

func (l leafTables) orElse(table, action string, value func(string) uint64) {
	l.t.Helper()
	must(l.t, l.s.Tables().SetDefault(table, l.call(table, action, value)))
}

// Every row forwards each packet of each flow to one of its paths, with the
// headers of that path, without allocation.
func TestRowsForward(t *testing.T) {
	for arch := range rows {
		for _, row := range slices.Sorted(maps.Keys(rows[arch]())) {
			t.Run(arch+"/"+row, func(t *testing.T) {
				e := pipeLeaf(t, arch, row)
				packets, now, n := flows(200), time.Second, 0
				once := func() {
					out := e.Process(100, packets[n%len(packets)], now)
					if len(out) != 1 || out[0].Port < 9 || out[0].Port > 12 {
						t.Fatalf("packet %d: %d come out", n, len(out))
					}
					now += time.Microsecond
					n++
				}
				for range 2000 {
					once()
				}
				if e.sw.prog.Scratch.Used != 0 {
					t.Errorf("%d words left on the stack", e.sw.prog.Scratch.Used)
				}
				if a := testing.AllocsPerRun(1000, once); a != 0 {
					t.Errorf("%v allocations per packet", a)
				}
			})
		}
	}
}

func BenchmarkRows(b *testing.B) {
	asm.Debug = false
	defer func() { asm.Debug = true }()
	for _, arch := range []string{bmv2.TNA, bmv2.T2NA} {
		for _, row := range slices.Sorted(maps.Keys(rows[arch]())) {
			b.Run(fmt.Sprintf("%s/%s", arch, row), func(b *testing.B) {
				e := pipeLeaf(b, arch, row)
				packets, now := flows(200), time.Second
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					now += time.Microsecond
					if out := e.Process(100, packets[i%len(packets)], now); len(out) != 1 {
						b.Fatal("packet lost")
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mpps")
			})
		}
	}
}
