package fitting

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// A Network is what the parameters of the schemes depend on.
type Network struct {
	Rate    float64       // of a link between switches, bit/s
	Delay   time.Duration // of a link between switches, one way
	RTT     time.Duration // without queues, of the fastest path; 0: two links there and back
	SlowRTT time.Duration // of the slowest path; 0: RTT
	Paths   int           // between two leaves
	Hops    int           // queues on a path; 0: 2
	Leaves  int
	Hosts   int // per leaf
	Buffer  int // packets per port
	MTU     int // bytes; 0: 1500

	ECN      int           // marking threshold in packets; 0: a quarter of the buffer
	PFC      float64       // pause threshold of an ingress port in bytes; 0: 256 KB
	Incast   int           // senders to one receiver; 0: the hosts of a leaf
	FlowSize float64       // of a long flow in bytes; 0: 1.6 MB, the mean of web search
	Flows    int           // that share the paths of a pair; 0: 1
	Recirc   time.Duration // delay of a recirculation; 0: the time of a packet on the wire
}

func (n Network) withDefaults() Network {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&n.Hops, 2)
	set(&n.MTU, 1500)
	set(&n.ECN, max(1, n.Buffer/4))
	set(&n.Incast, max(1, n.Hosts))
	set(&n.Flows, 1)
	if n.RTT == 0 {
		n.RTT = 4 * n.Delay
	}
	if n.SlowRTT == 0 {
		n.SlowRTT = n.RTT
	}
	if n.PFC == 0 {
		n.PFC = 256 << 10
	}
	if n.FlowSize == 0 {
		n.FlowSize = 1.6e6
	}
	if n.Recirc == 0 {
		n.Recirc = n.serve(1)
	}
	return n
}

// Validate says what is missing or cannot be. What is 0 for a default is fine.
func (n Network) Validate() error {
	n = n.withDefaults()
	switch {
	case !(n.Rate > 0) || math.IsInf(n.Rate, 1):
		return fmt.Errorf("the rate of a link is %g bit/s: want one above 0", n.Rate)
	case n.RTT <= 0:
		return fmt.Errorf("neither the RTT nor the delay of a link is given")
	case n.SlowRTT < n.RTT:
		return fmt.Errorf("the slowest path has an RTT of %v, below that of the fastest, %v", n.SlowRTT, n.RTT)
	case n.Paths < 1 || n.Leaves < 1 || n.Hosts < 1 || n.Hops < 1 || n.Incast < 1 || n.Flows < 1:
		return fmt.Errorf("%d paths between %d leaves of %d hosts, %d hops: want at least 1 of each", n.Paths, n.Leaves, n.Hosts, n.Hops)
	case n.Paths > 64:
		return fmt.Errorf("%d paths: want at most 64", n.Paths)
	case n.Buffer < 4:
		return fmt.Errorf("a queue of %d packets: want at least 4", n.Buffer)
	case n.ECN < 1 || n.ECN > n.Buffer:
		return fmt.Errorf("marking from %d packets on in a queue of %d", n.ECN, n.Buffer)
	case n.MTU < 64 || n.MTU > 65535:
		return fmt.Errorf("an MTU of %d bytes: want 64 to 65535", n.MTU)
	case !(n.PFC > 0) || !(n.FlowSize >= float64(n.MTU)) || n.Recirc < 0:
		return fmt.Errorf("a PFC threshold of %g bytes and flows of %g: want at least an MTU", n.PFC, n.FlowSize)
	}
	return nil
}

// serve is the time that packets take on the wire.
func (n Network) serve(packets int) time.Duration {
	return time.Duration(float64(packets*n.MTU*8) / n.Rate * 1e9)
}

// pps is the rate in packets/s.
func (n Network) pps() float64 { return n.Rate / 8 / float64(n.MTU) }

// An Advice is one parameter of a scheme for a network.
type Advice struct {
	Scheme  string `json:"scheme"`
	Name    string `json:"parameter"`
	Value   string `json:"value"`
	Formula string `json:"formula"`
	Source  string `json:"source"`
	Warning string `json:"warning,omitempty"`
}

// Advised lists the schemes that Advise knows. A name of the catalogue stands for
// the family it belongs to: qall-poly3 for qall, drill+rlb for rlb.
func Advised() []string {
	return []string{"letflow", "presto", "conga", "hula", "qall", "qdaps", "rlb", "pdlb", "dhlb"}
}

// families finds what there is advice for in a name of the catalogue.
func families(scheme string) []string {
	var list []string
	for _, part := range strings.Split(scheme, "+") {
		if name, _, _ := strings.Cut(part, "-"); slices.Contains(Advised(), name) {
			list = append(list, name)
		}
	}
	return list
}

// ErrNoAdvice is returned for a scheme that no parameter of depends on the
// network.
var ErrNoAdvice = errors.New("no advice")

// Advise computes the parameters of a scheme, or of all if it is "".
func Advise(n Network, scheme string) ([]Advice, error) {
	names := Advised()
	if scheme != "" {
		if names = families(scheme); len(names) == 0 {
			return nil, fmt.Errorf("%w for %q: want one of %s", ErrNoAdvice, scheme, strings.Join(Advised(), ", "))
		}
	}
	if err := n.Validate(); err != nil {
		return nil, err
	}
	n = n.withDefaults()
	advisers := map[string]func(Network) ([]Advice, error){
		"letflow": adviseLetFlow, "presto": advisePresto, "conga": adviseCONGA, "hula": adviseHULA,
		"qall": adviseQALL, "qdaps": adviseQDAPS, "rlb": adviseRLB, "pdlb": advisePDLB, "dhlb": adviseDHLB,
	}
	var list []Advice
	for _, name := range names {
		more, err := advisers[name](n)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for i := range more {
			more[i].Scheme = name
		}
		list = append(list, more...)
	}
	return list, nil
}

// us writes a time in µs as parameters are written.
func us(d time.Duration) string {
	switch {
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.3gms", float64(d)/1e6)
	case d < time.Microsecond:
		return fmt.Sprintf("%dns", d.Nanoseconds())
	}
	return fmt.Sprintf("%.4gus", float64(d)/1e3)
}

func number(v float64) string { return fmt.Sprintf("%.4g", v) }
