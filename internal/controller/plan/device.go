package plan

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// portQueues is the number of queues per port of p4lb's own switch, in the numbering
// of the ghost thread (dataplane.QueueNumber).
const portQueues = 4

// QueueNumber returns the number of a port's first queue, the only one that
// programs use.
func QueueNumber(port int) uint64 { return uint64(port) * portQueues }

// DevicePorts returns a topology whose ports are device ports of a Tofino: it replaces
// the nth front port by its device port. If the topology uses no port that the
// hardware reserves, it is returned unchanged, because its ports may already be device
// ports. The result leaves out the virtual ports too, which manifests reserve.
func DevicePorts(t *fabric.Topology, arch string, virtual ...int) *fabric.Topology {
	kept := map[string][]int{"tna": {0, 64, 65, 66, 67, 68, 69, 70, 71}, "t2na": {0, 1, 2, 3, 4, 5, 6, 7}}[arch]
	inPipe := func(port int) bool { return slices.Contains(kept, port%pipePorts) }
	for _, s := range t.Switches {
		if slices.ContainsFunc(t.Ports(s.Name), func(p fabric.Port) bool { return inPipe(p.Number) }) {
			for _, port := range virtual {
				kept = append(kept, port%pipePorts)
			}
			slices.Sort(kept)
			kept = slices.Compact(kept)
			return t.Renumber(func(port int) int {
				free := pipePorts - len(kept)
				pipe, n := (port-1)/free, (port-1)%free
				for _, k := range kept {
					if k <= n {
						n++
					}
				}
				return pipe*pipePorts + n
			})
		}
	}
	return t
}

// pipePorts is the number of port numbers per pipe.
const pipePorts = 128

// A Filter configures all cells of one of Tofino's low-pass filters. A rate is the sum
// of the input, which decays by a factor e within Time. A sample is the average of the
// input within Time. The output is shifted right by Shift bits.
type Filter struct {
	Name   string        `json:"name"` // without its control in a plan
	Sample bool          `json:"sample,omitempty"`
	Time   time.Duration `json:"time_ns"`
	Shift  int           `json:"shift"`
}

// String describes the configuration, such as rate over 1.31 ms, 1/2^8.
func (f Filter) String() string {
	kind := "rate"
	if f.Sample {
		kind = "sample"
	}
	return fmt.Sprintf("%s over %v, 1/2^%d", kind, f.Time.Round(10*time.Nanosecond), f.Shift)
}

// fullLoad is the output of filters for a fully used link.
const fullLoad = 256

// FiltersOf returns the filters of a program with their configuration.
func FiltersOf(m *manifest.Manifest) []Filter {
	var list []Filter
	for i := range m.Tasks {
		t := &m.Tasks[i]
		var f Filter
		switch t.Kind {
		case manifest.RateFilter:
			// The output is 256 for a fully used link of the program's rate. Scaling is only
			// possible by powers of 2, so the time constant compensates for the rest. It differs
			// from the window by at most a factor of 1.42.
			rate := float64(t.Rate) / 8
			window := float64(time.Duration(t.Window).Microseconds()) / 1e6
			shift := max(0, math.Round(math.Log2(rate*window/fullLoad)))
			seconds := fullLoad * math.Exp2(shift) / rate
			f = Filter{Time: time.Duration(math.Round(seconds * 1e9)), Shift: int(shift)}
		case manifest.SampleFilter:
			f = Filter{Sample: true, Time: time.Duration(t.Window)}
		default:
			continue
		}
		for _, f.Name = range t.Filters {
			list = append(list, f)
		}
	}
	return list
}

// Is reports whether two filters have the same name. One name may include its control.
func (f Filter) Is(other Filter) bool { return manifest.Short(f.Name) == manifest.Short(other.Name) }
