// Package task implements the periodic work of a controller: probes, thresholds,
// failure detection, as requested by manifests. A Schedule runs tasks when they are
// due, with the machine's clock or with a simulated one.
package task

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"time"

	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// A Task is periodic work of a controller: sending probes, computing thresholds, detecting
// failures. It has no clock, and accesses switches only through its arguments, so that
// simulations can run the same code in virtual time.
type Task interface {
	// Name returns the task's kind, as in manifests.
	Name() string
	// Switch returns the name of the task's switch; "": all switches together.
	Switch() string
	// Run does the work that is due and returns the next time, or Never. An error
	// concerns only this run; the next time is returned with it.
	Run(now time.Duration, f Fabric) (next time.Duration, err error)
}

// A Finisher is a Task that checks its work at the end of a run, which may be too short for
// a check by Run.
type Finisher interface {
	Finish(now time.Duration, f Fabric) error
}

// An identity is a task's kind and its switch.
type identity struct {
	kind manifest.TaskKind
	sw   string // "": all switches together
}

// Name returns the task's kind.
func (i identity) Name() string { return string(i.kind) }

// Switch returns the name of the task's switch.
func (i identity) Switch() string { return i.sw }

// CanWait reports whether tasks of a kind may run less often than their period. RLB's tasks may:
// the paper does not specify their periods, and reading the registers of several switches takes
// longer than p4lb's default of two RTTs.
func CanWait(kind string) bool {
	switch manifest.TaskKind(kind) {
	case manifest.Rezero, manifest.RecircLimit, manifest.FailureWatch:
		return true
	}
	return false
}

// Never is the due time of a task that has finished.
const Never = time.Duration(1<<63 - 1)

// A Fabric gives tasks access to switches, by name.
type Fabric interface {
	registers.Fabric
	// PacketOut makes the switch process a frame as a packet from the controller.
	PacketOut(sw string, frame []byte) error
	// PacketAt makes the switch process a frame as one that arrived at a port. If the
	// target cannot do so, the error wraps errors.ErrUnsupported.
	PacketAt(sw string, port int, frame []byte) error
	// QueuesEmpty reports whether no packet waits in the switch. If the switch cannot report
	// this, the error is errors.ErrUnsupported.
	QueuesEmpty(sw string) (bool, error)
}

// A Schedule runs tasks when they are due. It does not wait itself, so the real-time loop and
// simulations can share it.
type Schedule struct {
	queue queue
	count int
	due   []dueTask
	runs  []Outcome
}

// A dueTask is a task with its due time. Tasks with the same due time run in the order of
// insertion.
type dueTask struct {
	task Task
	at   time.Duration
	seq  int
}

// NewSchedule returns a schedule of tasks that are all due now.
func NewSchedule(tasks []Task, now time.Duration) *Schedule {
	s := &Schedule{}
	for _, t := range tasks {
		s.add(t, now)
	}
	return s
}

func (s *Schedule) add(t Task, at time.Duration) {
	heap.Push(&s.queue, dueTask{t, at, s.count})
	s.count++
}

// Next returns the time at which the next task is due, or Never.
func (s *Schedule) Next() time.Duration {
	if len(s.queue) == 0 {
		return Never
	}
	return s.queue[0].at
}

// A runError is an error of one run of a task.
type runError struct {
	Task   string
	Switch string // "": all switches together
	Err    error
}

// runError returns the message with the task and the switch.
func (e *runError) Error() string {
	if e.Switch == "" {
		return fmt.Sprintf("task %s: %v", e.Task, e.Err)
	}
	return fmt.Sprintf("task %s of %s: %v", e.Task, e.Switch, e.Err)
}

// Unwrap returns what went wrong.
func (e *runError) Unwrap() error { return e.Err }

// Run runs every task that is due, each at most once, so that a slow task cannot block the
// others. Its errors are of type Error. Failed tasks stay in the schedule.
func (s *Schedule) Run(now time.Duration, f Fabric) []error {
	var errs []error
	for _, r := range s.RunEach(now, f) {
		if r.Err != nil {
			errs = append(errs, &runError{r.Task.Name(), r.Task.Switch(), r.Err})
		}
	}
	return errs
}

// An Outcome is the result of one run of a task.
type Outcome struct {
	Task Task
	Err  error
}

func (s *Schedule) RunEach(now time.Duration, f Fabric) []Outcome {
	s.due, s.runs = s.due[:0], s.runs[:0]
	for len(s.queue) > 0 && s.Next() <= now {
		s.due = append(s.due, heap.Pop(&s.queue).(dueTask))
	}
	for _, d := range s.due {
		next, err := d.task.Run(now, f)
		s.runs = append(s.runs, Outcome{d.task, err})
		if next != Never {
			s.add(d.task, max(next, now+1))
		}
	}
	return s.runs
}

// queue is a heap by time.
type queue []dueTask

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].at, q[j].at), cmp.Compare(q[i].seq, q[j].seq)) < 0
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push and Pop implement heap.Interface.
func (q *queue) Push(x any) { *q = append(*q, x.(dueTask)) }

// Pop removes the last one.
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// Options configure tasks in addition to programs and topology. The zero value has the papers'
// values.
type Options struct {
	MTU      int           // size of a full packet; 0: 1500
	FlowSize float64       // size of a long flow in bytes; 0: 1.6 MB, the mean of web search
	Flows    int           // number of flows that share the paths between two leaves; 0: 1, as in PDLB's equations
	Queue    int           // queue capacity in packets if the topology has none; 0: 64
	Recheck  time.Duration // interval for checking values that are written once; 0: 1 s

	// Alert receives events for the operator, such as a failed port. Run calls it. nil: events
	// are ignored.
	Alert func(Alert)
	// Ageing is notified of every sweep over flows that wait for their last packet.
	Ageing func(FlowAges)
}

// An Alert is a finding of a task for the operator.
type Alert struct {
	Time   time.Duration // time by the task's clock
	Task   string
	Switch string
	Port   int    // 0: not about a port
	Text   string // one line
}

// String returns the alert as one line.
func (a Alert) String() string { return a.Switch + ": " + a.Text }

func (o Options) withDefaults() Options {
	o.MTU = cmp.Or(o.MTU, 1500)
	o.FlowSize = cmp.Or(o.FlowSize, 1.6e6)
	o.Flows = cmp.Or(o.Flows, 1)
	o.Queue = cmp.Or(o.Queue, 64)
	o.Recheck = cmp.Or(o.Recheck, time.Second)
	if o.Alert == nil {
		o.Alert = func(Alert) {}
	}
	if o.Ageing == nil {
		o.Ageing = func(FlowAges) {}
	}
	return o
}

func (o Options) validate() error {
	if o.MTU < 0 || o.FlowSize < 0 || o.Flows < 0 || o.Queue < 0 || o.Recheck < 0 {
		return errors.New("the options of tasks cannot be negative")
	}
	return nil
}
