package controller

import (
	"fmt"
	"slices"

	"github.com/p4lb/p4lb/fabric"
	"github.com/p4lb/p4lb/manifest"
)

// A taskMaker makes the tasks of one kind for the switches whose programs want
// it.
type taskMaker func(t *fabric.Topology, nodes []*Node, o TaskOptions) ([]Task, error)

// taskMakers are those of the kinds that manifests have. Filters are set by
// plans, and frames are laid out by them.
func taskMakers() map[manifest.TaskKind]taskMaker {
	return map[manifest.TaskKind]taskMaker{
		manifest.RateFilter: doneByPlan, manifest.SampleFilter: doneByPlan, manifest.SendFrame: doneByPlan,
		manifest.ProbeFlood: func(_ *fabric.Topology, nodes []*Node, _ TaskOptions) ([]Task, error) {
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
		manifest.Ageing:       forEach(manifest.Ageing, newAgeingTask),
	}
}

// doneByPlan makes no task.
func doneByPlan(*fabric.Topology, []*Node, TaskOptions) ([]Task, error) { return nil, nil }

// A taskSite is what a task of one switch is made for.
type taskSite struct {
	*Node
	topology *fabric.Topology
	task     *manifest.Task
	options  TaskOptions
}

// array finds what plays a part in the task.
func (s *taskSite) array(p manifest.Part) *array { return partOf(s.Manifest, s.task, p) }

// forEach makes a task for each switch.
func forEach(kind manifest.TaskKind, one func(*taskSite) (Task, error)) taskMaker {
	return func(t *fabric.Topology, nodes []*Node, o TaskOptions) ([]Task, error) {
		var list []Task
		for _, n := range nodes {
			task, err := one(&taskSite{n, t, n.Manifest.Task(kind), o})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", n.Name, err)
			}
			list = append(list, task)
		}
		return list, nil
	}
}

// Tasks makes the tasks that the manifests of a plan name, for the switches that
// want them.
func Tasks(p *Plan, o TaskOptions) ([]Task, error) {
	o.MTU = max(o.MTU, p.Options.MTU)
	if o.Queue == 0 {
		o.Queue = p.Options.Queue
	}
	list, err := NewTasks(p.Topology, p.Nodes(), o)
	for _, s := range p.Switches {
		for _, f := range s.Frames {
			list = append(list, &sendTask{s.Name, f})
		}
	}
	return list, err
}

// NewTasks makes the tasks that the programs of the switches want, in the order
// in which manifests name them. A manifest that lacks what a task wants is an
// error: a scheme without its controller does not do what it is meant to.
func NewTasks(t *fabric.Topology, nodes []*Node, o TaskOptions) ([]Task, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	makers := taskMakers()
	var list []Task
	for _, n := range nodes {
		if err := n.Manifest.ValidateTasks(); err != nil {
			return nil, fmt.Errorf("the manifest of %s: %w", n.Manifest.Scheme, err)
		}
	}
	for _, kind := range taskKinds(nodes) {
		maker := makers[kind]
		if maker == nil {
			return nil, fmt.Errorf("there is no task %q", kind)
		}
		tasks, err := maker(t, wanting(nodes, kind), o)
		if err != nil {
			return nil, fmt.Errorf("task %s of %w", kind, err)
		}
		list = append(list, tasks...)
	}
	return list, nil
}

// taskKinds lists the kinds of tasks that any program wants.
func taskKinds(nodes []*Node) []manifest.TaskKind {
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

// wanting are the switches whose programs want a kind of task.
func wanting(nodes []*Node, kind manifest.TaskKind) []*Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return n.Manifest.Task(kind) == nil })
}
