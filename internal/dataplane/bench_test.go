package dataplane

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
)

// load links a program in testdata. p4c compiled the .json files from the .p4
// files: p4c-bm2-ss --std p4-16 NAME.p4 -o NAME.json.
func load(t testing.TB, name string, o Options) *Switch {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := bmv2.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// be returns a number in n big-endian bytes.
func be(v uint64, n int) []byte {
	b := make([]byte, 8)
	binary.BigEndian.PutUint64(b, v)
	return b[8-n:]
}

func act(name string, params ...[]byte) Target {
	return Target{Action: ActionCall{Name: name, Params: params}}
}

// udp returns an Ethernet frame of size bytes with IPv4 and UDP.
func udp(size int, src, dst uint32, sport, dport uint16) []byte {
	p := make([]byte, size)
	copy(p, []byte{0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 8, 0})
	ip := p[14:]
	ip[0], ip[8], ip[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(ip[2:], uint16(size-14))
	binary.BigEndian.PutUint32(ip[12:], src)
	binary.BigEndian.PutUint32(ip[16:], dst)
	binary.BigEndian.PutUint16(ip[10:], hash.Internet(ip[:20]))
	binary.BigEndian.PutUint16(ip[20:], sport)
	binary.BigEndian.PutUint16(ip[22:], dport)
	return p
}

// reflector, router, flowlet and feedback are the programs of the benchmarks,
// filled to forward udp packets to 10.0.0.0/8.
func reflector(t testing.TB) *Engine { return NewEngine(load(t, "reflector", Options{})) }

func router(t testing.TB) *Engine {
	s := load(t, "router", Options{})
	for i := range 1000 {
		_, err := s.Tables().Add("I.routes", Entry{
			Match:  []Match{{Value: be(uint64(0x0a000000+i<<8), 4), PrefixLen: 24}},
			Target: act("I.route", be(uint64(i%8), 2), be(uint64(i), 6)),
		})
		must(t, err)
	}
	return NewEngine(s)
}

func flowlet(t testing.TB) *Engine {
	s := load(t, "flowlet", Options{})
	_, err := s.Tables().Add("I.routes", Entry{
		Match: []Match{{Value: be(0x0a000000, 4), PrefixLen: 8}}, Target: act("I.group", be(1, 2), be(4, 2)),
	})
	must(t, err)
	for i := range uint64(4) {
		_, err := s.Tables().Add("I.members", Entry{
			Match: []Match{{Value: be(1, 2)}, {Value: be(i, 2)}}, Target: act("I.forward", be(i+1, 2), be(i, 6)),
		})
		must(t, err)
	}
	return NewEngine(s)
}

func feedback(t testing.TB) *Engine {
	s := load(t, "feedback", Options{})
	_, err := s.Tables().Add("I.routes", Entry{
		Match: []Match{{Value: be(0x0a000000, 4), PrefixLen: 8}}, Target: act("I.group", be(1, 2)),
	})
	must(t, err)
	must(t, s.Mirrors().Set(7, MirrorSession{Port: 100, HasPort: true}))
	return NewEngine(s)
}

var engines = []struct {
	name string
	make func(testing.TB) *Engine
}{{"reflector", reflector}, {"router", router}, {"flowlet", flowlet}, {"feedback", feedback}}

func BenchmarkProcess(b *testing.B) {
	asm.Debug = false
	defer func() { asm.Debug = true }()
	for _, e := range engines {
		for _, size := range []int{64, 1500} {
			b.Run(fmt.Sprintf("%s/%d", e.name, size), func(b *testing.B) {
				eng := e.make(b)
				packets := flows(size)
				now := time.Second
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					now += time.Microsecond
					if out := eng.Process(0, packets[i%len(packets)], now); len(out) != 1 {
						b.Fatal("packet lost")
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mpps")
			})
		}
	}
}

func flows(size int) [][]byte {
	var list [][]byte
	for i := range uint32(256) {
		list = append(list, udp(size, 0xc0a80000+i, 0x0a000000+i<<8, uint16(i), 80))
	}
	return list
}

// Processing a packet does not allocate once the buffers have grown.
func TestProcessDoesNotAllocate(t *testing.T) {
	for _, e := range engines {
		eng := e.make(t)
		packets := flows(200)
		now, i := time.Second, 0
		once := func() {
			now += time.Microsecond
			i++
			if out := eng.Process(0, packets[i%len(packets)], now); len(out) != 1 {
				t.Fatalf("%s: packet %d lost", e.name, i)
			}
		}
		for range 1000 {
			once()
		}
		if n := testing.AllocsPerRun(1000, once); n != 0 {
			t.Errorf("%s: %v allocations per packet", e.name, n)
		}
	}
}
