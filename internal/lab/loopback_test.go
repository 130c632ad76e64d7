package lab

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/own"
)

const detours = `topology: {leaf-spine: {leaves: 2, spines: 1, hosts: 2, rate: 10G, host-rate: 10G, delay: 1us}}
schemes: [./detour]
transport: {kind: dcqcn, mss: 1000, rdma: {bth: true}}
switches: {pfc: true}
traffic: [{pattern: list, file: flows.txt}]
seeds: 1
duration: 1ms
warmup: 0
drain: 20ms
`

// detourFlows have the source ports 10001 to 10003. The first is between leaves, the second
// is not, and the manifest does not know the port of the third.
const detourFlows = "h1 h3 10000 0.0001\nh1 h2 10000 0.0002\nh2 h4 10000 0.0003\n"

// A loopLook counts the packets that recirculate.
type loopLook struct {
	view  *View
	count int64
}

func (l *loopLook) Begin(v *View) error {
	l.view = v
	return nil
}

func (l *loopLook) End() error {
	for _, sw := range l.view.Net.Switches() {
		l.count += sw.Counters().Recirculated
	}
	return nil
}

// runDetour runs the flows with a changed manifest. It returns the number of packets that
// recirculated and the number of finished flows.
func runDetour(t *testing.T, from, to string) (recirculated int64, finished int) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/detour", 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"detour.p4", "detour.manifest.yaml"} {
		text, err := os.ReadFile("testdata/detour/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/detour/"+name, []byte(strings.ReplaceAll(string(text), from, to)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	read := func(string) ([]byte, error) { return []byte(detourFlows), nil }
	x, err := spec.Load("experiment", []byte(detours), read, &scheme.Library{Sources: []scheme.Source{own.Source(dir)}})
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := (&Runner{Read: read}).Jobs(x)
	if err != nil {
		t.Fatal(err)
	}
	look := &loopLook{}
	var table bytes.Buffer
	if _, err := jobs[0].run(context.Background(), &table, nil, look); err != nil {
		t.Fatal(err)
	}
	return look.count, strings.Count(table.String(), ",true,true,")
}

// TestLoopbackPorts runs a program of Tofino 2 with a loopback port that its manifest
// chooses, also in a register. The ten packets of the known flow pass it in three switches.
func TestLoopbackPorts(t *testing.T) {
	for _, port := range []string{"16", "9"} { // port 9 would be a front port
		if n, finished := runDetour(t, ": 16", ": "+port); n != 30 || finished != 3 {
			t.Errorf("port %s: %d packets recirculated and %d flows finished, want 30 and 3", port, n, finished)
		}
	}
	if n, finished := runDetour(t, "value: 16", "value: 6"); n != 30 || finished != 3 {
		t.Errorf("the recirculation port of the chip: %d packets recirculated and %d flows finished, want 30 and 3", n, finished)
	}
	if n, finished := runDetour(t, "kind: recirculation", "kind: report"); n != 0 || finished != 2 {
		t.Errorf("without loopback %d packets recirculated and %d flows finished, want 0 and 2", n, finished)
	}
}
