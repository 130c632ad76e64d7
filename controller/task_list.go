package controller

import (
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fabric"
)

// A taskMaker makes the tasks of one name for the switches whose programs want
// it.
type taskMaker func(t *fabric.Topology, nodes []*Node, o TaskOptions) ([]Task, error)

// taskMakers are the tasks that manifests name.
func taskMakers() map[string]taskMaker {
	return map[string]taskMaker{
		filterTask: doneByPlan, marksTask: doneByPlan,
		"probe": func(_ *fabric.Topology, nodes []*Node, _ TaskOptions) ([]Task, error) {
			t, err := newProbeTask(nodes)
			return []Task{t}, err
		},
		"path-probe":  forEach(func(_ *fabric.Topology, n *Node, _ TaskOptions) (Task, error) { return newPathProbeTask(n) }),
		"granularity": forEach(newGranularityTask),
		"threshold":   forEach(newThresholdTask),
		"rezero": forEach(func(_ *fabric.Topology, n *Node, _ TaskOptions) (Task, error) {
			if n.Manifest.Hardware != nil {
				return newRestartTask(n)
			}
			return newRezeroTask(n)
		}),
		"recirculation-limit": forEach(func(_ *fabric.Topology, n *Node, o TaskOptions) (Task, error) { return newLimitTask(n, o) }),
		"expire":              forEach(func(_ *fabric.Topology, n *Node, _ TaskOptions) (Task, error) { return newExpireTask(n) }),
		"failure-detection":   forEach(func(_ *fabric.Topology, n *Node, o TaskOptions) (Task, error) { return newFailureTask(n, o) }),
	}
}

// doneByPlan makes no task.
func doneByPlan(*fabric.Topology, []*Node, TaskOptions) ([]Task, error) { return nil, nil }

// forEach makes a task for each switch.
func forEach(one func(*fabric.Topology, *Node, TaskOptions) (Task, error)) taskMaker {
	return func(t *fabric.Topology, nodes []*Node, o TaskOptions) ([]Task, error) {
		var list []Task
		for _, n := range nodes {
			task, err := one(t, n, o)
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
	return NewTasks(p.Topology, p.Nodes(), o)
}

// NewTasks makes the tasks that the programs of the switches want, in the order
// in which manifests name them. A name that is not known is an error: a scheme
// without its controller does not do what it is meant to.
func NewTasks(t *fabric.Topology, nodes []*Node, o TaskOptions) ([]Task, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	makers := taskMakers()
	var list []Task
	for _, name := range taskNames(nodes) {
		maker := makers[name]
		if maker == nil {
			return nil, fmt.Errorf("the manifest of %s wants a task %q, which is not known", schemeWith(nodes, name), name)
		}
		tasks, err := maker(t, wanting(nodes, name), o)
		if err != nil {
			return nil, fmt.Errorf("task %s of %w", name, err)
		}
		list = append(list, tasks...)
	}
	for _, n := range nodes {
		if !n.has("fl_D") {
			continue
		}
		task, err := newAgeingTask(t, n, o)
		if err != nil {
			return nil, fmt.Errorf("task ageing of %s: %w", n.Name, err)
		}
		list = append(list, task)
	}
	return list, nil
}

// taskNames lists the tasks that any program wants.
func taskNames(nodes []*Node) []string {
	var names []string
	for _, n := range nodes {
		for _, t := range n.Manifest.Tasks {
			if !slices.Contains(names, t.Name) {
				names = append(names, t.Name)
			}
		}
	}
	return names
}

func (n *Node) wants(task string) bool {
	return slices.ContainsFunc(n.Manifest.Tasks, func(t codegen.Task) bool { return t.Name == task })
}

// wanting are the switches whose programs want a task.
func wanting(nodes []*Node, task string) []*Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return !n.wants(task) })
}

func schemeWith(nodes []*Node, task string) string {
	var names []string
	for _, n := range wanting(nodes, task) {
		if !slices.Contains(names, n.Manifest.Scheme) {
			names = append(names, n.Manifest.Scheme)
		}
	}
	return strings.Join(names, ", ")
}
