package dataplane

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/scheme"
)

// programs returns all programs in the testdata folders.
func programs(t testing.TB) map[string][]byte {
	t.Helper()
	list := map[string][]byte{}
	for _, pattern := range []string{"testdata/*.json", "stf/testdata/*.json"} {
		files, err := filepath.Glob(pattern)
		must(t, err)
		for _, f := range files {
			data, err := os.ReadFile(f)
			must(t, err)
			list[f] = data
		}
	}
	if len(list) < 8 {
		t.Fatalf("only %d programs", len(list))
	}
	return list
}

// The switch refuses a document or runs it, with the same result in both
// engines. The fuzzer chooses a program and a seed for changes to it, because
// documents with random bytes hardly ever load.
func FuzzProgram(f *testing.F) {
	var docs [][]byte
	list := programs(f)
	maps.Copy(list, schemes(f, "letflow", "qall-pkt", "dhlb", "drill+rlb")) // few, as a change takes long in a large document
	maps.Copy(list, pipeRows(f, bmv2.TNA, "letflow", "qall-pkt", "dhlb"))
	maps.Copy(list, pipeRows(f, bmv2.T2NA, "qall-pkt", "conga"))
	for _, name := range slices.Sorted(maps.Keys(list)) {
		docs = append(docs, withoutSource(f, list[name]))
	}
	for i := range docs {
		f.Add(uint8(i), uint64(i), uint8(3))
	}
	packet := udp(80, 1, 2, 3, 4)
	f.Fuzz(func(t *testing.T, doc uint8, seed uint64, changes uint8) {
		r := rand.New(rand.NewPCG(seed, 1))
		c, err := bmv2.Load(mutate(t, docs[int(doc)%len(docs)], r, int(changes%8)))
		if err != nil {
			return
		}
		w := newTwins(t, c, func(s *Switch) { populate(s, seed) })
		if w == nil {
			return
		}
		for i := range 4 {
			packet[i*7] = byte(r.Uint32())
			w.process(t, 1, packet[:r.IntN(len(packet))], time.Second)
			w.process(t, 1, traffic(r), time.Second)
		}
		w.compare(t)
	})
}

// withoutSource removes the source positions, which are half of a document.
func withoutSource(t testing.TB, doc []byte) []byte {
	c, err := bmv2.Load(doc)
	must(t, err)
	for _, a := range c.Actions {
		for _, p := range a.Primitives {
			p.SourceInfo = nil
		}
	}
	for _, p := range c.Pipelines {
		for _, t := range p.Tables {
			t.SourceInfo = nil
		}
		for _, k := range p.Conditionals {
			k.SourceInfo = nil
		}
	}
	var b bytes.Buffer
	must(t, c.Write(&b))
	return b.Bytes()
}

// mutate makes n changes to a JSON document: it replaces a value by another
// value of the document or by an unusual one, or removes it.
func mutate(t *testing.T, doc []byte, r *rand.Rand, n int) []byte {
	var root any
	must(t, json.Unmarshal(doc, &root))
	for range n {
		var slots []func(any)
		var values []any
		collect(root, &slots, &values)
		v := values[r.IntN(len(values))]
		switch r.IntN(4) {
		case 0:
			v = []any{nil, -1, 0, 1, 3, 64, 65, 1 << 20, "", "0x", "-0x1", "0xffffffffffffffffffff", []any{}, map[string]any{}, true}[r.IntN(15)]
		}
		// A copy, so that no value contains itself.
		slots[r.IntN(len(slots))](copyOf(t, v))
	}
	out, err := json.Marshal(root)
	must(t, err)
	return out
}

func copyOf(t *testing.T, v any) (c any) {
	data, err := json.Marshal(v)
	must(t, err)
	must(t, json.Unmarshal(data, &c))
	return c
}

// collect lists the values of a document and how to replace each.
func collect(v any, slots *[]func(any), values *[]any) {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			*slots, *values = append(*slots, func(x any) { v[i] = x }), append(*values, e)
			collect(e, slots, values)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			*slots, *values = append(*slots, func(x any) { v[k] = x }), append(*values, v[k])
			collect(v[k], slots, values)
		}
	}
}

// schemes returns generated programs.
func schemes(t testing.TB, names ...string) map[string][]byte {
	t.Helper()
	list := map[string][]byte{}
	for _, name := range names {
		row, err := codegen.Lookup(name)
		must(t, err)
		program, err := scheme.Of(row).Build(codegen.Params{})
		must(t, err)
		compiled, err := program.Compiled()
		must(t, err)
		list[row.Name] = compiled.JSON()
	}
	return list
}

