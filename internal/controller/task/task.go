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

// A Task is periodic work of a controller: sending probes, computing thresholds,
// detecting failures. It has no clock of its own and reaches switches only through its
// arguments, so that simulations run the same code in virtual time.
type Task interface {
	// Name is the task's kind, as manifests write it.
	Name() string
	// Switch is the switch that the task is about, "" for all together.
	Switch() string
	// Run does the work that is due and returns the next time, or Never. An error
	// concerns only this run; the next time is returned with it.
	Run(now time.Duration, f Fabric) (next time.Duration, err error)
}

// An identity is a task's kind and its switch.
type identity struct {
	kind manifest.TaskKind
	sw   string // "" for all together
}

// Name is the task's kind.
func (i identity) Name() string { return string(i.kind) }

// Switch is the switch that the task is about.
func (i identity) Switch() string { return i.sw }

// CanWait reports whether a kind of task may run less often than its period. RLB's
// tasks may: the paper leaves their periods open, and p4lb's default of two RTTs is
// shorter than the controller needs for the registers of several switches.
func CanWait(kind string) bool {
	switch manifest.TaskKind(kind) {
	case manifest.Rezero, manifest.RecircLimit, manifest.FailureWatch:
		return true
	}
	return false
}

// Never is when a task is due that is done for good.
const Never = time.Duration(1<<63 - 1)

// A Fabric is what tasks reach of the switches, by their names.
type Fabric interface {
	registers.Fabric
	// PacketOut makes the switch process a frame as one from the controller.
	PacketOut(sw string, frame []byte) error
	// PacketAt makes the switch process a frame as one that arrived at a port. If the
	// target cannot do so, the error wraps errors.ErrUnsupported.
	PacketAt(sw string, port int, frame []byte) error
	// QueuesEmpty reports whether no packet waits in the switch. Where the
	// switch does not tell, the error is errors.ErrUnsupported.
	QueuesEmpty(sw string) (bool, error)
}

// A Schedule runs tasks when they are due. The real-time loop and simulations share
// it; it never waits.
type Schedule struct {
	queue queue
	count int
	due   []dueTask
	runs  []Outcome
}

// A dueTask is a task and when it is due; earlier ones of a moment were added
// earlier.
type dueTask struct {
	task Task
	at   time.Duration
	seq  int
}

// NewSchedule makes a schedule of tasks that are all due at once.
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

// Next is when the next task is due, Never if none is.
func (s *Schedule) Next() time.Duration {
	if len(s.queue) == 0 {
		return Never
	}
	return s.queue[0].at
}

// An Error is an error of a task.
type Error struct {
	Task   string
	Switch string // "" for all together
	Err    error
}

// Error returns the message with the task and the switch.
func (e *Error) Error() string {
	if e.Switch == "" {
		return fmt.Sprintf("task %s: %v", e.Task, e.Err)
	}
	return fmt.Sprintf("task %s of %s: %v", e.Task, e.Switch, e.Err)
}

// Unwrap returns what went wrong.
func (e *Error) Unwrap() error { return e.Err }

// Run runs every task that is due, each once at most: one that cannot keep up
// with its period must not keep the others from running. The errors are of type
// Error; the tasks stay in the schedule.
func (s *Schedule) Run(now time.Duration, f Fabric) []error {
	var errs []error
	for _, r := range s.RunEach(now, f) {
		if r.Err != nil {
			errs = append(errs, &Error{r.Task.Name(), r.Task.Switch(), r.Err})
		}
	}
	return errs
}

// A Outcome is how one run of a task ended.
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

// Push and Pop are what package heap wants.
func (q *queue) Push(x any) { *q = append(*q, x.(dueTask)) }

// Pop removes the last one.
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// Options configure tasks in addition to programs and topology. The zero value uses
// the papers' values.
type Options struct {
	MTU      int           // bytes of a full packet; 0: 1500
	FlowSize float64       // bytes of a long flow; 0: 1.6 MB, the mean of web search
	Flows    int           // that share the paths between two leaves; 0: 1, as PDLB's equations have it
	Queue    int           // packets of a queue where the topology does not say; 0: 64
	Recheck  time.Duration // the interval for checking values that are written once; 0: 1 s

	// Alert receives events for a person, such as a faulty port. Run calls it. Nil
	// ignores them.
	Alert func(Alert)
	// Ageing is notified of every sweep over flows that wait for their last packet.
	Ageing func(FlowAges)
}

// An Alert is something that a task has found.
type Alert struct {
	Time   time.Duration // of the task's clock
	Task   string
	Switch string
	Port   int    // 0 where it is about none
	Text   string // one line
}

// String is the alert in one line.
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
