package embedded_test

import (
	"testing"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// BenchmarkFatTree plans for and deploys to 80 switches that hold nothing.
func BenchmarkFatTree(b *testing.B) {
	t, err := fabric.FatTree{K: 8}.Make()
	if err != nil {
		b.Fatal(err)
	}
	pipelines(b, "hermes+rlb-star", t)
	for b.Loop() {
		target := embedded.New(embedded.Options{Memory: true, Still: true})
		deploy(b, planFor(b, "hermes+rlb-star", t), target, controller.DeployOptions{})
		target.Close()
	}
}

// BenchmarkBaked plans for and deploys to ten switches that hold 65,536 entries
// each, the same ones.
func BenchmarkBaked(b *testing.B) {
	t, err := fabric.LeafSpine{Leaves: 2, Spines: 8, Hosts: 2}.Make()
	if err != nil {
		b.Fatal(err)
	}
	pipelines(b, "qall-pkt@tna", t)
	for b.Loop() {
		target := embedded.New(embedded.Options{Memory: true, Still: true})
		deploy(b, planFor(b, "qall-pkt@tna", t), target, controller.DeployOptions{})
		target.Close()
	}
}
