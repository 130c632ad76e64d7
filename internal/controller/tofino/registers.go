package tofino

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// cells accesses the registers of a switch. Each pipe has its own cells. A read returns the value
// of one pipe: of the port's pipe if cells belong to ports, and otherwise of the first pipe with
// ports in use. If neither is known, it is the first value that is not 0. A write sets the cells of
// all pipes.
type cells struct{ s *session }

var (
	_ registers.Access = (*cells)(nil)
	_ registers.Meter  = (*cells)(nil)
)

const (
	// few is the largest number of cells that are read one by one from the chip. More
	// cells are read from the driver's copy, after a sync.
	few = 64
	// writeAtOnce is the number of cells in a request.
	writeAtOnce = 4096
)

// A register is a register of the program with its parts. The first part has the
// highest bits of the cell.
type register struct {
	chipTable
	parts  []*bfrt.Field
	widths []int
}

func (c *cells) find(ctx context.Context, name string, from, to int) (*register, error) {
	p, err := c.s.ours(ctx)
	if err != nil {
		return nil, err
	}
	t := tableNamed(p.schema, name)
	if t == nil || t.Type != "Register" {
		return nil, fmt.Errorf("the program has no register %s", name)
	}
	if from < 0 || from > to || int64(to) > t.Size {
		return nil, fmt.Errorf("register %s: cells %d to %d are outside 0..%d", name, from, to-1, t.Size-1)
	}
	r := &register{chipTable: chipTable{t}}
	for _, d := range t.Data {
		if d.Singleton != nil {
			r.parts, r.widths = append(r.parts, d.Singleton), append(r.widths, d.Singleton.Bits())
		}
	}
	return r, nil
}

// value combines the parts of a pipe's cell, or with anyPipe of the first pipe whose cell is not 0. A
// table that does not exist in all pipes has only the values of its own pipes.
func (r *register) value(d *wire.TableData, pipe int) (v uint64) {
	for at := 0; pipe == anyPipe && v == 0 && at*len(r.parts) < len(d.GetFields()); at++ {
		v = r.value(d, at)
	}
	if pipe == anyPipe {
		return v
	}
	for i, f := range r.parts {
		all := lists.Filter(d.GetFields(), func(x *wire.DataField) bool { return x.GetFieldId() == f.ID })
		var part uint64
		if len(all) > 0 {
			part = numberOf(all[min(pipe, len(all)-1)].GetStream())
		}
		v = v<<r.widths[i] | part
	}
	return v
}

// anyPipe stands for the pipe of a cell if it is unknown which pipes the switch uses.
const anyPipe = -1

// pipeOf returns the function that maps a cell of a register to the pipe to read.
func (c *cells) pipeOf(name string) func(cell int) int {
	at := c.s.place()
	first := 0
	if at.plan == nil {
		return func(int) int { return anyPipe }
	}
	pipes := map[int]bool{}
	for i, q := range at.plan.Queues {
		pipes[q.Port>>7] = true
		if i == 0 || q.Port>>7 < first {
			first = q.Port >> 7
		}
	}
	if r := at.plan.Pipeline.Manifest.Register(name); r != nil && r.Index == manifest.ByPort && len(pipes) > 1 {
		return func(cell int) int { return cell >> 7 }
	}
	return func(int) int { return first }
}

