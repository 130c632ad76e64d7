package main

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/testbuild"
)

// built is the folder of the binary, if a test has built it.
var built string

// buildBinary builds the attacked binary.
var buildBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "p4lb-soak-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // for unprivileged users
		return "", err
	}
	built = dir
	return testbuild.P4lb("../..", dir)
})

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == besieger {
		main()
		os.Exit(0)
	}
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

// TestAttacks is the short form: each attack runs once. The time limit only
// catches processes that hang.
func TestAttacks(t *testing.T) {
	if testing.Short() {
		t.Skip("attacks separate processes, which the race detector does not see")
	}
	binary, err := buildBinary()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range slices.Concat(attacks(1), liars(), stores(800)) {
		t.Run(a.name, func(t *testing.T) {
			if o := a.run(binary, limits{time: 5 * time.Minute, memory: 1024}); o.lost != "" {
				t.Error(o.lost)
			}
		})
	}
	for _, s := range allSieges() {
		if s.near || s.convoy && s.name != "readers that receive everything, endlessly" {
			continue // these need time measurements
		}
		t.Run(s.title(), func(t *testing.T) {
			// The limits of memory and time are low, but unbounded growth is
			// still detected.
			if o := s.lay(binary, limits{time: 2 * time.Minute, memory: cmp.Or(s.memory, 200), write: time.Minute}, 100*time.Millisecond, 2000); o.lost != "" {
				t.Error(o.lost)
			}
		})
	}
}

// TestDying attacks servers that end immediately because an address is in use.
// That must be reported without waiting.
func TestDying(t *testing.T) {
	if testing.Short() {
		t.Skip("starts separate processes, which the race detector does not see")
	}
	binary, err := buildBinary()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, test := range []struct{ title, verb, option string }{
		{"switch: streams", "switch", "--thrift"}, // the second one: by then P4Runtime is served
		{"switch --bfrt: silent streams", "switch", "--bfrt"},
		{"page: endless headers", "inspect", "--listen"},
	} {
		t.Run(test.title, func(t *testing.T) {
			script := filepath.Join(t.TempDir(), "p4lb")
			text := fmt.Sprintf("#!/bin/sh\nif [ $1 = %s ]; then set -- \"$@\" %s %v; fi\nexec %s \"$@\"\n", test.verb, test.option, l.Addr(), binary)
			if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
			all := allSieges()
			s := all[slices.IndexFunc(all, func(s siege) bool { return s.title() == test.title })]
			o := s.lay(script, limits{time: time.Hour, memory: 200, write: time.Minute}, 100*time.Millisecond, 10)
			if !strings.HasPrefix(o.lost, "it crashed: ") || !strings.Contains(o.lost, "already in use") {
				t.Errorf("%q, want a crash because the address is in use", o.lost)
			}
		})
	}
}

// TestInterrupts is the short form: each command is interrupted in the middle
// of its work. How soon it ends depends on the machine.
func TestInterrupts(t *testing.T) {
	if testing.Short() {
		t.Skip("interrupts separate processes, which the race detector does not see")
	}
	binary, err := buildBinary()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interruptions(1) {
		t.Run(i.name, func(t *testing.T) {
			if o := i.run(binary, limits{time: 5 * time.Minute, end: 5 * time.Minute}, []float64{0.5}); o.lost != "" {
				t.Error(o.lost)
			}
		})
	}
}

// TestKills kills deployments at random moments: three on each target, or
// P4LB_KILLS, with seeds from P4LB_SEED.
func TestKills(t *testing.T) {
	if testing.Short() {
		t.Skip("kills separate processes, which the race detector does not see")
	}
	number := func(name string, preset int) int {
		n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(preset)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	n, seed := number("P4LB_KILLS", 3), number("P4LB_SEED", 1)
	binary, err := buildBinary()
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range killTargets {
		t.Run(target, func(t *testing.T) {
			if missing := missingFor(target); missing != "" {
				t.Skip(missing)
			}
			if err := kill(binary, target, n, uint64(seed), time.Minute); err != nil {
				t.Error(err)
			}
		})
	}
}

// missingFor returns the requirement of a target that this machine lacks.
func missingFor(target string) string {
	target = strings.TrimSuffix(target, detached)
	namespace := exec.Command("unshare", "--user", "--map-root-user", "--net", "ip", "link")
	switch target {
	case onServers:
		return ""
	case onBMv2:
		if _, err := exec.LookPath("simple_switch_grpc"); err != nil || os.Geteuid() != 0 {
			return "needs root, and simple_switch_grpc on the path"
		}
	case onRootless:
		if os.Geteuid() != 0 {
			return "is what embedded is already: this is not root"
		}
		asNobody(namespace)
	}
	if _, err := exec.LookPath("ping"); err != nil {
		return "needs ping"
	}
	if target != onBMv2 && namespace.Run() != nil {
		return "needs namespaces for users, and ip"
	}
	return ""
}
