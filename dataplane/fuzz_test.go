package dataplane

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/p4lb/p4lb/bmv2"
)

// programs are all programs in the testdata folders.
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

// Whatever a document says, the switch refuses it or runs it.
func FuzzProgram(f *testing.F) {
	for _, data := range programs(f) {
		f.Add(data, udp(80, 1, 2, 3, 4))
	}
	f.Fuzz(func(t *testing.T, data, packet []byte) {
		c, err := bmv2.Load(data)
		if err != nil {
			return
		}
		s, err := New(c, Options{})
		if (s == nil) != (err != nil) {
			t.Fatal("a switch and an error, or neither")
		}
		if err != nil {
			return
		}
		e := NewEngine(s)
		e.Process(1, packet, time.Second)
		e.Process(2, packet[:len(packet)/2], 2*time.Second)
	})
}

// Whatever comes in, a program goes on, and leaves nothing on the stack.
func FuzzPacket(f *testing.F) {
	var engines []*Engine
	for name, data := range programs(f) {
		c, err := bmv2.Load(data)
		must(f, err)
		s, err := New(c, Options{})
		if err != nil {
			f.Fatalf("%s: %v", name, err)
		}
		must(f, s.SetMirror(5, MirrorSession{Port: 2, HasPort: true}))
		must(f, s.SetMirror(7, MirrorSession{Port: 3, HasPort: true, Group: 1}))
		must(f, s.SetGroup(1, []Replica{{1, 1}, {2, 2}}))
		engines = append(engines, NewEngine(s))
	}
	f.Add(udp(80, 1, 2, 3, 4))
	f.Add([]byte{})
	f.Add([]byte{4, 1, 0, 0, 1, 2, 3})
	f.Fuzz(func(t *testing.T, packet []byte) {
		for _, e := range engines {
			e.Process(1, packet, time.Second)
			if e.sw.ex.used != 0 {
				t.Fatalf("%d words left on the stack", e.sw.ex.used)
			}
		}
	})
}
