package server

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/server/gate"
)

var filters = newTestProgram("filters", bmv2.TNA)

// filtered sends a value to a filter from a port of pipe 0 or 1 and returns the filter's
// output.
func (r *rig) filtered(kind, pipe, index, value uint64) uint64 {
	r.t.Helper()
	r.send(uint32(2+128*pipe), frame(value, index, kind))
	out := r.leaves(2)
	return uint64(out[8])<<24 | uint64(out[9])<<16 | uint64(out[10])<<8 | uint64(out[11])
}

// floats appends fields of a specification to data.
func (r *rig) floats(table string, d *wire.TableData, v float32, names ...string) *wire.TableData {
	for _, name := range names {
		d.Fields = append(d.Fields, r.table(table).field(name).float(v))
	}
	return d
}

// Each cell of an array of filters has its own specification, in the pipes of the target. A
// filter without one returns 0. A field that was never set is 0.
func TestArrayOfFilters(t *testing.T) {
	r := newProgramRig(t, filters, gate.Limits{})
	const table = "In.mean"
	wants := func(what string, pipe, index, value, want uint64) {
		t.Helper()
		if got := r.filtered(1, pipe, index, value); got != want {
			t.Errorf("%s: filter %d of pipe %d makes %d of %d, want %d", what, index, pipe, got, value, want)
		}
	}
	wants("unset", 0, 3, 1000, 0)
	if list := r.list(table); len(list) != 16 {
		t.Errorf("%d filters, want all 16 of the array", len(list))
	}
	r.set(mod, table, r.key(table, 3), r.floats(table, r.data(table, "", "$LPF_SPEC_TYPE", "SAMPLE", "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR", 2), 1, "$LPF_SPEC_GAIN_TIME_CONSTANT_NS", "$LPF_SPEC_DECAY_TIME_CONSTANT_NS"))
	r.must(r.write(pipe(1), update(mod, r.entry(table, r.key(table, 4), r.floats(table, r.data(table, "", "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR", 3), 1, "$LPF_SPEC_GAIN_TIME_CONSTANT_NS", "$LPF_SPEC_DECAY_TIME_CONSTANT_NS")))))
	wants("set", 0, 3, 1000, 250)
	wants("set", 1, 3, 800, 200)
	wants("its neighbour", 0, 2, 1000, 0)
	wants("set in the other pipe", 0, 4, 1000, 0)
	wants("set in this pipe", 1, 4, 1000, 125)
	r.set(mod, table, r.key(table, 5), r.data(table, "", "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR", 1))
	d := r.get(everywhere, table, r.key(table, 5))
	if kind := r.field(table, d, "$LPF_SPEC_TYPE").GetStrVal(); kind != "SAMPLE" {
		t.Errorf("the type is %q, want SAMPLE", kind)
	}
	for _, name := range []string{"$LPF_SPEC_GAIN_TIME_CONSTANT_NS", "$LPF_SPEC_DECAY_TIME_CONSTANT_NS"} {
		if v := r.field(table, d, name).GetFloatVal(); v != 0 {
			t.Errorf("%s is %g, want 0", name, v)
		}
	}
	r.refused("filter 16", update(mod, r.entry(table, r.key(table, 16), r.data(table, "", "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR", 1))), codes.InvalidArgument, "")
	r.undone(update(mod, r.entry(table, r.key(table, 3), r.data(table, "", "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR", 0))))
	wants("after an undone change", 0, 3, 1000, 250)
	r.set(del, table, r.key(table, 3), nil)
	wants("reset", 0, 3, 1000, 0)
	wants("another one, after a reset", 1, 4, 800, 100)
}

// Each cell of an array of early detection has its own thresholds. Without thresholds, and
// without a maximum probability, nothing is dropped.
func TestArrayOfEarlyDetection(t *testing.T) {
	r := newProgramRig(t, filters, gate.Limits{})
	const table = "In.early"
	drops := func(what string, index, value uint64, want bool) {
		t.Helper()
		if got := r.filtered(2, 0, index, value)&0xff == 1; got != want {
			t.Errorf("%s: cell %d drops %d: %v, want %v", what, index, value, got, want)
		}
	}
	set := func(index uint64, least, most int) {
		t.Helper()
		r.set(mod, table, r.key(table, index), r.floats(table, r.data(table, "", "$WRED_SPEC_MIN_THRESH_CELLS", least, "$WRED_SPEC_MAX_THRESH_CELLS", most), 1, "$WRED_SPEC_TIME_CONSTANT_NS", "$WRED_SPEC_MAX_PROBABILITY"))
	}
	drops("unset", 3, 1<<30, false)
	if list := r.list(table); len(list) != 16 {
		t.Errorf("%d cells, want all 16 of the array", len(list))
	}
	set(3, 100, 200)
	set(4, 1000, 2000)
	drops("below", 3, 99, false)
	drops("above", 3, 201, true)
	drops("below the thresholds of another", 4, 201, false)
	drops("above", 4, 2001, true)
	r.set(mod, table, r.key(table, 5), r.data(table, "", "$WRED_SPEC_MIN_THRESH_CELLS", 100))
	d := r.get(everywhere, table, r.key(table, 5))
	if got := r.values(table, d, "$WRED_SPEC_MAX_THRESH_CELLS"); !slices.Equal(got, []uint64{0xff000000}) {
		t.Errorf("the upper threshold is %#x, want 0xff000000", got)
	}
	for _, name := range []string{"$WRED_SPEC_TIME_CONSTANT_NS", "$WRED_SPEC_MAX_PROBABILITY"} {
		if v := r.field(table, d, name).GetFloatVal(); v != 0 {
			t.Errorf("%s is %g, want 0", name, v)
		}
	}
	r.set(del, table, r.key(table, 3), nil)
	drops("reset", 3, 1<<30, false)
	drops("another one, after a reset", 4, 2001, true)
}
