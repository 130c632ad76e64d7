package model_test

import (
	"fmt"
	"log"

	"github.com/p4lb/p4lb/internal/scheme/model"
)

// Packets of a flow keep the path of its flowlet until there is a gap.
func ExampleSwitch_Ingress() {
	draws := uint64(0)
	s, err := model.New(model.Config{
		Granularity: "flowlet", Signal: "none", Choice: "uniform", Guard: "none",
		Params: model.Params{Gap: 100}, Paths: 2, Edge: true,
		Random: func(lo, hi uint64) uint64 { draws++; return lo + draws%2*(hi-lo) },
	})
	if err != nil {
		log.Fatal(err)
	}
	s.SetGroup(1, model.Group{Ports: []int{5, 6}})
	for _, at := range []model.Time{1000, 1050, 2000} {
		d := s.Ingress(&model.Packet{Group: 1, Flow: model.Flow{Protocol: 6}}, at)
		fmt.Println(at, d.Port)
	}
	// Output:
	// 1000 6
	// 1050 6
	// 2000 5
}
