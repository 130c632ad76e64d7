package tofino

import (
	"context"
	"fmt"
	"time"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
)

// filters accesses the low-pass filters of the program.
type filters struct{ s *session }

var _ target.Filters = (*filters)(nil)

const filterType = "Lpf"

// List returns the configuration of the filters. If the cells of a filter differ, it returns a
// configuration that no plan has.
func (f *filters) List(ctx context.Context) (list []plan.Filter, err error) {
	p, err := f.s.ours(ctx)
	if err != nil {
		return nil, err
	}
	at := f.s.place()
	for _, s := range p.schema.Tables {
		if s.Type != filterType {
			continue
		}
		t, set, seen := chipTable{s}, plan.Filter{Name: inPipe(s.Name)}, false
		err := f.s.read(ctx, at.everywhere(), []*wire.TableEntry{{TableId: s.ID, TableFlags: &wire.TableFlags{}}}, func(e *wire.TableEntry) error {
			r := t.row(e.GetData())
			cell := plan.Filter{
				Name: set.Name, Sample: r.text("$LPF_SPEC_TYPE") != "RATE",
				Time: time.Duration(r["$LPF_SPEC_GAIN_TIME_CONSTANT_NS"].GetFloatVal()), Shift: int(r.number("$LPF_SPEC_OUT_SCALE_DOWN_FACTOR")),
			}
			if r["$LPF_SPEC_DECAY_TIME_CONSTANT_NS"].GetFloatVal() != r["$LPF_SPEC_GAIN_TIME_CONSTANT_NS"].GetFloatVal() || seen && cell != set {
				cell.Time = -1
			}
			set, seen = cell, true
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("filter %s: %w", set.Name, err)
		}
		list = append(list, at.exactly(set))
	}
	return list, nil
}

// exactly replaces the time constant of a filter by the plan's if both are equal in the 24 bits
// that BfRt transmits.
func (p *place) exactly(have plan.Filter) plan.Filter {
	if p.plan == nil {
		return have
	}
	for _, w := range p.plan.Filters {
		if w.Is(have) && time.Duration(float32(w.Time)) == have.Time {
			have.Time = w.Time
		}
	}
	return have
}

// SetFilter sets all cells of a filter.
func (f *filters) SetFilter(ctx context.Context, set plan.Filter) error {
	p, err := f.s.ours(ctx)
	if err != nil {
		return err
	}
	s := tableNamed(p.schema, set.Name)
	if s == nil || s.Type != filterType {
		return fmt.Errorf("the program has no filter %s", set.Name)
	}
	kind := "RATE"
	if set.Sample {
		kind = "SAMPLE"
	}
	var list []*wire.Update
	for i := range s.Size {
		e, err := chipTable{s}.entry([]uint64{uint64(i)}, "", "$LPF_SPEC_TYPE", kind,
			"$LPF_SPEC_GAIN_TIME_CONSTANT_NS", float32(set.Time), "$LPF_SPEC_DECAY_TIME_CONSTANT_NS", float32(set.Time),
			"$LPF_SPEC_OUT_SCALE_DOWN_FACTOR", uint64(set.Shift))
		if err != nil {
			return err
		}
		list = append(list, update(wire.Update_INSERT, e))
	}
	return f.s.set(ctx, f.s.place().everywhere(), list...)
}
