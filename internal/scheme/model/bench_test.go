package model_test

import (
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/scheme/model"
)

// BenchmarkHop measures the ingress and egress of a native switch for one packet.
func BenchmarkHop(b *testing.B) {
	for _, name := range []string{"ecmp", "letflow", "presto", "drill", "qall-pkt", "qall-poly3", "qdaps", "conga", "hermes", "drill+rlb"} {
		b.Run(name, func(b *testing.B) {
			row, err := codegen.Parse(name)
			if err != nil {
				b.Fatal(err)
			}
			prog, err := codegen.Generate(row, codegen.Params{})
			if err != nil {
				b.Fatal(err)
			}
			x := uint64(1)
			m := newModel(b, prog.Manifest, codegen.Params{}, func(lo, hi uint64) uint64 {
				x = x*6364136223846793005 + 1442695040888963407
				return lo + x>>33%(hi-lo+1)
			})
			g := groupOf(4)
			for _, port := range g.Ports {
				m.SetPort(port, model.Port{Capacity: 64, Service: 10 << 16})
			}
			m.SetGroup(0, g)
			b.ReportAllocs()
			now := model.Time(0)
			for i := range b.N {
				p := tcp(0, uint16(i%64))
				d := m.Ingress(&p, now)
				if r, due := m.Egress(model.Departure{Port: d.Port, Met: i % 7, Left: i % 5, Len: p.Len, Packet: &p}, now); due {
					m.Learn(r, now)
				}
				now++
			}
		})
	}
}
