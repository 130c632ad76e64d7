package controller

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/fitting"
)

// A rezeroTask sets RLB's ingress queues to 0 while the switch holds no packet:
// a packet that found its egress queue full was counted in and never out.
type rezeroTask struct {
	sw     string
	period time.Duration
	cells  int // of the ports that are there

	queued, before []uint64 // ig_q now and the last time
	began, earlier []uint64 // ig_t0 likewise
	seen           bool
}

func newRezeroTask(n *Node) (Task, error) {
	t := &rezeroTask{sw: n.Name, period: n.period("hold"), cells: portCells(n)}
	switch {
	case !n.has("ig_q"):
		return nil, errors.New("the program has no register ig_q")
	case t.period <= 0:
		return nil, errors.New("the program has no parameter hold")
	}
	return t, nil
}

// portCells is how many cells of a register by port are in use.
func portCells(n *Node) int {
	if len(n.Ports) == 0 {
		return 0
	}
	return n.Ports[len(n.Ports)-1].Number + 1
}

// Name is the task's in manifests.
func (t *rezeroTask) Name() string { return "rezero" }

// Switch is the switch that counts.
func (t *rezeroTask) Switch() string { return t.sw }

// Run clears what is left over.
func (t *rezeroTask) Run(now time.Duration, f Fabric) (time.Duration, error) {
	next := now + t.period
	var err error
	if t.queued, err = f.ReadRegister(t.sw, "ig_q", 0, t.cells, t.queued[:0]); err != nil {
		return next, err
	}
	quiet, err := t.quiet(f)
	if err != nil || !quiet {
		return next, err
	}
	for port, bytes := range t.queued {
		if bytes == 0 {
			continue
		}
		if err := f.WriteRegister(t.sw, "ig_q", port, port+1, 0); err != nil {
			return next, err
		}
	}
	return next, nil
}

// quiet reports whether no packet is in the switch. One that does not tell is
// taken to hold none if nothing at all has moved since the last run: a packet
// that came in would have begun an interval, one that left would have changed a
// queue.
func (t *rezeroTask) quiet(f Fabric) (bool, error) {
	empty, err := f.QueuesEmpty(t.sw)
	if !errors.Is(err, errors.ErrUnsupported) {
		return empty, err
	}
	t.began, err = f.ReadRegister(t.sw, "ig_t0", 0, t.cells, t.began[:0])
	if err != nil {
		return false, err
	}
	still := t.seen && slices.Equal(t.queued, t.before) && slices.Equal(t.began, t.earlier)
	t.before = append(t.before[:0], t.queued...)
	t.earlier = append(t.earlier[:0], t.began...)
	t.seen = true
	return still, nil
}

// A limitTask computes RLB's N_rc, how often a packet may come round (Eq. 5).
// The paper's equation is bytes over time and leaves out the queue.
type limitTask struct {
	sw     string
	period time.Duration
	cells  int
	model  fitting.RLB
	most   int
	node   *Node

	queued []uint64
	gone   []uint64 // of hardware
}

func newLimitTask(n *Node, o TaskOptions) (Task, error) {
	t := &limitTask{
		node: n, sw: n.Name, period: n.period("hold"), cells: portCells(n), most: int(n.parameter("rc")),
		model: fitting.RLB{
			N: float64(n.parameter("incast")), C: float64(n.parameter("link")) / 8, D: n.period("delay").Seconds(),
			QPFC: float64(n.parameter("qpfc")), MTU: float64(o.MTU),
		},
	}
	switch {
	case !n.has("t_rc", "nrc") || !n.has("ig_q") && !n.has("ig_in", "ig_out"):
		return nil, errors.New("the program lacks one of the registers t_rc, nrc and ig_q, or ig_in and ig_out")
	case t.period <= 0:
		return nil, errors.New("the program has no parameter hold")
	}
	return t, nil
}

// Name is the task's in manifests.
func (t *limitTask) Name() string { return "recirculation-limit" }

// Switch is the switch in which packets come round.
func (t *limitTask) Switch() string { return t.sw }

// Run writes the limit for the longest ingress queue.
func (t *limitTask) Run(now time.Duration, f Fabric) (time.Duration, error) {
	next := now + t.period
	if err := t.read(f); err != nil {
		return next, err
	}
	var longest uint64
	for _, q := range t.queued {
		longest = max(longest, q)
	}
	var cell [1]uint64
	round, err := f.ReadRegister(t.sw, "t_rc", 0, 1, cell[:0])
	if err != nil {
		return next, err
	}
	t.node.inMicros("t_rc", round, 0)
	m := t.model
	m.TRC = float64(round[0]) / 1e6
	_, limit := m.Recirculations(float64(longest))
	return next, writeIfOther(f, t.sw, "nrc", uint64(min(limit, t.most)))
}

