package cluster

import "testing"

// TestIndexes counts the completed tasks of a job as Kubernetes lists them.
func TestIndexes(t *testing.T) {
	for list, want := range map[string]int{"": 0, "7": 1, "1,3-5": 4, "0-9": 10, "0,2,4-5,9": 5} {
		if got := indexes(list); got != want {
			t.Errorf("%q: %d tasks, want %d", list, got, want)
		}
	}
}
