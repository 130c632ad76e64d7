package bench

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestPeerBuild(t *testing.T) {
	for text, want := range map[string]string{
		"\x7fELF....Processing packet received on port {}": "built with logging macros",
		"\x7fELF....":       "no logging macros",
		"#!/bin/sh\nexec x": "unknown: it is a script",
	} {
		file := filepath.Join(t.TempDir(), "simple_switch")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := peerBuild(file); !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if got := peerBuild(filepath.Join(t.TempDir(), "none")); !strings.Contains(got, "unknown") {
		t.Error(got)
	}
	if got := ownBuild(); !strings.Contains(got, runtime.Version()) {
		t.Error(got)
	}
}

// TestPeak: the peak of a process is its own, not the peak of the process that starts
// it, which the kernel reports as the child's resource usage.
func TestPeak(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	ballast := make([]byte, 200<<20)
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	peak, _, err := peakOf(context.Background(), "", "/bin/sleep", "0.1")
	if err != nil {
		t.Fatal(err)
	}
	if peak == 0 || peak > 20<<10 {
		t.Errorf("sleep has a peak of %d KiB", peak)
	}
	runtime.KeepAlive(ballast)
}
