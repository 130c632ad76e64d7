package embedded_test

import (
	"testing"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/controller/embedded"
	"github.com/p4lb/p4lb/fabric"
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
