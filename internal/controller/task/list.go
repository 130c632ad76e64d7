package task

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// A maker returns the tasks of one kind for the switches whose programs request it.
type maker func(t *fabric.Topology, nodes []*plan.Node, o Options) ([]Task, error)

// doneByPlan creates no task.
func doneByPlan(*fabric.Topology, []*plan.Node, Options) ([]Task, error) { return nil, nil }

// A site is the switch of a task with the task's manifest.
type site struct {
	*plan.Node
	topology *fabric.Topology
	task     *manifest.Task
	options  Options
}

// identity returns the identity of the task.
func (s *site) identity() identity { return identity{s.task.Kind, s.Name} }

// array returns the array with a role in the task.
func (s *site) array(p manifest.Part) *registers.Array {
	return registers.PartOf(s.Manifest, s.task, p)
}

// forEach returns a maker that creates a task for each switch.
func forEach(kind manifest.TaskKind, one func(*site) (Task, error)) maker {
	return func(t *fabric.Topology, nodes []*plan.Node, o Options) ([]Task, error) {
		var list []Task
		for _, n := range nodes {
			task, err := one(&site{n, t, n.Manifest.Task(kind), o})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", n.Name, err)
			}
			list = append(list, task)
		}
		return list, nil
	}
}

// ForPlan creates the tasks in the manifests of a plan.
func ForPlan(p *plan.Plan, o Options) ([]Task, error) {
	o.MTU = max(o.MTU, p.Options.MTU)
	o.Queue = cmp.Or(o.Queue, p.Options.Queue)
	list, err := New(p.Topology, p.Nodes(), o)
	for _, s := range p.Switches {
		for _, f := range s.Frames {
			list = append(list, &sendTask{identity: identity{manifest.SendFrame, s.Name}, Frame: f, alert: o.Alert})
		}
	}
	return list, err
}

// New creates the tasks that the programs of the switches request, in the order of the manifests.
// It returns an error if a manifest lacks required details, because the scheme would not work
// without its controller.
func New(t *fabric.Topology, nodes []*plan.Node, o Options) ([]Task, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	ageing := forEach(manifest.Ageing, newAgeingTask)
	if o.Ageing == nil {
		ageing = doneByPlan // its counts would be unused
	}
	o = o.withDefaults()
	// The plan contains filters and frames already.
	makers := map[manifest.TaskKind]maker{
		manifest.RateFilter: doneByPlan, manifest.SampleFilter: doneByPlan, manifest.SendFrame: doneByPlan,
		manifest.ProbeFlood: func(_ *fabric.Topology, nodes []*plan.Node, _ Options) ([]Task, error) {
			t, err := newProbeTask(nodes)
			return []Task{t}, err
		},
		manifest.PathProbe:    forEach(manifest.PathProbe, newPathProbeTask),
		manifest.Granular:     forEach(manifest.Granular, newGranularityTask),
		manifest.QueueLimit:   forEach(manifest.QueueLimit, newThresholdTask),
		manifest.Rezero:       forEach(manifest.Rezero, newRezeroTask),
		manifest.RecircLimit:  forEach(manifest.RecircLimit, newLimitTask),
		manifest.Expire:       forEach(manifest.Expire, newExpireTask),
		manifest.FailureWatch: forEach(manifest.FailureWatch, newFailureTask),
		manifest.Ageing:       ageing,
	}
	var list []Task
	for _, n := range nodes {
		if err := n.Manifest.ValidateTasks(); err != nil {
			return nil, fmt.Errorf("the manifest of %s: %w", n.Manifest.Scheme, err)
		}
	}
	for _, kind := range kinds(nodes) {
		maker := makers[kind]
		if maker == nil {
			return nil, fmt.Errorf("there is no task %q", kind)
		}
		wanting := slices.DeleteFunc(slices.Clone(nodes), func(n *plan.Node) bool { return n.Manifest.Task(kind) == nil })
		tasks, err := maker(t, wanting, o)
		if err != nil {
			return nil, fmt.Errorf("task %s of %w", kind, err)
		}
		list = append(list, tasks...)
	}
	return list, nil
}

// kinds lists the kinds of tasks that programs request.
func kinds(nodes []*plan.Node) []manifest.TaskKind {
	var list []manifest.TaskKind
	for _, n := range nodes {
		for _, t := range n.Manifest.Tasks {
			if !slices.Contains(list, t.Kind) {
				list = append(list, t.Kind)
			}
		}
	}
	return list
}
