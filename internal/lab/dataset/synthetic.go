package dataset

import (
	"fmt"
	"math/rand/v2"
)

// Synthetic returns n observations that resemble those of a real port: the load
// determines occupancy, interval and traffic.
func Synthetic(n int) []byte {
	rng := rand.New(rand.NewPCG(1, 1))
	b := []byte("egress_traffic,occupancy,dequeue_interval\n")
	for range n {
		load := rng.Float64()
		occupancy := min(100, max(0, 100*load*load*load+8*rng.NormFloat64()))
		interval := min(9000, 1+rng.ExpFloat64()*(200+3000*(1-load)*(1-load)))
		traffic := max(0, 400_000*(0.9*load+0.05*rng.NormFloat64()))
		b = fmt.Appendf(b, "%.1f,%.3f,%.1f\n", traffic, occupancy, interval)
	}
	return b
}
