package advice_test

import (
	"slices"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/scheme/advice"
)

// TestGradesOfCompositions: compositions with grades get the capacity of the network's queues, as
// ar does.
func TestGradesOfCompositions(t *testing.T) {
	for _, scheme := range []string{"ar", "packet-occupancy-least", "packet-drain-least"} {
		list, err := advice.For(advice.Network{Buffer: 17, MTU: 4160, Rate: 100e9, RTT: 5 * time.Microsecond}, scheme)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(list, func(p advice.Parameter) bool { return p.Name == "qcap" && p.Value == "17 packets" }) {
			t.Errorf("%s: %v: want qcap 17 packets", scheme, list)
		}
	}
}
