package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/controller/deployed"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/controller/pipeline"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/lab/dataset"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme"
)

// A deployment is a fabric of embedded switches with a state file, as verbs
// expect it.
type deployment struct {
	t      *testing.T
	plan   *plan.Plan
	target *embedded.Target
	state  string
}

// bringUp deploys a scheme on two leaves and two spines.
func bringUp(t *testing.T, name string) *deployment {
	t.Helper()
	top, err := fabric.LeafSpine{Parallel: 2, Links: fabric.Links{HostRate: 100 * fabric.Mbps, Rate: 400 * fabric.Mbps, Queue: 64}}.Make()
	if err != nil {
		t.Fatal(err)
	}
	s, err := new(scheme.Library).Find(name)
	if err != nil {
		t.Fatal(err)
	}
	pipelines := map[fabric.Role]*plan.Pipeline{}
	for _, role := range []fabric.Role{fabric.Leaf, fabric.Spine} {
		if pipelines[role], err = pipeline.Of(s, codegen.Params{Role: string(role), Ports: 4, MaxPort: 64}); err != nil {
			t.Fatal(err)
		}
	}
	d := &deployment{t: t, target: embedded.New(embedded.Options{AnyPort: true}), state: filepath.Join(t.TempDir(), "deployed.json")}
	t.Cleanup(func() { d.target.Close() })
	if d.plan, err = plan.New(top, pipelines, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := controller.Deploy(t.Context(), d.plan, d.target, controller.DeployOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := deployed.New(d.plan, d.target).Write(d.state); err != nil {
		t.Fatal(err)
	}
	return d
}

// write sets a cell of a register in a switch.
func (d *deployment) write(sw, register string, cell int, value uint64) {
	d.t.Helper()
	if err := d.target.Device(sw).WriteRegister(register, cell, cell+1, value); err != nil {
		d.t.Fatal(err)
	}
}

// run runs a verb on the deployment.
func (d *deployment) run(ctx context.Context, stdin string, args ...string) (code int, out, errs string) {
	d.t.Helper()
	var stdout, stderr syncBuffer
	code = run(ctx, append(args, "--state", d.state), strings.NewReader(stdin), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// ok runs a verb, requires success, and returns its output.
func (d *deployment) ok(args ...string) string {
	d.t.Helper()
	code, out, errs := d.run(d.t.Context(), "", args...)
	if code != cli.ExitDone {
		d.t.Fatalf("p4lb %s: exit code %d: %s", strings.Join(args, " "), code, errs)
	}
	return out
}

// A syncBuffer permits reads during writes.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestInspectByMeaning checks that inspect shows QALL's registers with their
// meanings.
func TestInspectByMeaning(t *testing.T) {
	d := bringUp(t, "qall-pkt")
	port := d.plan.Switch("l1").Routes.Groups[0].Hops[0].Port
	d.write("l1", "q_L", port, 107)
	d.write("l1", "q_T", port, 1300)
	d.write("l1", "q_V", port, 2)
	d.write("l1", "q_C", port, 2550000)
	out := d.ok("inspect", "l1")
	for _, rx := range []string{
		`(?m)^SWITCH +PORT +PEER +OCCUPANCY +DEQUEUE INTERVAL +TREND +CONGESTION$`,
		`(?m)^l1 +3 +s1 +0\.42 +1\.3 ms +rising +0\.50$`,
		`(?m)^SWITCH +PATH +PORT +PEER +WEIGHT +SHARE$`,
		`(?m)^l1 +group 1 path 1 +3 +s1 +2550000 +14\.3 %$`,
		`(?m)^l1 +group 1 path 2 +4 +s1 +5100000 +28\.6 %$`,
	} {
		if !regexp.MustCompile(rx).MatchString(out) {
			t.Errorf("nothing like %s in\n%s", rx, out)
		}
	}
	if strings.Contains(out, "s1 ") && strings.Contains(out, "\ns1") {
		t.Errorf("a switch that was not asked for:\n%s", out)
	}
}

// TestInspectForms checks that all output formats contain the same readings.
func TestInspectForms(t *testing.T) {
	d := bringUp(t, "dhlb")
	d.write("l1", "deg", 2<<4+1, 3)
	var list []inspect.Snapshot
	if err := json.Unmarshal([]byte(d.ok("inspect", "l1", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	find := func(register string, cell int) inspect.Reading {
		i := slices.IndexFunc(list[0].Readings, func(r inspect.Reading) bool { return r.Register == register && r.Cell == cell })
		if i < 0 {
			t.Fatalf("no reading of %s[%d]", register, cell)
		}
		return list[0].Readings[i]
	}
	if r := find("deg", 2<<4+1); r.Value != 3 || r.Index != "leaf 2 path 2" || r.Peer != "s1" || r.Quantity != "degree" {
		t.Errorf("the degree is read as %+v", r)
	}
	if len(list) != 1 || list[0].Switch != "l1" || list[0].Clock <= 0 || list[0].Guessed {
		t.Errorf("snapshots of %d switches, clock %v", len(list), list[0].Clock)
	}
	rows, err := csv.NewReader(strings.NewReader(d.ok("inspect", "l1", "-o", "csv"))).ReadAll()
	if err != nil || len(rows) != 1+len(list[0].Readings) {
		t.Errorf("%d lines of CSV (error %v), want %d", len(rows), err, 1+len(list[0].Readings))
	}
	if text := d.ok("inspect", "l1", "-o", "yaml"); !strings.Contains(text, "quantity: degree") || !strings.Contains(text, "index: leaf 2 path 2") {
		t.Errorf("YAML without the degree:\n%.300s", text)
	}
	one := d.ok("inspect", "l1", "--register", "deg", "-o", "csv")
	if !strings.Contains(one, "deg,degree,33,leaf 2 path 2") || strings.Contains(one, "deg_ts") {
		t.Errorf("--register deg:\n%s", one)
	}
}

// TestInspectRecordReplay records readings, and replays the last round.
func TestInspectRecordReplay(t *testing.T) {
	d := bringUp(t, "qall-pkt")
	d.write("l1", "q_L", 3, 51)
	for _, form := range inspect.RecordFormats {
		file := filepath.Join(t.TempDir(), "run."+form)
		d.ok("inspect", "l1", "l2", "--record", file, "--every", "1ms", "--for", "500ms", "-q")
		var out, errs strings.Builder
		if code := run(t.Context(), []string{"inspect", "--replay", file, "l1"}, nil, &out, &errs); code != cli.ExitDone {
			t.Fatalf("exit code %d: %s", code, errs.String())
		}
		if live := d.ok("inspect", "l1"); out.String() != live {
			t.Errorf("%s: replayed\n%s\nlive\n%s", form, out.String(), live)
		}
	}
}

// TestInspectListen reads the metrics, and ends inspect by an interrupt.
func TestInspectListen(t *testing.T) {
	d := bringUp(t, "qall-pkt")
	d.write("l1", "q_L", 3, 51)
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr syncBuffer
	done := make(chan int)
	go func() {
		done <- run(ctx, []string{"inspect", "--listen", "127.0.0.1:0", "--every", "5ms", "--state", d.state}, strings.NewReader(""), &stdout, &stderr)
	}()
	address := regexp.MustCompile(`http://[^/ ]+/metrics`)
	var metrics string
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline) && !strings.Contains(metrics, `register="q_L"`); {
		url := address.FindString(stderr.String())
		if url == "" {
			continue
		}
		reply, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		b.ReadFrom(reply.Body)
		reply.Body.Close()
		metrics = b.String()
	}
	cancel()
	if code := <-done; code != cli.ExitDone {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	if !regexp.MustCompile(`p4lb_queue_occupancy_ratio\{scheme="qall-pkt",switch="l1",register="q_L",port="3"[^}]*\} 0\.2\n`).MatchString(metrics) {
		t.Errorf("no occupancy of port 3 in\n%.2000s", metrics)
	}
}

// TestRegister reads and writes cells. Writing several cells requires
// confirmation.
func TestRegister(t *testing.T) {
	d := bringUp(t, "pdlb")
	d.ok("register", "write", "l1", "pd_gran", "2", "16")
	if out := d.ok("register", "read", "l1", "pd_gran", "2", "-o", "csv"); out != "CELL,VALUE,HEX\n2,16,0x10\n" {
		t.Errorf("read %q", out)
	}
	if out := d.ok("register", "read", "l1", "pd_gran"); !regexp.MustCompile(`(?s)^CELL +VALUE +HEX\n2 +16 +0x10\n$`).MatchString(out) {
		t.Errorf("read all: %q", out)
	}
	for _, c := range []struct {
		stdin string
		args  []string
		code  int
		want  string // in cell 7 after the command
	}{
		{"", []string{"0-9", "3"}, cli.ExitInput, "0"},
		{"n\n", []string{"0-9", "3"}, cli.ExitInput, "0"},
		{"y\n", []string{"0-9", "3"}, cli.ExitDone, "3"},
		{"", []string{"all", "0x5", "--yes"}, cli.ExitDone, "5"},
		{"", []string{"7", "65536"}, cli.ExitInput, "5"},
		{"", []string{"1024", "1"}, cli.ExitInput, "5"},
		{"", []string{"5-3", "1"}, cli.ExitInput, "5"},
		{"", []string{"7", "many"}, cli.ExitInput, "5"},
	} {
		code, _, errs := d.run(t.Context(), c.stdin, append([]string{"register", "write", "l1", "pd_gran"}, c.args...)...)
		if code != c.code {
			t.Errorf("write %v with %q: exit code %d, want %d: %s", c.args, c.stdin, code, c.code, errs)
		}
		if out := d.ok("register", "read", "l1", "pd_gran", "7", "-o", "csv"); !strings.Contains(out, "\n7,"+c.want+",") {
			t.Errorf("write %v with %q: then %q", c.args, c.stdin, out)
		}
	}
}

// TestInspectUnreachable stops a switch. inspect names it with exit code 3, and
// still shows the others.
func TestInspectUnreachable(t *testing.T) {
	d := bringUp(t, "qall-pkt")
	if err := d.target.Stop("l2"); err != nil {
		t.Fatal(err)
	}
	code, out, errs := d.run(t.Context(), "", "inspect")
	if code != cli.ExitDone || !strings.Contains(out, "l1") || !strings.Contains(errs, "error: l2: ") {
		t.Errorf("exit code %d, output %.100q, errors %q", code, out, errs)
	}
	code, _, errs = d.run(t.Context(), "", "inspect", "l2")
	if code != cli.ExitRefused || !strings.Contains(errs, "error: l2: ") || !strings.Contains(errs, "hint: ") {
		t.Errorf("exit code %d, errors %q", code, errs)
	}
}

// manifestFile writes a manifest and returns the file name.
func manifestFile(t *testing.T, m any) string {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "m.json")
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestInspectByAddress inspects one switch by address and manifest, over Thrift
// and P4Runtime. It finds the ports from the contents of registers.
func TestInspectByAddress(t *testing.T) {
	d := bringUp(t, "qall-pkt")
	d.write("l1", "q_L", 3, 51)
	manifest := manifestFile(t, d.plan.Switch("l1").Pipeline.Manifest)
	e, err := d.target.Endpoint("l1")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--thrift", e.Thrift}, {"--grpc", e.Address, "--device-id", "1"}} {
		var out, errs strings.Builder
		args = append(append([]string{"inspect", "--manifest", manifest}, args...), "-o", "csv")
		if code := run(t.Context(), args, strings.NewReader(""), &out, &errs); code != cli.ExitDone {
			t.Fatalf("%v: exit code %d: %s", args, code, errs.String())
		}
		if !strings.Contains(out.String(), "q_L,occupancy,3,port 3,3,") {
			t.Errorf("%v: no occupancy of port 3 in\n%s", args, out.String())
		}
	}
}

// TestInspectMismatch inspects a switch with another program. The error names
// it, with a hint.
func TestInspectMismatch(t *testing.T) {
	d := bringUp(t, "ecmp")
	program, err := codegen.Generate(must(codegen.Lookup("pdlb")), codegen.Params{})
	if err != nil {
		t.Fatal(err)
	}
	manifest := manifestFile(t, program.Manifest)
	e, err := d.target.Endpoint("l1")
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []string{"--thrift=" + e.Thrift, "--grpc=" + e.Address} {
		var out, errs strings.Builder
		code := run(t.Context(), []string{"inspect", "--manifest", manifest, way}, strings.NewReader(""), &out, &errs)
		if code != cli.ExitInput || !strings.Contains(errs.String(), "hint: does the switch run pdlb? p4lb deploy --diff compares") {
			t.Errorf("%s: exit code %d, errors %q", way, code, errs.String())
		}
	}
}

// TestInspectWaits stops and restarts a switch while inspect watches. inspect
// reports it and continues.
func TestInspectWaits(t *testing.T) {
	d := bringUp(t, "qall-pkt")
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr syncBuffer
	done := make(chan int)
	go func() {
		done <- run(ctx, []string{"inspect", "l1", "--watch", "-o", "json", "--every", "5ms", "--state", d.state}, strings.NewReader(""), &stdout, &stderr)
	}()
	wait := func(text string) {
		t.Helper()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		deadline := time.After(3 * time.Minute)
		for from := len(stdout.String()); !strings.Contains(stdout.String()[from:], text); {
			select {
			case <-tick.C:
			case code := <-done:
				t.Fatalf("exit code %d: %s", code, stderr.String())
			case <-deadline:
				t.Fatalf("no %s within half a minute", text)
			}
		}
	}
	wait(`"switch": "l1"`)
	if err := d.target.Stop("l1"); err != nil {
		t.Fatal(err)
	}
	wait(`"failed": `)
	cancel()
	if code := <-done; code != cli.ExitDone {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestObserve sends packets through the fabric, and reads the dataset with fit,
// in both formats.
func TestObserve(t *testing.T) {
	d := bringUp(t, "qall-pkt")
	from, to := d.plan.Topology.Host("h1"), d.plan.Topology.Host("h3")
	packet := ipPacket(from, to, 1000)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(100 * time.Microsecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				d.target.Host("h1").Send(packet)
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	for _, form := range inspect.RecordFormats {
		file := filepath.Join(t.TempDir(), "obs."+form)
		d.ok("observe", "l1", "s1", "s2", "-o", file, "--rows", "40", "--every", "5ms", "-q")
		var rows fitting.Rows
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dataset.Read(t.Context(), dataset.File{Name: file, Reader: f}, dataset.Options{}, &rows); err != nil {
			t.Fatal(err)
		}
		f.Close()
		traffic := 0.0
		for r := range rows.All() {
			traffic += r.Y
		}
		if rows.Len() != 40 || traffic <= 0 {
			t.Errorf("%s: %d rows with a traffic of %v kbit/s", form, rows.Len(), traffic)
		}
	}
}

// TestObserveRefuses observes a scheme without measurements of queues, which is
// an error.
func TestObserveRefuses(t *testing.T) {
	d := bringUp(t, "ecmp")
	code, _, errs := d.run(t.Context(), "", "observe", "-o", filepath.Join(t.TempDir(), "x.csv"))
	if code != cli.ExitInput || !strings.Contains(errs, "ecmp does not measure") || !strings.Contains(errs, "hint: deploy a scheme that does, such as qall-pkt") {
		t.Errorf("exit code %d, errors %q", code, errs)
	}
}

// ipPacket returns an IPv4 packet of a given size between two hosts.
func ipPacket(from, to *fabric.Host, size int) []byte {
	b := slices.Concat(to.MAC[:], from.MAC[:], []byte{8, 0, 0x45, 0, byte((size - 14) >> 8), byte(size - 14), 0, 0, 0, 0, 64, 17, 0, 0})
	src, dst := from.IP.Addr().As4(), to.IP.Addr().As4()
	b = slices.Concat(b, src[:], dst[:])
	sum := 0
	for i := 14; i < 34; i += 2 {
		sum += int(b[i])<<8 + int(b[i+1])
	}
	sum = sum>>16 + sum&0xffff
	b[24], b[25] = ^byte(sum>>8), ^byte(sum)
	return append(b, make([]byte, size-len(b))...)
}

// TestInspectCounts checks that inspect shows port counters for a scheme
// without registers, once there is traffic.
func TestInspectCounts(t *testing.T) {
	d := bringUp(t, "ecmp")
	if out := d.ok("inspect"); !strings.HasSuffix(out, "\nno traffic since deployment: l1, l2, s1, s2\n") || strings.Count(out, "\n") != 1+20+2 { // ports
		t.Errorf("before any packet: %q", out)
	}
	from, to := d.plan.Topology.Host("h1"), d.plan.Topology.Host("h3")
	for range 3 {
		d.target.Host("h1").Send(ipPacket(from, to, 1000))
	}
	lost := ipPacket(from, to, 100)
	lost[22] = 1 // TTL
	d.target.Host("h1").Send(lost)
	deadline, out := time.Now().Add(20*time.Second), ""
	want := regexp.MustCompile(`(?m)^l1 +1 +h1 +3\.027 KB +0 B .* 0 +1: TTL used up$`)
	for ; !want.MatchString(out) && time.Now().Before(deadline); out = d.ok("inspect", "l1") {
	}
	if !want.MatchString(out) || !regexp.MustCompile(`(?m)^SWITCH +PORT +PEER +RX BYTES +TX BYTES +RX RATE +TX RATE +LOAD +QUEUED +DROPS$`).MatchString(out) {
		t.Errorf("after three packets and one that has expired:\n%s", out)
	}
	if out := d.ok("inspect", "l1", "s1", "-o", "csv"); !strings.Contains(out, ",,tx packets,") || !strings.Contains(out, ",,drops: TTL used up,1,port 1,1,h1,,,0,1,packets,") {
		t.Errorf("as CSV:\n%s", out)
	}
	var snapshots []struct {
		Wall     time.Time
		Readings []inspect.Reading
	}
	if err := json.Unmarshal([]byte(d.ok("inspect", "l1", "-o", "json")), &snapshots); err != nil {
		t.Fatal(err)
	}
	if len(snapshots) != 1 || time.Since(snapshots[0].Wall) > time.Minute {
		t.Errorf("the time of the reading is %v", snapshots)
	}
}

// TestInspectCopies checks that reports which a program sends to itself do not
// count as drops.
func TestInspectCopies(t *testing.T) {
	d := bringUp(t, "qall-poly3")
	d.target.Host("h1").Send(ipPacket(d.plan.Topology.Host("h1"), d.plan.Topology.Host("h3"), 1000))
	deadline, out := time.Now().Add(20*time.Second), ""
	for ; !strings.Contains(out, ",,copies ended,") && time.Now().Before(deadline); out = d.ok("inspect", "l1", "-o", "csv") {
	}
	if !strings.Contains(out, ",,copies ended,1,port 1,1,h1,,,0,1,packets,") || strings.Contains(out, ",,drops: ") {
		t.Errorf("after a packet, of which each egress tells its ingress:\n%s", out)
	}
}

// TestObserveAlone observes a switch without a topology, at all its ports. Over
// P4Runtime alone it fails at once, with the missing requirement.
func TestObserveAlone(t *testing.T) {
	d := bringUp(t, "qall-pkt")
	e, err := d.target.Endpoint("l1")
	if err != nil {
		t.Fatal(err)
	}
	manifest := manifestFile(t, d.plan.Switch("l1").Pipeline.Manifest)
	file := filepath.Join(t.TempDir(), "obs.csv")
	var out, errs syncBuffer
	code := run(t.Context(), []string{"observe", "--grpc", e.Address, "--device-id", "1", "--manifest", manifest, "-o", file}, strings.NewReader(""), &out, &errs)
	if code != cli.ExitInput || !strings.Contains(errs.String(), "p4lb switch --thrift ADDR") {
		t.Errorf("by P4Runtime: exit code %d, errors %q", code, errs.String())
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a file is there all the same")
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	packet := ipPacket(d.plan.Topology.Host("h1"), d.plan.Topology.Host("h3"), 1000)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Microsecond):
				d.target.Host("h1").Send(packet)
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	if code := run(t.Context(), []string{"observe", "--thrift", e.Thrift, "--manifest", manifest, "-o", file, "--rows", "10", "-q"}, strings.NewReader(""), &out, &errs); code != cli.ExitDone {
		t.Fatalf("by Thrift: exit code %d, errors %q", code, errs.String())
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), "\n") != 11 {
		t.Errorf("the dataset is %q, error %v", text, err)
	}
}
