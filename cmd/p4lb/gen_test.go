package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/leaf"
)

// goldenDir contains the golden program of each scheme.
const goldenDir = "../../p4src/v1model"

// TestGoldens compares the programs of the catalogue with the golden files,
// which show readers the programs and reviewers the effect of a template
// change.
func TestGoldens(t *testing.T) {
	if testing.Short() {
		t.Skip("some dozen programs: the race detector sees gen --all in a script")
	}
	// The provenance has no version, so releases do not change golden files.
	list, err := scheme.MakeAll(t.Context(), new(scheme.Library).All(), codegen.Params{Provenance: new(codegen.Provenance)})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, g := range list {
		name := filepath.Join(goldenDir, g.Name+".p4")
		want[name] = true
		if *update {
			writeGolden(t, name, textOf(t, g))
			continue
		}
		golden, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		} else if diff := cmp.Diff(string(golden), string(textOf(t, g))); diff != "" {
			t.Errorf("%s, golden (-) and generated (+):\n%s", name, diff)
		}
	}
	have, err := filepath.Glob(filepath.Join(goldenDir, "*.p4"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range have {
		if !want[name] {
			t.Errorf("%s is the program of no scheme", name)
		}
	}
}

func writeGolden(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(goldenDir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestGeneratedForward sends packets through every program with several group
// sizes. Each packet must leave once by a path of the group, with new
// addresses, a lower TTL and a correct checksum.
func TestGeneratedForward(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred programs")
	}
	for _, ports := range []int{2, 16} {
		list, err := scheme.MakeAll(t.Context(), new(scheme.Library).All(), codegen.Params{Ports: ports})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range list {
			for _, paths := range []int{1, ports - 1, ports} {
				checkForwarding(t, g, paths)
			}
		}
	}
}

// textOf returns the text of a program.
func textOf(t *testing.T, p *scheme.Program) []byte {
	t.Helper()
	text, err := p.Text()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func checkForwarding(t *testing.T, g *scheme.Program, paths int) {
	t.Helper()
	sw, err := leaf.New(g, paths)
	if err != nil {
		t.Fatalf("%s: %v", g.Name, err)
	}
	now := time.Second
	used := map[uint32]int{}
	for i := range 4 {
		for _, packet := range leaf.Packets(64) {
			now += time.Duration(i*300+17) * time.Microsecond
			out := sw.Process(leaf.HostPort, packet, now)
			if len(out) != 1 {
				t.Fatalf("%s with %d paths: %d packets came out", g.Name, paths, len(out))
			}
			port := out[0].Port
			if port < 1 || int(port) > paths {
				t.Fatalf("%s with %d paths: a packet left at port %d", g.Name, paths, port)
			}
			used[port]++
			checkForwarded(t, g.Name, packet, out[0].Data, port)
		}
	}
	if paths > 1 && len(used) < 2 {
		t.Errorf("%s with %d paths: all packets left at one port: %v", g.Name, paths, used)
	}
}

// checkForwarded compares a packet before and after forwarding. Schemes may
// insert a header between Ethernet and IPv4.
func checkForwarded(t *testing.T, name string, in, out []byte, port uint32) {
	t.Helper()
	if want := []byte{2, 0, 0, 0, 1, byte(port - 1), 2, 0, 0, 0, 0, 1}; !bytes.Equal(out[:12], want) {
		t.Fatalf("%s: addresses %x, want %x", name, out[:12], want)
	}
	want := slices.Clone(in[14:])
	want[8]--
	want[10], want[11] = 0, 0
	binary.BigEndian.PutUint16(want[10:], leaf.HeaderChecksum(want[:20]))
	if !bytes.HasSuffix(out, want) {
		t.Fatalf("%s: the IPv4 packet is\n%x, want\n%x", name, out[14:], want)
	}
	if len(out) == len(in) && out[12] != 8 {
		t.Fatalf("%s: EtherType %x", name, out[12:14])
	}
}