// pipeRows returns rows for Tofino, all of them if no names are given.
func pipeRows(t testing.TB, arch string, names ...string) map[string][]byte {
	t.Helper()
	list := map[string][]byte{}
	for name, c := range rows[arch]() {
		if len(names) == 0 || slices.Contains(names, name) {
			var b bytes.Buffer
			must(t, c.Write(&b))
			list[arch+"/"+name] = b.Bytes()
		}
	}
	return list
}

// busy returns an engine whose tables forward on a miss: the default action is
// the one with the most parameters, all 3.
func busy(t testing.TB, doc []byte, o Options) *Engine {
	t.Helper()
	c, err := bmv2.Load(doc)
	must(t, err)
	s, err := New(c, o)
	must(t, err)
	params := map[string][]bmv2.RuntimeParam{}
	for _, a := range c.Actions {
		params[a.Name] = a.RuntimeData
	}
	for _, p := range c.Pipelines {
		for _, table := range p.Tables {
			var call ActionCall
			for _, name := range table.Actions {
				if len(params[name]) > len(call.Params) {
					call = ActionCall{Name: name}
					for _, d := range params[name] {
						v := make([]byte, (d.Bitwidth+7)/8)
						v[len(v)-1] = 3 >> max(0, 2-d.Bitwidth)
						call.Params = append(call.Params, v)
					}
				}
			}
			if call.Name != "" {
				_ = s.Tables().SetDefault(table.Name, Target{Action: call}) // some tables' defaults are fixed
			}
		}
	}
	for _, session := range []uint16{5, 7, 500, 1003} {
		must(t, s.Mirrors().Set(uint32(session), MirrorSession{Port: uint32(session) % 502, HasPort: true, Group: uint32(session) % 4}))
	}
	for _, session := range []uint32{1, 2, 3} { // of Tofino
		must(t, s.Mirrors().Set(session, MirrorSession{Port: s.GeneratorPort(), HasPort: true, Length: 64}))
	}
	for name, f := range s.prog.Filters {
		for i := range f.Cells {
			if f.Wred {
				must(t, s.Filters().SetWred(name, i, WredSpec{Time: time.Millisecond, Min: 100, Max: 1000, Probability: 0.5}))
				continue
			}
			must(t, s.Filters().Set(name, i, FilterSpec{Rate: true, Gain: time.Millisecond}))
		}
	}
	for _, group := range []uint32{1, 3, 900, 1003} {
		must(t, s.Replication().SetGroup(group, []Replica{{1, 1}, {2, 2}}))
	}
	return NewEngine(s)
}

// A program survives any packet, in both engines, and leaves nothing on the
// scratch stack.
func FuzzPacket(f *testing.F) {
	if testing.Short() {
		f.Skip("its corpus takes long under the race detector; TestCompiledIsEqual runs all programs there")
	}
	list := programs(f)
	maps.Copy(list, schemes(f, codegen.Names()...))
	maps.Copy(list, pipeRows(f, bmv2.TNA))
	maps.Copy(list, pipeRows(f, bmv2.T2NA))
	var engines []*twins
	for _, name := range slices.Sorted(maps.Keys(list)) {
		engines = append(engines, &twins{engines: [2]*Engine{busy(f, list[name], Options{}), busy(f, list[name], Options{Closures: true})}})
	}
	for i := range engines {
		f.Add(uint8(i), uint16(3), udp(80, 1, 2, 3, 4))
		for typ := byte(0xB5); typ <= 0xB7; typ++ { // the schemes' own headers
			p := udp(80, 1, 2, 3, 4)
			p = append(append(slices.Clone(p[:12]), 0x88, typ, 2, 0, 3, 0, 0, 0, 9), p[14:]...)
			f.Add(uint8(i), uint16(255), p)
		}
	}
	for i := range engines { // reports and rounds of Tofino
		for _, typ := range []byte{0xff, 0xfe, 1} {
			f.Add(uint8(i), uint16(68), append([]byte{typ, 0, 3, 0, 9}, udp(80, 1, 2, 3, 4)...))
			f.Add(uint8(i), uint16(6), append([]byte{typ, 0, 3, 0, 9}, udp(80, 1, 2, 3, 4)...))
		}
	}
	f.Add(uint8(0), uint16(1), []byte{})
	f.Add(uint8(0), uint16(1), []byte{4, 1, 0, 0, 1, 2, 3})
	now := time.Second
	f.Fuzz(func(t *testing.T, program uint8, port uint16, packet []byte) {
		e := engines[int(program)%len(engines)]
		now += 100 * time.Microsecond
		e.process(t, uint32(port)%512, packet, now)
		for _, e := range e.engines {
			if e.sw.prog.Scratch.Used != 0 {
				t.Fatalf("%d words left on the stack", e.sw.prog.Scratch.Used)
			}
		}
	})
}
