package advice

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestFor(t *testing.T) {
	n := Network{Rate: 1e9, RTT: 100 * time.Microsecond, Delay: 12500, Paths: 8, Leaves: 8, Hosts: 32, Buffer: 256, ECN: 65}
	all, err := For(n, "")
	if err != nil {
		t.Fatal(err)
	}
	value := map[string]string{}
	for _, a := range all {
		value[a.Scheme+" "+a.Name] = a.Value
		if a.Formula == "" || a.Source == "" {
			t.Errorf("%+v: no formula", a)
		}
	}
	for name, want := range map[string]string{
		"letflow gap": "1560us", // two queues of 65 packets of 12 us
		"presto cell": "64KiB",
		"conga gap":   "1560us",
		"hula tprobe": "200us",
		"qall tau":    "6194us",
		"qdaps S":     "32 packets",
		"dhlb window": "7",
		"rlb qth":     "1562B",
		"trim trimat": "256 packets",
	} {
		if value[name] != want {
			t.Errorf("%s: %q, want %q", name, value[name], want)
		}
	}
	states := 0
	for name := range value {
		if strings.HasPrefix(name, "pdlb gran[") {
			states++
		}
	}
	if states != 1+8*3 {
		t.Errorf("%d states of the paths", states)
	}
	for scheme, want := range map[string]string{"qall-poly3-flowlet": "qall", "qdaps-star": "qdaps", "drill+rlb": "drill rlb", "presto+rlb-star": "presto rlb", "ar-flowlet+trim": "ar trim"} {
		list, err := For(n, scheme)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range list {
			if len(got) == 0 || got[len(got)-1] != a.Scheme {
				got = append(got, a.Scheme)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: advice on %v", scheme, got)
		}
	}
}

func TestWarnings(t *testing.T) {
	n := Network{Rate: 100e9, RTT: 16 * time.Microsecond, Delay: 2 * time.Microsecond, Paths: 12, Leaves: 12, Hosts: 24, Buffer: 200}
	for scheme, want := range map[string]string{
		"rlb":   "the range is empty: n·d·C = 24·25000 bytes exceeds Q_PFC = 262144; it holds up to n = 10",
		"qdaps": "too short against C·RTT",
	} {
		list, err := For(n, scheme)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(list[0].Warning, want) {
			t.Errorf("%s: %q", scheme, list[0].Warning)
		}
	}
}

func TestErrors(t *testing.T) {
	good := Network{Rate: 1e9, RTT: 100 * time.Microsecond, Paths: 8, Leaves: 8, Hosts: 32, Buffer: 256}
	for want, change := range map[string]func(*Network){
		"rate of a link is 0":          func(n *Network) { n.Rate = 0 },
		"neither the RTT nor":          func(n *Network) { n.RTT = 0 },
		"below the RTT of the fastest": func(n *Network) { n.SlowRTT = 1 },
		"0 paths between":              func(n *Network) { n.Paths = 0 },
		"65 paths between":             func(n *Network) { n.Paths = 65 },
		"queue of 0 packets":           func(n *Network) { n.Buffer = 0 },
		"marking from 300":             func(n *Network) { n.ECN = 300 },
		"MTU of 10":                    func(n *Network) { n.MTU = 10 },
		"flows of 100":                 func(n *Network) { n.FlowSize = 100 },
	} {
		n := good
		change(&n)
		if _, err := For(n, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := For(good, "ecmp"); err == nil || !strings.Contains(fmt.Sprint(err), `no advice for "ecmp"`) {
		t.Errorf("got %v", err)
	}
}

// TestNeeds requests schemes with formulas that do not use queue, paths and hosts,
// without providing these.
func TestNeeds(t *testing.T) {
	bare := Network{Rate: 1e9, RTT: 100 * time.Microsecond}
	for _, scheme := range []string{"presto", "hula", "qdaps"} {
		if _, err := For(bare, scheme); err != nil {
			t.Errorf("%s: %v", scheme, err)
		}
	}
	for scheme, want := range map[string]string{"qall": "queue of 0", "pdlb": "0 paths", "dhlb": "0 leaves"} {
		if _, err := For(bare, scheme); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", scheme, err, want)
		}
	}
	list, err := For(bare, "qdaps")
	if err != nil || list[0].Value != "32 packets" || list[1].Value != "unknown" || list[1].Warning == "" {
		t.Errorf("qdaps without a queue: %+v, %v", list, err)
	}
}