// Read appends the cells from ≤ i < to of a register to dst.
func (c *cells) Read(ctx context.Context, name string, from, to int, dst []uint64) ([]uint64, error) {
	r, err := c.find(ctx, name, from, to)
	if err != nil {
		return dst, c.fault("reading", name, err)
	}
	everywhere := c.s.place().everywhere()
	var ask []*wire.TableEntry
	if to-from > few {
		sync := &wire.Update{Type: wire.Update_INSERT, Entity: &wire.Entity{Entity: &wire.Entity_TableOperation{
			TableOperation: &wire.TableOperation{TableId: r.ID, TableOperationsType: "Sync"},
		}}}
		if err := c.s.set(ctx, everywhere, sync); err != nil {
			return dst, c.fault("reading", name, err)
		}
		ask = append(ask, &wire.TableEntry{TableId: r.ID, TableFlags: &wire.TableFlags{}})
	} else {
		for i := from; i < to; i++ {
			e, err := r.entry([]uint64{uint64(i)}, "")
			if err != nil {
				return dst, err
			}
			e.TableFlags = &wire.TableFlags{FromHw: true}
			ask = append(ask, e)
		}
	}
	pipe := c.pipeOf(name)
	values, seen := make([]uint64, to-from), 0
	err = c.s.read(ctx, everywhere, ask, func(e *wire.TableEntry) error {
		if i := int(keyNumber(e)); i >= from && i < to && e.GetTableId() == r.ID {
			values[i-from] = r.value(e.GetData(), pipe(i))
			seen++
		}
		return nil
	})
	if err == nil && seen != to-from {
		err = fmt.Errorf("%d of %d cells came", seen, to-from)
	}
	if err != nil {
		return dst, c.fault("reading", name, err)
	}
	return append(dst, values...), nil
}

// Write sets the cells from ≤ i < to in all pipes.
func (c *cells) Write(ctx context.Context, name string, from, to int, value uint64) error {
	r, err := c.find(ctx, name, from, to)
	if err != nil {
		return c.fault("writing", name, err)
	}
	var data []any
	shift := 0
	for i := len(r.parts) - 1; i >= 0; i-- {
		part := value >> shift
		if w := r.widths[i]; w < 64 {
			part &= 1<<w - 1
		}
		data = append([]any{r.parts[i].Name, part}, data...)
		shift += r.widths[i]
	}
	for from < to {
		end := min(to, from+writeAtOnce)
		var list []*wire.Update
		for ; from < end; from++ {
			e, err := r.entry([]uint64{uint64(from)}, "", data...)
			if err != nil {
				return err
			}
			list = append(list, update(wire.Update_INSERT, e))
		}
		if err := c.s.set(ctx, c.s.place().everywhere(), list...); err != nil {
			return c.fault("writing", name, err)
		}
	}
	return nil
}

// Clock always fails: BfRt has no clock.
func (c *cells) Clock(context.Context) (time.Duration, error) { return 0, registers.ErrNoClock }

// PortCounts returns the counters of $PORT_STAT.
func (c *cells) PortCounts(ctx context.Context) (list []bmv2.PortCounts, err error) {
	t, err := c.s.chipNamed(ctx, "$PORT_STAT")
	if err != nil {
		return nil, c.fault("reading", "$PORT_STAT", err)
	}
	ask := &wire.TableEntry{TableId: t.ID, TableFlags: &wire.TableFlags{FromHw: true}}
	err = c.s.read(ctx, c.s.place().everywhere(), []*wire.TableEntry{ask}, func(e *wire.TableEntry) error {
		r := t.row(e.GetData())
		list = append(list, bmv2.PortCounts{
			Port:      int(keyNumber(e)),
			InPackets: r.number("$FramesReceivedAll"), InBytes: r.number("$OctetsReceived"),
			OutPackets: r.number("$FramesTransmittedAll"), OutBytes: r.number("$OctetsTransmittedTotal"),
		})
		return nil
	})
	if err != nil {
		return nil, c.fault("reading", "$PORT_STAT", err)
	}
	return list, nil
}

// fault adds the name of the register to an error and wraps the matching error of the controller.
func (c *cells) fault(doing, name string, err error) error {
	s, ok := status.FromError(err)
	if !ok {
		return fmt.Errorf("%s register %s: %w", doing, name, err)
	}
	switch s.Code() {
	case codes.Unimplemented:
		return fmt.Errorf("%s register %s over BfRt: %w by this switch", doing, name, errors.ErrUnsupported)
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
		return fmt.Errorf("%s register %s: the switch %w: %s", doing, name, target.ErrUnreachable, s.Message())
	case codes.PermissionDenied:
		return fmt.Errorf("%s register %s: %w: %s", doing, name, target.ErrNotPrimary, s.Message())
	}
	return fmt.Errorf("%s register %s: %w: %s (%v)", doing, name, target.ErrRefused, s.Message(), s.Code())
}
