package fabric

import (
	"strings"
	"testing"
)

// TestSignal: links have the electrical configuration of their defaults or their own.
func TestSignal(t *testing.T) {
	const text = `defaults: {switch-links: {rate: 100G, fec: rs, autoneg: off, lanes: 4}, host-links: {rate: 25G, lanes: 1}}
switches: {l1: {}, s1: {}, s2: {}}
hosts: {h1: }
links: [{ends: [h1, l1]}, {ends: [l1, s1]}, {ends: [l1, s2], fec: none, autoneg: on}]
`
	top, err := Load("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for i, want := range []Signal{{Lanes: 1}, {"rs", "off", 4}, {"none", "on", 4}} {
			if top.Links[i].Signal != want {
				t.Errorf("link %v: %+v, want %+v", top.Links[i], top.Links[i].Signal, want)
			}
		}
		if p := top.Ports("s2"); p[0].Signal != (Signal{"none", "on", 4}) {
			t.Errorf("port of s2: %+v", p[0].Signal)
		}
		if top, err = Load("again.yaml", top.YAML()); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ from, to, want string }{
		{"fec: rs", "fec: kr", `fec "kr": want none, fc or rs`},
		{"lanes: 4", "lanes: 3", `lanes "3": want 1, 2, 4 or 8`},
		{"autoneg: off", "autoneg: maybe", `autoneg "maybe": want on or off`},
	} {
		if _, err := Load("t.yaml", []byte(strings.Replace(text, c.from, c.to, 1))); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
