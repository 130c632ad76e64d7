package fabric

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestFindLinks(t *testing.T) {
	top := preset(t, "qall")
	for text, want := range map[string][]int{
		"h1": {0}, "l1:1": {0}, "h1-l1:1": {0}, "h1-l1": {0},
		"l1:17": {32}, "s1:1": {32}, "l1:17-s1:1": {32},
		"l1-s1": {32, 33}, "s1-l1": {32, 33}, "l2-s2": {38, 39},
		"": nil, "l1": nil, "s1": nil, "l1:99": nil, "l1-l2": nil, "h1-h2": nil, "x": nil, "l1:17-s1:2": nil,
	} {
		got, err := top.FindLinks(text)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: links %v (%v), want %v", text, got, err, want)
		}
	}
}

func TestLookups(t *testing.T) {
	top := preset(t, "dhlb")
	if s := top.Switch("a3"); s == nil || s.Role != roleAgg || s.Leaf != 0 || s.ID != 11 {
		t.Errorf("a3 is %+v", s)
	}
	if s := top.Switch("t8"); s == nil || s.Role.Tier() != 1 || s.Leaf != 8 {
		t.Errorf("t8 is %+v", s)
	}
	if h := top.Host("h16"); h == nil || h.Switch != "t8" || h.Port != 2 || h.IP.String() != "10.3.1.2/24" || h.MAC.String() != "02:00:0a:03:01:02" {
		t.Errorf("h16 is %+v", h)
	}
	if top.Switch("h1") != nil || top.Switch("x") != nil || top.Host("t1") != nil || top.Host("x") != nil || top.Ports("h1") != nil {
		t.Error("found a missing node")
	}
	if list := top.Leaves(); len(list) != 8 || list[7].Name != "t8" {
		t.Errorf("the leaves are %v", list)
	}
}

// TestPorts compares each port with its link and with the port at the other
// end.
func TestPorts(t *testing.T) {
	for _, name := range []string{"qall-asym", "dhlb", "rlb-12x12-asym"} {
		top := preset(t, name)
		macs, ends := map[MAC]bool{}, 0
		for _, s := range top.Switches {
			for _, p := range top.Ports(s.Name) {
				l := top.Links[p.Link]
				here, there := End{s.Name, p.Number}, End{p.Peer, p.PeerPort}
				if (l.A != here || l.B != there) && (l.B != here || l.A != there) || p.Rate != l.Rate || p.Delay != l.Delay || p.Queue != l.Queue || p.Down != l.Down {
					t.Errorf("%s: %v has the port %+v", name, l, p)
				}
				if macs[p.MAC] || !p.MAC.unicast() {
					t.Errorf("%s: %v has the MAC %v", name, here, p.MAC)
				}
				macs[p.MAC] = true
				ends++
				if h := top.Host(p.Peer); h != nil {
					if p.PeerTier != 0 || p.PeerMAC != h.MAC || h.Port != p.Number || h.Switch != s.Name {
						t.Errorf("%s: %v leads to the host %+v as %+v", name, here, h, p)
					}
					continue
				}
				other := top.Ports(p.Peer)[slices.IndexFunc(top.Ports(p.Peer), func(q Port) bool { return q.Number == p.PeerPort })]
				if other.MAC != p.PeerMAC || p.PeerTier != top.Switch(p.Peer).Role.Tier() {
					t.Errorf("%s: %v leads to %+v as %+v", name, here, other, p)
				}
			}
		}
		if want := 2*len(top.Links) - len(top.Hosts); ends != want {
			t.Errorf("%s: %d ports, want %d", name, ends, want)
		}
	}
}

// TestJSON: values have the same form in JSON as in a topology file.
func TestJSON(t *testing.T) {
	text, err := json.Marshal(struct {
		Rate Rate
		Size Size
		MAC  MAC
	}{400 * Mbps, 9 * MB, MAC{2, 0, 10, 0, 1, 1}})
	if want := `{"Rate":"400Mbps","Size":"9MB","MAC":"02:00:0a:00:01:01"}`; err != nil || string(text) != want {
		t.Errorf("got %s (%v), want %s", text, err, want)
	}
}
