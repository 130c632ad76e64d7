package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// waits reports whether flows wait for others or share connections.
func waits(flows []*outcome) bool {
	return slices.ContainsFunc(flows, func(o *outcome) bool { return o.Waits != nil || o.Connection > 0 || o.Compute })
}

// A dependent is a run with flows that wait for other flows.
type dependent struct {
	net      *sim.Network
	topo     *fabric.Topology
	setting  *spec.Setting
	flows    []*outcome
	work     *sim.Workload
	progress progress
}

// plan plans the flows. described returns flow i as a simulator's spec.
func (d *dependent) plan(described func(i int) sim.FlowSpec, sims []*sim.Flow) error {
	step := func(i int) sim.Step {
		o := d.flows[i]
		s := sim.Step{FlowSpec: described(i), Start: o.Start, Connection: o.Connection, QueuePair: o.QueuePair, Compute: o.Compute}
		if w := o.Waits; w != nil {
			s.After, s.AfterAck, s.Delay = w.After, w.AfterAck, w.Delay
		}
		return s
	}
	var err error
	d.work, err = d.net.PlanWorkload(len(d.flows), step, sims)
	return err
}

// A progress records when a packet last reached a host.
type progress struct {
	packets int64
	at      time.Duration
}

// stuckAfter is the time without any arriving packet after which waiting flows
// count as stuck. It is several retransmission timeouts.
const stuckAfter = time.Second

// stuck returns an error if flows wait for flows that make no progress, and no link
// is about to be repaired.
func (d *dependent) stuck() error {
	if d == nil {
		return nil
	}
	now := d.net.Now()
	if n := d.net.Delivered().Packets; n != d.progress.packets || !d.work.Stalled() || d.repairs(now) {
		d.progress = progress{n, now}
	}
	if now-d.progress.at < stuckAfter {
		return nil
	}
	return fmt.Errorf("deadlock: nothing has arrived for %v, at %v: %s", stuckAfter, now, d.waitingFor())
}

// repairs reports whether a fault will begin or end after time now.
func (d *dependent) repairs(now time.Duration) bool {
	return slices.ContainsFunc(d.setting.Strikes(), func(f spec.Fault) bool { return time.Duration(max(f.At, f.Until)) >= now })
}

// waitingFor describes the flows that wait for others. It returns "" if there are none.
func (d *dependent) waitingFor() string {
	if d == nil {
		return ""
	}
	const most = 5
	list := d.work.Waiting(most + 1)
	if len(list) == 0 {
		return ""
	}
	name := func(i int) string {
		f := &d.flows[i].Flow
		if f.Compute {
			return fmt.Sprintf("the computation %d of %s", i+1, d.topo.Hosts[f.Src].Name)
		}
		return fmt.Sprintf("flow %d (%s to %s)", i+1, d.topo.Hosts[f.Src].Name, d.topo.Hosts[f.Dst].Name)
	}
	parts := lists.Map(list[:min(most, len(list))], func(w sim.Waiting) string {
		before := lists.Map(w.For[:min(3, len(w.For))], name)
		if n := len(w.For) - len(before); n > 0 {
			before = append(before, fmt.Sprintf("%d more", n))
		}
		return name(w.Step) + " waits for " + strings.Join(before, ", ")
	})
	if len(list) > most {
		parts = append(parts, "and others")
	}
	return strings.Join(parts, "; ")
}

// idealTimes returns a lower bound for the duration of each instance: the larger of
// two bounds. The first is the longest chain of its flows, with each flow alone in
// the network. The second is the time that the busiest host's link needs for all
// bytes that the host sends or receives, plus the shortest delay from this host to
// their last receiver.
func idealTimes(topo *fabric.Topology, flows []*outcome) map[*spec.Instance]time.Duration {
	// A load is the number of bytes that a host sends or receives in an instance.
	type load struct {
		instance *spec.Instance
		host     int
		in       bool
	}
	bounds := map[*spec.Instance]time.Duration{}
	busy, nearest := map[load]time.Duration{}, map[load]time.Duration{}
	chain := make([]time.Duration, len(flows)) // time from the start of the instance to the end of each flow
	rates := spec.HostRates(topo)
	for _, i := range inOrder(flows) {
		f := flows[i]
		if f.Instance == nil {
			continue
		}
		for _, p := range predecessors(f.Waits) {
			if flows[p].Instance == f.Instance {
				chain[i] = max(chain[i], chain[p]+f.Waits.Delay)
			}
		}
		if f.Compute {
			continue
		}
		chain[i] += f.ideal
		bounds[f.Instance] = max(bounds[f.Instance], chain[i])
		for _, l := range []load{{f.Instance, f.Src, false}, {f.Instance, f.Dst, true}} {
			onLine := time.Duration(float64(f.wire) * 8 / float64(rates[l.host]) * 1e9)
			if way, ok := nearest[l]; !ok || f.ideal-onLine < way {
				nearest[l] = max(0, f.ideal-onLine)
			}
			busy[l] += onLine
		}
	}
	for l, t := range busy {
		bounds[l.instance] = max(bounds[l.instance], t+nearest[l])
	}
	return bounds
}

