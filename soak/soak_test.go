package main

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestAttacks is the short form: each attack once, against a binary made for it.
// What ends is not timed: the limit is there for what does not.
func TestAttacks(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "p4lb")
	if text, err := exec.Command("go", "build", "-trimpath", "-o", binary, "../cmd/p4lb").CombinedOutput(); err != nil {
		t.Fatalf("building p4lb: %v\n%s", err, text)
	}
	for _, a := range attacks(1) {
		t.Run(a.name, func(t *testing.T) {
			if o := a.run(binary, limits{time: 5 * time.Minute, memory: 1024}); o.lost != "" {
				t.Error(o.lost)
			}
		})
	}
	for _, s := range sieges() {
		t.Run("switch: "+s.name, func(t *testing.T) {
			if o := s.lay(binary, limits{2 * time.Minute, 1024, time.Minute}, 500*time.Millisecond, 5000); o.lost != "" {
				t.Error(o.lost)
			}
		})
	}
}
