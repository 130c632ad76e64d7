package inspect

import "time"

// FlowsEvery returns the interval for reading flow tables while watching a number of
// switches. Flow tables are the largest registers, and their summary changes slowly.
func FlowsEvery(switches int) time.Duration {
	return max(time.Second, time.Duration(switches)*300*time.Millisecond)
}
