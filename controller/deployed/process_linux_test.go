package deployed

import "testing"

// TestStartIn: a process that is about to end has its number and its time still, but
// maybe no socket any more.
func TestStartIn(t *testing.T) {
	for stat, want := range map[string]string{
		"7 (p4lb) S 1 7 7 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 9 0 614720 0": "614720 p4lb",
		"7 (a) b) R 1 7 7 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 9 0 614720 0": "614720 a) b",
		"7 (p4lb) Z 1 7 7 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 9 0 614720 0": "",
		"7 (p4lb) R 1 7 7 0 -1 4194564 0 0 0 0 0 0 0 0 20 0 9 0 614720 0": "",
		"7 (p4lb) S 1": "",
	} {
		if got := startIn([]byte(stat)); got != want {
			t.Errorf("%s: %q, want %q", stat, got, want)
		}
	}
}
