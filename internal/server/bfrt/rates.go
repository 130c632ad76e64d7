package server

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/dataplane"
)

// newMeterSpec finds the fields of a meter. It returns nil if one of them is
// missing.
func newMeterSpec(t *table) *meterSpec {
	m := &meterSpec{cir: t.field("$METER_SPEC_CIR_KBPS"), pir: t.field("$METER_SPEC_PIR_KBPS"), cbs: t.field("$METER_SPEC_CBS_KBITS"), pbs: t.field("$METER_SPEC_PBS_KBITS")}
	if m.cir == nil {
		m = &meterSpec{cir: t.field("$METER_SPEC_CIR_PPS"), pir: t.field("$METER_SPEC_PIR_PPS"), cbs: t.field("$METER_SPEC_CBS_PKTS"), pbs: t.field("$METER_SPEC_PBS_PKTS"), packets: true}
	}
	m.fields = specFields{m.cir, m.pir, m.cbs, m.pbs}
	if m.fields.has(nil) {
		return nil
	}
	if !m.packets {
		// The maximum of the chip, which reads return for an unset meter.
		most := ifElse[uint64](t.s.second(), 4087999890, 5195848221)
		m.cir.preset, m.pir.preset = m.cir.number(most), m.pir.number(most)
		m.cbs.preset, m.pbs.preset = m.cbs.number(mostBurst), m.pbs.number(mostBurst)
	}
	return m
}

// mostBurst is the largest burst of a meter, in kilobits.
const mostBurst = 4380866642

func (l specFields) has(f *datum) bool { return slices.Contains(l, f) }

// given reports whether a specification has one of the fields.
func (l specFields) given(s spec) bool {
	return slices.ContainsFunc(l, func(f *datum) bool { return s[f.id] != nil })
}

// unlimited is a rate that is never exceeded.
const unlimited = 1 << 40

// rates converts a specification to the data plane's rates per microsecond, the
// smaller one first.
func (m *meterSpec) rates(s spec) ([]dataplane.MeterRate, error) {
	get := func(d *datum) float64 {
		v := cmp.Or(s[d.id], d.preset)
		n := uintOf(v.GetStream())
		if v == nil || n == math.MaxUint64 {
			return unlimited
		}
		return float64(n)
	}
	rate, burst := 1e-6, 1.0
	if !m.packets {
		rate, burst = 1e3/8/1e6, 1e3/8
	}
	c := dataplane.MeterRate{PerMicrosecond: get(m.cir) * rate, Burst: uint64(math.Min(get(m.cbs)*burst, 1<<62))}
	p := dataplane.MeterRate{PerMicrosecond: get(m.pir) * rate, Burst: uint64(math.Min(get(m.pbs)*burst, 1<<62))}
	if p.PerMicrosecond < c.PerMicrosecond {
		return nil, invalidf("the peak rate is below the committed rate")
	}
	return []dataplane.MeterRate{c, p}, nil
}

func (m *meterSpec) apply(sw *dataplane.Switch, index int, s spec) error {
	rates, err := m.rates(s)
	if err != nil {
		return err
	}
	return sw.Meters().Set(m.name, index, rates)
}

// newFilterSpec finds the fields of a low-pass filter or of early detection (WRED).
// It returns nil if one of them is missing.
func newFilterSpec(t *table, prefix string, wred bool) *filterSpec {
	f := &filterSpec{wred: wred}
	if wred {
		f.constant, f.least, f.most, f.chances = t.field(prefix+"TIME_CONSTANT_NS"), t.field(prefix+"MIN_THRESH_CELLS"), t.field(prefix+"MAX_THRESH_CELLS"), t.field(prefix+"MAX_PROBABILITY")
		f.fields = specFields{f.constant, f.least, f.most, f.chances}
		if f.fields.has(nil) {
			return nil
		}
		f.constant.preset, f.chances.preset = f.constant.float(0), f.chances.float(0)
		f.least.preset, f.most.preset = f.least.number(0xff000000), f.most.number(0xff000000)
		return f
	}
	f.kind, f.gain, f.decay, f.scale = t.field(prefix+"TYPE"), t.field(prefix+"GAIN_TIME_CONSTANT_NS"), t.field(prefix+"DECAY_TIME_CONSTANT_NS"), t.field(prefix+"OUT_SCALE_DOWN_FACTOR")
	f.fields = specFields{f.kind, f.gain, f.decay, f.scale}
	if f.fields.has(nil) {
		return nil
	}
	f.kind.preset, f.scale.preset = f.kind.text("SAMPLE"), f.scale.number(0)
	f.gain.preset, f.decay.preset = f.gain.float(0), f.decay.float(0)
	return f
}

func (f *filterSpec) apply(sw *dataplane.Switch, index int, s spec) error {
	get := func(d *datum) *wire.DataField { return cmp.Or(s[d.id], d.preset) }
	ns := func(d *datum) time.Duration { return time.Duration(get(d).GetFloatVal()) }
	if f.wred {
		return sw.Filters().SetWred(f.name, index, dataplane.WredSpec{
			Time: ns(f.constant), Min: uintOf(get(f.least).GetStream()), Max: uintOf(get(f.most).GetStream()),
			Probability: float64(get(f.chances).GetFloatVal()),
		})
	}
	return sw.Filters().Set(f.name, index, dataplane.FilterSpec{
		Rate: get(f.kind).GetStrVal() == "RATE", Gain: ns(f.gain), Decay: ns(f.decay), Shift: int(uintOf(get(f.scale).GetStream())),
	})
}

// reset removes the specification of a filter.
func (f *filterSpec) reset(sw *dataplane.Switch, index int) error {
	if f.wred {
		return sw.Filters().ResetWred(f.name, index)
	}
	return sw.Filters().Reset(f.name, index)
}

// ratesTable returns a table of an array of meters, filters or WREDs. The rows keep
// the clients' values, and the data plane of each pipe applies them.
func ratesTable(t *table, apply func(sw *dataplane.Switch, index int, s spec) error, reset func(sw *dataplane.Switch, index int) error) *recordTable {
	rt := newRecords(t)
	rt.constant = true
	rt.apply = func(r *request, before, after *record) error {
		pipes, err := r.pipesOf(t.program)
		if err != nil {
			return err
		}
		row := cmp.Or(after, before)
		index, err := indexOf(t.keys, row.key, int(t.schema.Size))
		if err != nil {
			return err
		}
		for _, pipe := range pipes {
			if after == nil {
				err = reset(t.sw(pipe), index)
			} else {
				err = apply(t.sw(pipe), index, after.fields)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return rt
}
