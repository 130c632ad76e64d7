package inspect

import "time"

// FlowsEvery is how often a watch of so many switches reads the tables of flows,
// which are most of what there is to read and change slowly as a whole.
func FlowsEvery(switches int) time.Duration {
	return max(time.Second, time.Duration(switches)*300*time.Millisecond)
}
