package fabric

import "testing"

// TestRenumber: only the port numbers change, and failed links stay down.
func TestRenumber(t *testing.T) {
	before, err := LeafSpine{Leaves: 2, Spines: 2, Hosts: 2}.Make()
	if err != nil {
		t.Fatal(err)
	}
	down, err := before.FindLinks("l1-s1")
	if err != nil {
		t.Fatal(err)
	}
	before = before.Fail(down...)
	after := before.Renumber(func(port int) int { return port + 7 })
	for i, l := range before.Links {
		m := after.Links[i]
		if m.A.Node != l.A.Node || m.B.Node != l.B.Node || m.Down != l.Down || m.Rate != l.Rate {
			t.Errorf("link %v became %v", l, m)
		}
	}
	for _, s := range before.Switches {
		old, now := before.Ports(s.Name), after.Ports(s.Name)
		for i := range old {
			if now[i].Number != old[i].Number+7 || now[i].Peer != old[i].Peer || now[i].Down != old[i].Down {
				t.Errorf("%s: port %+v became %+v", s.Name, old[i], now[i])
			}
		}
	}
	for i, h := range before.Hosts {
		if g := after.Hosts[i]; g.IP != h.IP || g.MAC != h.MAC || g.Port != h.Port+7 {
			t.Errorf("host %+v became %+v", h, g)
		}
	}
	if hops, _ := after.Routes().NextHops("l1", "l2"); len(hops) != 1 {
		t.Errorf("%d next hops from l1 to l2 with a link down, want 1", len(hops))
	}
}
