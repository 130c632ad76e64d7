package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Limits of allocations by package initialisation, as every verb pays for all
// linked packages. Packages of this module must initialise lazily, for example
// regular expressions with sync.OnceValue.
const (
	initBytes      = 12 << 17 // all packages, including tests and race detector
	initAllocs     = 6000     // likewise; gRPC's reflection needs 1000
	initAllocsHere = 160      // each package of this module
)

// TestStartUp checks the initialisation trace of the runtime.
func TestStartUp(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	type cost struct {
		name          string
		bytes, allocs int
	}
	var all []cost
	sum := cost{}
	for line := range strings.Lines(trace.String()) {
		var c cost
		var at, took float64
		if _, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &c.name, &at, &took, &c.bytes, &c.allocs); err != nil {
			continue // not a line of a package
		}
		all = append(all, c)
		sum.bytes += c.bytes
		sum.allocs += c.allocs
		if strings.HasPrefix(c.name, "github.com/p4lb/p4lb") && c.allocs > initAllocsHere {
			t.Errorf("importing %s allocates %d times, want at most %d", c.name, c.allocs, initAllocsHere)
		}
	}
	if len(all) < 50 {
		t.Fatalf("the runtime reports %d packages, want all:\n%s", len(all), &trace)
	}
	if sum.bytes > initBytes || sum.allocs > initAllocs {
		slices.SortFunc(all, func(a, b cost) int { return b.bytes - a.bytes })
		t.Errorf("importing everything takes %d bytes in %d allocations, want at most %d in %d; most take\n%v",
			sum.bytes, sum.allocs, initBytes, initAllocs, all[:10])
	}
}
