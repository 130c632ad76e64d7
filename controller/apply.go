package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// apply makes changes in an order that never leaves packets without a path: it inserts
// and modifies objects after the objects that they refer to, and deletes them before.
// Each rank is a separate request, because a switch may process the updates of one
// request in any order. It returns the number of changes that the switch accepted.
func (x *exchange) apply(ctx context.Context, steps []step) (taken int, err error) {
	var batches [2 * ranks][]*step
	var clearing [clearMembers][]*step
	var cells []step
	var queues, filters []step
	for i, s := range steps {
		switch {
		case s.cell != nil:
			cells = append(cells, s)
		case s.queue != nil:
			queues = append(queues, s)
		case s.filter != nil:
			filters = append(filters, s)
		case s.clears > 0:
			clearing[s.clears-1] = append(clearing[s.clears-1], &steps[i])
		case s.Kind == report.Delete:
			batches[2*ranks-1-s.rank] = append(batches[2*ranks-1-s.rank], &steps[i])
		default:
			batches[s.rank] = append(batches[s.rank], &steps[i])
		}
	}
	// Set registers, queues and filters first, so that packets find them correct.
	for _, f := range []func() (int, error){
		func() (int, error) { return x.writeCells(ctx, cells) },
		func() (int, error) { return x.setQueues(ctx, queues) },
		func() (int, error) { return x.setFilters(ctx, filters) },
	} {
		n, err := f()
		taken += n
		if err != nil {
			return taken, err
		}
	}
	for _, batch := range append(clearing[:], batches[:]...) {
		updates := lists.Map(batch, func(s *step) *p4v1.Update { return s.update })
		n, err := x.write(ctx, updates, func(i int) string { return batch[i].Object })
		taken += n
		if err != nil {
			return taken, err
		}
	}
	return taken, nil
}

// writeCells writes adjacent cells with the same value in one request.
func (x *exchange) writeCells(ctx context.Context, list []step) (taken int, err error) {
	for len(list) > 0 {
		first, n := *list[0].cell, 1
		for n < len(list) && list[n].cell.Register == first.Register && list[n].cell.From == first.From+n && list[n].cell.Value == first.Value {
			n++
		}
		if err := x.registers().Write(ctx, first.Register, first.From, first.From+n, first.Value); err != nil {
			return taken, err
		}
		taken += n
		list = list[n:]
	}
	return taken, nil
}

func (x *exchange) setQueues(ctx context.Context, list []step) (taken int, err error) {
	for _, s := range list {
		if err := x.link.Endpoint.Queues.SetQueue(ctx, *s.queue); err != nil {
			return taken, fmt.Errorf("setting the queue of port %d: %w", s.queue.Port, err)
		}
		taken++
	}
	return taken, nil
}

// replace pushes a program. Some switches keep sessions and groups when the program
// changes. These are deleted first, because inserting them again would duplicate
// every copy.
func (x *exchange) replace(ctx context.Context, c *p4v1.ForwardingPipelineConfig, ran bool) error {
	if x.link.Endpoint.Limits.KeepsReplication && ran {
		have := &contents{objects: map[string]object{}}
		if err := x.liveReplication(ctx, have); err != nil {
			return err
		}
		var steps []step
		for _, o := range have.objects {
			steps = append(steps, newStep(x.index, report.Delete, o, o.value))
		}
		slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.Object, b.Object) })
		if _, err := x.apply(ctx, steps); err != nil {
			return err
		}
	}
	return x.push(ctx, c)
}
