package server

import (
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// BenchmarkWrites is the rate of inserts and deletes into all four pipes, in
// batches of a thousand.
func BenchmarkWrites(b *testing.B) {
	r := newRig(b)
	const batch = 1000
	var add, remove []*wire.Update
	for i := range uint64(batch) {
		add = append(add, update(ins, r.entry("In.dmac", r.key("In.dmac", i), r.data("In.dmac", "send", "port", 1))))
		remove = append(remove, update(del, r.entry("In.dmac", r.key("In.dmac", i), nil)))
	}
	start := time.Now()
	for b.Loop() {
		r.must(r.write(everywhere, add...))
		r.must(r.write(everywhere, remove...))
	}
	b.ReportMetric(float64(2*batch*b.N)/time.Since(start).Seconds(), "updates/s")
}

// BenchmarkRegister reads a register of 65,536 pairs, from one pipe and from four.
func BenchmarkRegister(b *testing.B) {
	r := newRig(b)
	for name, target := range map[string]*wire.TargetDevice{"pipe": pipe(0), "chip": everywhere} {
		b.Run(name, func(b *testing.B) {
			e := r.entry("In.large", nil, nil)
			for b.Loop() {
				list, err := r.read(target, e)
				r.must(err)
				if len(list) != 1<<16 {
					b.Fatalf("%d cells", len(list))
				}
			}
		})
	}
}