// read reads the ingress queues: on hardware, what came in less what is known to
// have gone.
func (t *limitTask) read(f Fabric) (err error) {
	if t.node.has("ig_q") {
		t.queued, err = f.ReadRegister(t.sw, "ig_q", 0, t.cells, t.queued[:0])
		return err
	}
	if t.queued, err = f.ReadRegister(t.sw, "ig_in", 0, t.cells, t.queued[:0]); err != nil {
		return err
	}
	if t.gone, err = f.ReadRegister(t.sw, "ig_out", 0, t.cells, t.gone[:0]); err != nil {
		return err
	}
	for i, gone := range t.gone {
		t.queued[i] -= min(t.queued[i], gone)
	}
	return nil
}

// A failureTask is RLB's Algorithm 2: where packets come round too often, the
// port that they do so for leads to a failed switch. As printed, it assigns the
// suspicion the wrong way round, keeps the counts of ports that are cleared,
// and spins; here it looks once in an interval.
type failureTask struct {
	sw     string
	period time.Duration
	cells  int
	node   *Node
	alert  func(Alert)

	suspect int // the port of the last interval, 0 for none
	counts  []uint64
}

func newFailureTask(n *Node, o TaskOptions) (Task, error) {
	t := &failureTask{sw: n.Name, period: n.period("hold"), cells: portCells(n), node: n, alert: o.Alert}
	switch {
	case !n.has("rc_sum", "rc_pkts", "rc_cnt", "nrc") || !n.has("faulty") && n.Manifest.Hardware == nil:
		return nil, errors.New("the program lacks one of the registers rc_sum, rc_pkts, rc_cnt, nrc and faulty")
	case t.period <= 0:
		return nil, errors.New("the program has no parameter hold")
	}
	return t, nil
}

// Name is the task's in manifests.
func (t *failureTask) Name() string { return "failure-detection" }

// Switch is the switch whose neighbours are watched.
func (t *failureTask) Switch() string { return t.sw }

// Run looks at one interval and begins the next.
func (t *failureTask) Run(now time.Duration, f Fabric) (time.Duration, error) {
	next := now + t.period
	exceeded, err := t.exceeded(f)
	if err != nil {
		return next, err
	}
	if t.counts, err = f.ReadRegister(t.sw, "rc_cnt", 0, t.cells, t.counts[:0]); err != nil {
		return next, err
	}
	port := 0
	if exceeded {
		port = busiest(t.counts)
	}
	if port != 0 && port == t.suspect {
		if err := t.close(f, port); err != nil {
			return next, err
		}
		t.alert(t.describe(now, port))
		port = 0
	}
	t.suspect = port
	return next, t.clear(f)
}

// close closes a port: on hardware by the first half of the cells about it, of
// which there is a copy for each slot.
func (t *failureTask) close(f Fabric, port int) error {
	if t.node.has("faulty") {
		return f.WriteRegister(t.sw, "faulty", port, port+1, 1)
	}
	var errs []error
	for _, r := range t.node.Manifest.Registers {
		if short(r.Name) == "until" {
			errs = append(errs, f.WriteRegister(t.sw, r.Name, port, port+1, 1<<(r.Width/2)))
		}
	}
	return errors.Join(errs...)
}

// exceeded compares Rc_avg with N_rc. The program lets no packet come round more
// often than N_rc, so the average of an interval can only reach it: that counts.
func (t *failureTask) exceeded(f Fabric) (bool, error) {
	var figures [3]uint64
	for i, name := range []string{"rc_sum", "rc_pkts", "nrc"} {
		var cell [1]uint64
		v, err := f.ReadRegister(t.sw, name, 0, 1, cell[:0])
		if err != nil {
			return false, err
		}
		figures[i] = v[0]
	}
	rounds, packets, limit := figures[0], figures[1], figures[2]
	return rounds > 0 && rounds >= limit*packets, nil
}

// busiest is the port with the largest count, the first of several, 0 for none.
func busiest(counts []uint64) (port int) {
	for p, n := range counts {
		if n > 0 && (port == 0 || n > counts[port]) {
			port = p
		}
	}
	return port
}

func (t *failureTask) describe(now time.Duration, port int) Alert {
	a := Alert{Time: now, Task: t.Name(), Switch: t.sw, Port: port, Text: fmt.Sprintf("port %d is faulty", port)}
	if p, ok := t.node.port(port); ok {
		a.Text += ": " + p.Peer + " behind it has failed"
	}
	return a
}

// clear sets the counts of the interval to 0.
func (t *failureTask) clear(f Fabric) error {
	return errors.Join(
		f.WriteRegister(t.sw, "rc_sum", 0, 1, 0),
		f.WriteRegister(t.sw, "rc_pkts", 0, 1, 0),
		f.WriteRegister(t.sw, "rc_cnt", 0, t.cells, 0),
	)
}
