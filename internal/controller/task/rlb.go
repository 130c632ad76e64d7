package task

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// A rezeroTask resets RLB's ingress queues to 0 while the switch holds no packet. A packet
// dropped at a full egress queue was added to the count but never subtracted.
type rezeroTask struct {
	identity
	period   time.Duration
	cells    int              // number of cells for existing ports
	queue    *registers.Array // packets of each ingress port that are in the switch
	interval *registers.Array // start of each port's interval
	waiting  *registers.Array // bytes that wait for recirculation; nil: not counted

	queued, before []uint64 // the queues now and in the last run
	began, earlier []uint64 // the intervals now and in the last run
	seen           bool
}

func newRezeroTask(s *site) (Task, error) {
	if s.array(manifest.PartQueue) == nil {
		return newRestartTask(s)
	}
	return &rezeroTask{
		identity: s.identity(), period: time.Duration(s.task.Period), cells: plan.PortCells(s.Node),
		queue: s.array(manifest.PartQueue), interval: s.array(manifest.PartInterval), waiting: s.array(manifest.PartRoundQueue),
	}, nil
}

// Run resets counts that are not 0.
func (t *rezeroTask) Run(now time.Duration, f Fabric) (time.Duration, error) {
	next := now + t.period
	var err error
	if t.queued, err = t.queue.Read(f, t.sw, 0, t.cells, 0, t.queued[:0]); err != nil {
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
		if err := f.WriteRegister(t.sw, t.queue.Parts[0].Register.Name, port, port+1, 0); err != nil {
			return next, err
		}
	}
	if t.waiting != nil {
		return next, f.WriteRegister(t.sw, t.waiting.Parts[0].Register.Name, 0, 1, 0)
	}
	return next, nil
}

// quiet reports whether the switch contains no packets. If the switch cannot report
// this, it counts as empty if nothing has changed since the last run: an arriving
// packet would have started an interval, and a departing one would have changed a
// queue.
func (t *rezeroTask) quiet(f Fabric) (bool, error) {
	empty, err := f.QueuesEmpty(t.sw)
	if !errors.Is(err, errors.ErrUnsupported) {
		return empty, err
	}
	if t.interval != nil {
		if t.began, err = t.interval.Read(f, t.sw, 0, t.cells, registers.Middle, t.began[:0]); err != nil {
			return false, err
		}
	}
	still := t.seen && slices.Equal(t.queued, t.before) && slices.Equal(t.began, t.earlier)
	t.before = append(t.before[:0], t.queued...)
	t.earlier = append(t.earlier[:0], t.began...)
	t.seen = true
	return still, nil
}

// A limitTask computes RLB's N_rc, the largest number of recirculations of a packet (Eq. 5). The
// paper's equation divides bytes by time and omits the queue.
type limitTask struct {
	identity
	period time.Duration
	cells  int
	model  fitting.RLB
	most   int

	queue, in, out *registers.Array // ingress queues, or otherwise the numbers of arrived and departed packets
	roundTime      *registers.Array
	limit          *registers.Array

	queued []uint64
	left   []uint64
}

func newLimitTask(s *site) (Task, error) {
	task := s.task
	t := &limitTask{
		identity: s.identity(), period: time.Duration(task.Period), cells: plan.PortCells(s.Node), most: int(task.Limit),
		model: fitting.RLB{
			N: float64(task.Incast), C: float64(task.Rate) / 8, D: time.Duration(task.Delay).Seconds(),
			QPFC: float64(task.Pause), MTU: float64(s.options.MTU),
		},
		queue: s.array(manifest.PartQueue), in: s.array(manifest.PartIn), out: s.array(manifest.PartOut),
		roundTime: s.array(manifest.PartRoundTime), limit: s.array(manifest.PartLimit),
	}
	if t.queue == nil && t.out == nil {
		return nil, fmt.Errorf("task %s wants a register for %s", task.Kind, manifest.PartOut)
	}
	return t, nil
}

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
	round, err := t.roundTime.Read(f, t.sw, 0, 1, 0, cell[:0])
	if err != nil {
		return next, err
	}
	m := t.model
	m.TRC = float64(round[0]) / 1e6
	_, limit := m.Recirculations(float64(longest))
	return next, writeIfOther(f, t.sw, t.limit, uint64(min(limit, t.most)))
}

// read reads the ingress queues; on hardware, arrived minus departed packets.
func (t *limitTask) read(f Fabric) (err error) {
	if t.queue != nil {
		t.queued, err = t.queue.Read(f, t.sw, 0, t.cells, 0, t.queued[:0])
		return err
	}
	if t.queued, err = t.in.Read(f, t.sw, 0, t.cells, 0, t.queued[:0]); err != nil {
		return err
	}
	if t.left, err = t.out.Read(f, t.sw, 0, t.cells, 0, t.left[:0]); err != nil {
		return err
	}
	for i, left := range t.left {
		t.queued[i] -= min(t.queued[i], left)
	}
	return nil
}

