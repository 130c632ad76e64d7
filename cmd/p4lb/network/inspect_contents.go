package network

import (
	"context"
	"fmt"
	"strconv"

	"github.com/p4lb/p4lb/cmd/p4lb/view"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/controller/inspect"
)

// What readings of tables and counters are about begins with these words.
const (
	aboutTable   = "table "
	aboutCounter = "counter "
)

// contents are the ways to the tables and counters of switches, by name.
type contents map[string]holder

type holder interface {
	controller.Peek
	controller.Holder
}

// openContents finds them. They are by P4Runtime, which every switch speaks that
// tells of its program.
func (s *site) openContents(ctx context.Context) (contents, error) {
	c := contents{}
	for _, sw := range s.switches {
		p, err := controller.NewPeek(ctx, sw.endpoint, view.ReachTimeout)
		if err != nil {
			c.close()
			return nil, vanished(fmt.Errorf("%s: %w", sw.node.Name, err))
		}
		h, ok := p.(holder)
		if !ok {
			p.Close()
			c.close()
			return nil, fmt.Errorf("%s: tables and counters are read by P4Runtime, which it does not speak", sw.node.Name)
		}
		c[sw.node.Name] = h
	}
	return c, nil
}

func (c contents) close() {
	for _, p := range c {
		p.Close()
	}
}

// add adds what the switches of a round hold to their snapshots.
func (c contents) add(ctx context.Context, r *view.Round) {
	for i := range r.Switches {
		s := &r.Switches[i]
		if p := c[s.Switch]; p != nil && s.Snapshot != nil {
			if err := addContents(ctx, p, s.Snapshot); err != nil {
				s.Snapshot, s.Err = nil, err
			}
		}
	}
}

func addContents(ctx context.Context, p controller.Holder, s *inspect.Snapshot) error {
	add := func(index, quantity string, n int64, text string) {
		s.Readings = append(s.Readings, inspect.Reading{Index: index, Quantity: quantity, Raw: uint64(n), Value: float64(n), Text: text})
	}
	count := func(index string, c controller.Count) {
		add(index, "packets", c.Packets, strconv.FormatInt(c.Packets, 10))
		add(index, "bytes", c.Bytes, strconv.FormatInt(c.Bytes, 10))
	}
	tables, err := p.Tables(ctx)
	if err != nil {
		return err
	}
	for _, t := range tables {
		index := aboutTable + t.Table
		add(index, "entries", int64(t.Entries), fmt.Sprintf("%d of %d", t.Entries, t.Size))
		if t.Count != nil {
			count(index, *t.Count)
		}
	}
	counters, err := p.Counters(ctx)
	if err != nil {
		return err
	}
	for _, cell := range counters {
		count(fmt.Sprintf("%s%s %d", aboutCounter, cell.Counter, cell.Cell), cell.Count)
	}
	return nil
}
