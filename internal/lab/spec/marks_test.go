package spec

import "testing"

// ECN thresholds follow the bandwidth-delay product if only Ultra Ethernet reacts to marks and
// the setting has no thresholds.
func TestMarksByBDP(t *testing.T) {
	for _, test := range []struct {
		kind  string
		other string // transport of the other traffic
		ecn   Threshold
		kmax  Size
		want  bool
	}{
		{"uec", "", 0, 0, true},
		{"uec", "", 65, 0, false},
		{"uec", "", 0, 400, false},
		{"uec", "dctcp", 0, 0, false},
		{"uec", "dcqcn", 0, 0, false},
		{"tcp", "uec", 0, 0, true},
		{"tcp", "", 0, 0, false},
		{"dctcp", "", 0, 0, false},
		{"dctcp", "uec", 0, 0, false},
	} {
		s := &Setting{}
		s.Transport.Kind, s.Switches.ECN, s.Switches.KMax = test.kind, test.ecn, test.kmax
		if test.other != "" {
			other := Traffic{}
			other.Kind = test.other
			s.Traffic = append(s.Traffic, other)
		}
		if got := s.MarksByBDP(); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
		if s.MarksFabric() {
			t.Errorf("%+v: only the fabric marks although senders react to marks of all links", test)
		}
		s.Transport.UEC.Control = "rccc"
		if got := s.MarksFabric(); got != test.want {
			t.Errorf("%+v, credit: only the fabric marks: %v", test, got)
		}
	}
}