// A failureTask runs RLB's Algorithm 2. It considers only intervals in which packets recirculate
// because a path is slow. The switch at a port has failed if, in two consecutive such intervals,
// packets recirculate more than once on average because of this port.
//
// The printed algorithm inverts the suspicion, keeps the counts of cleared ports, and runs
// continuously. The task runs once per interval. The paper averages over "packets" and prints no
// threshold. Over all packets the average stays near 0 even if a switch fails; over recirculated
// packets it is 2 to 6 in a healthy network too. The program therefore counts, for each port, the
// recirculations that avoid a path with overdue probes.
//
// A program for Tofino cannot detect overdue probes. It counts recirculations by the port that
// the packet waits for. There the task itself detects silent paths, and suspects the port of the
// silent path that these packets avoid.
type failureTask struct {
	identity
	period time.Duration
	cells  int
	node   *plan.Node
	alert  func(Alert)

	rounds, perPort, packets, faulty *registers.Array

	silence *silence // nil: the program detects overdue probes

	suspect        int   // suspected port of the last interval; 0: none
	reported       []int // failed ports with an alert
	counts, waited []uint64
}

func newFailureTask(s *site) (Task, error) {
	t := &failureTask{
		identity: s.identity(), period: time.Duration(s.task.Period), cells: plan.PortCells(s.Node), node: s.Node, alert: s.options.Alert,
		rounds: s.array(manifest.PartRounds), packets: s.array(manifest.PartPackets),
		perPort: s.array(manifest.PartPortRounds), faulty: s.array(manifest.PartFaulty),
	}
	if rtts := s.array(manifest.PartDelay); rtts != nil {
		probe := s.Manifest.Task(manifest.PathProbe)
		if probe == nil {
			return nil, fmt.Errorf("task %s with a register for %s: the program sends no probes: want a task %s", s.task.Kind, manifest.PartDelay, manifest.PathProbe)
		}
		t.silence = &silence{sw: s.Name, period: time.Duration(probe.Period), rtts: rtts, groups: s.Groups, paths: map[[2]int]*watched{}}
	}
	return t, nil
}

// Run evaluates one interval and begins the next.
func (t *failureTask) Run(now time.Duration, f Fabric) (time.Duration, error) {
	next := now + t.period
	if t.silence != nil {
		if err := t.silence.look(now, f); err != nil {
			return next, err
		}
	}
	var cell [1]uint64
	rounds, err := t.rounds.Read(f, t.sw, 0, 1, 0, cell[:0])
	if err != nil || rounds[0] == 0 {
		return next, err // without recirculations there is no information about the suspect either
	}
	port, counted, err := t.exceeding(f)
	if err != nil {
		return next, err
	}
	if t.silence != nil && port != 0 {
		port = t.silence.avoided(port)
	}
	if port != 0 && port == t.suspect {
		if err := t.set(f, t.faulty, port, port+1, 1); err != nil {
			return next, err
		}
		if !slices.Contains(t.reported, port) {
			t.alert(t.describe(now, port))
			t.reported = append(t.reported, port)
		}
		port = 0
	}
	if counted {
		t.suspect = port
	}
	// Reset the counts for the next interval.
	return next, errors.Join(
		t.set(f, t.rounds, 0, 1, 0),
		t.set(f, t.packets, 0, t.cells, 0),
		t.set(f, t.perPort, 0, t.cells, 0),
	)
}

// exceeding returns the port with the most recirculations if its packets recirculate more than
// once on average, and otherwise 0. counted is false if no recirculation was counted.
func (t *failureTask) exceeding(f Fabric) (port int, counted bool, err error) {
	if t.counts, err = t.perPort.Read(f, t.sw, 0, t.cells, 0, t.counts[:0]); err != nil {
		return 0, false, err
	}
	if t.waited, err = t.packets.Read(f, t.sw, 0, t.cells, 0, t.waited[:0]); err != nil {
		return 0, false, err
	}
	port = busiest(t.counts)
	if port == 0 {
		return 0, false, nil
	}
	if t.waited[port] == 0 || t.counts[port] <= t.waited[port] {
		port = 0
	}
	return port, true, nil
}

// busiest returns the first port with the largest count, or 0.
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
	if p, ok := t.node.Port(port); ok {
		a.Text += ": " + p.Peer + " behind it has failed"
	}
	return a
}

// set sets cells of an array of the switch.
func (t *failureTask) set(f Fabric, a *registers.Array, from, to int, value uint64) error {
	return a.Write(f, t.node.Manifest, t.sw, from, to, value)
}
