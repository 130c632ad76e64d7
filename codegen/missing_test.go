package codegen_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/codegen"
)

// udp is a packet from 10.0.1.1 to 10.0.2.1.
const udp = "02000000000102000000000208004500001c00000000401163d00a0001010a00020103e8005000080000"

// TestMissingEntries: the default drop of table candidates holds, and a port that
// port_cfg has no entry for is not measured but still forwards.
func TestMissingEntries(t *testing.T) {
	row, err := codegen.Lookup("qall-pkt")
	if err != nil {
		t.Fatal(err)
	}
	members := []string{
		"table_add LbIngress.ipv4_route LbIngress.set_group 0x0A000200/24 => 1 4",
		"table_add LbIngress.member LbIngress.forward 1 0 => 7 0x9 0x8",
		"table_add LbIngress.member LbIngress.forward 1 1 => 7 0x9 0x8",
		"table_add LbIngress.member LbIngress.forward 1 2 => 7 0x9 0x8",
		"table_add LbIngress.member LbIngress.forward 1 3 => 7 0x9 0x8",
	}
	for _, c := range []struct {
		name     string
		commands []string
		leaves   int
	}{
		{"no candidates", append([]string{"table_add LbEgress.port_cfg LbEgress.set_port_cfg 7 => 265275"}, members...), 0},
		{"no port_cfg", append([]string{"table_add LbIngress.candidates LbIngress.set_candidates 1 => 7 7 7 7"}, members...), 1},
		{"no port_cfg, no group", []string{"table_add LbIngress.ipv4_route LbIngress.set_port 0x0A000200/24 => 7"}, 1},
	} {
		_, text := generate(t, row, codegen.Params{})
		e := newEmbedded(t, compile(t, "qall-pkt", text), 1)
		if err := e.commands(c.commands); err != nil {
			t.Fatal(err)
		}
		data, err := hex.DecodeString(udp)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.send(10, data, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != c.leaves {
			t.Errorf("%s: %d packets leave, want %d", c.name, len(got), c.leaves)
		}
	}
}

// TestTauNormalisesT: the printed polynomials take T as a share of tau, which --set
// changes.
func TestTauNormalisesT(t *testing.T) {
	row, err := codegen.Lookup("qall-poly2")
	if err != nil {
		t.Fatal(err)
	}
	_, text := generate(t, row, codegen.Params{Set: map[string]string{"tau": "300us"}})
	if !strings.Contains(text, "waited = T < 300 ? T : 300;") {
		t.Error("T is not cut at tau = 300 us")
	}
}

// TestNotOnTofino: parameters of RLB that programs for Tofino would ignore are refused.
func TestNotOnTofino(t *testing.T) {
	for _, scheme := range []string{"letflow+rlb", "drill+rlb-star"} {
		for name, word := range map[string]string{"loop": "queue", "suboptimal": "random", "relay": "1"} {
			row, err := codegen.Lookup(scheme)
			if err != nil {
				t.Fatal(err)
			}
			_, err = codegen.Generate(row, codegen.Params{Arch: "t2na", Set: map[string]string{name: word}})
			if want := name + "=" + word + ": programs for t2na have no such form"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", scheme, err, want)
			}
		}
	}
}
