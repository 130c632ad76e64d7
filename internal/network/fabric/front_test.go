package fabric

import (
	"strings"
	"testing"
)

const rack = `defaults: {front-panel: {1/0: 132, 1/1: 133, 33/1: 64}, switch-links: {rate: 100G}, host-links: {rate: 25G}}
switches:
  l1: {}
  s1: {front-panel: {1/0: 4, 2/0: 8}}
hosts: {h1: , h2: }
links: [{ends: [h1, l1:1/1]}, {ends: [h2, "l1:33/1"]}, {ends: [l1:1/0, s1:2/0]}]
`

// TestFront: links name front-panel ports by the map of their switch or the default, and
// the written topology keeps both.
func TestFront(t *testing.T) {
	top, err := Load("t.yaml", []byte(rack))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var got []string
		for _, l := range top.Links {
			got = append(got, l.String())
		}
		if want := "h1-l1:133 h2-l1:64 l1:132-s1:8"; strings.Join(got, " ") != want {
			t.Errorf("links %v, want %s", got, want)
		}
		if ports := top.FrontPorts("s1").String(); ports != "{2/0: 8}" {
			t.Errorf("ports of s1: %s", ports)
		}
		if top, err = Load("again.yaml", top.YAML()); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ from, to, want string }{
		{"l1:1/1", "l1:1/2", `t.yaml:6: link: end "l1:1/2": front-panel of l1 has no 1/2: want one of 1/0, 1/1, 33/1`},
		{"l1:1/1", "l1:1/x", `"l1:1/x": front-panel port "1/x": want a connector and a channel, as in 1/0`},
		{"l1:1/1", "h1:1/1", `"h1:1/1": h1 has no front-panel: want its device ports, as in front-panel: {1/0: 132}, which p4lb topo ports prints`},
		{"1/1: 133", "1/1: 132", "defaults: front-panel: 1/0 and 1/1 are both device port 132"},
		{"1/1: 133", "1/1: 600", `front-panel 1/1 "600": want a number from 0 to 510`},
		{"1/1: 133", "1/1: 0", "1/1 of l1 is device port 0, which cannot be in a topology: use another port"},
		{"1/1: 133", "01/1: 133", `front-panel port "01/1": want a connector and a channel, as in 1/0`},
	} {
		if _, err := Load("t.yaml", []byte(strings.Replace(rack, c.from, c.to, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}