// predecessors lists the flows that a flow waits for.
func predecessors(w *spec.Waits) []int32 {
	if w == nil {
		return nil
	}
	return slices.Concat(w.After, w.AfterAck)
}

// inOrder returns all flows in an order in which each follows its predecessors.
func inOrder(flows []*outcome) []int {
	order := make([]int, 0, len(flows))
	left := make([]int, len(flows))
	next := make([][]int32, len(flows))
	for i, f := range flows {
		list := predecessors(f.Waits)
		if left[i] = len(list); left[i] == 0 {
			order = append(order, i)
		}
		for _, p := range list {
			next[p] = append(next[p], int32(i))
		}
	}
	for k := 0; k < len(order); k++ {
		for _, i := range next[order[k]] {
			if left[i]--; left[i] == 0 {
				order = append(order, int(i))
			}
		}
	}
	return order
}

// Limits for the size of a chart of messages.
const (
	maxSpans   = 2048
	maxSenders = 32
)

// steps returns the messages of the first collective, or of its job, or nil if there are too many.
func steps(topo *fabric.Topology, flows []*outcome) *Steps {
	order := inOrder(flows)
	i := slices.IndexFunc(order, func(i int) bool { return flows[i].Instance != nil })
	if i < 0 {
		return nil
	}
	first, depth := flows[order[i]], depths(flows, order)
	if first.Job != nil {
		of := map[*spec.Instance]bool{}
		for _, f := range flows {
			of[f.Instance] = of[f.Instance] || f.Job == first.Job
		}
		if s := messages(topo, flows, order, depth, func(x *spec.Instance) bool { return of[x] }, 0); s != nil {
			s.Job = first.Job.Name
			return s
		}
	}
	return messages(topo, flows, order, depth, func(x *spec.Instance) bool { return x == first.Instance }, 0)
}

// depths returns, for each flow, the number of messages before it in the longest
// chain of its instance.
func depths(flows []*outcome, order []int) []int32 {
	depth := make([]int32, len(flows))
	for _, i := range order {
		f := flows[i]
		if f.Instance == nil {
			continue
		}
		for _, p := range predecessors(f.Waits) {
			if flows[p].Instance == f.Instance {
				depth[i] = max(depth[i], depth[p]+1)
			}
		}
	}
	return depth
}

// messages returns the messages of some instances, or nil if there are too many. It returns
// finished messages; if now is set, also those under way, up to that time.
func messages(topo *fabric.Topology, flows []*outcome, order []int, depth []int32, of func(*spec.Instance) bool, now time.Duration) *Steps {
	out := &Steps{}
	at := map[int]int{}
	for _, i := range order {
		f := flows[i]
		if f.Instance == nil || f.Compute || !of(f.Instance) {
			continue
		}
		end, going := f.Finished, false
		if end == 0 {
			if end, going = now, true; now == 0 || f.Sent == 0 {
				continue
			}
		}
		if _, ok := at[f.Src]; !ok {
			if len(at) == maxSenders {
				continue
			}
			at[f.Src] = 0
		}
		if len(out.Rank) == maxSpans {
			return nil
		}
		out.Rank, out.Step = append(out.Rank, f.Src), append(out.Step, int(depth[i]))
		out.Start, out.End = append(out.Start, round(f.Started.Seconds()*1e3)), append(out.End, round(end.Seconds()*1e3))
		if now > 0 {
			out.going = append(out.going, going)
		}
	}
	if len(out.Rank) == 0 {
		return nil
	}
	for src := range topo.Hosts {
		if _, ok := at[src]; ok {
			at[src] = len(out.Hosts)
			out.Hosts = append(out.Hosts, topo.Hosts[src].Name)
		}
	}
	for k, src := range out.Rank {
		out.Rank[k] = at[src]
	}
	return out
}
