package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/cmd/p4lb/internal/view"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/deployed"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/hosts"
	"github.com/p4lb/p4lb/internal/network/ping"
)

// console returns a console and its output and errors.
func console(t *testing.T) (c *cli.Console, out, errs *bytes.Buffer) {
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	c = cli.New(t.Context(), nil, strings.NewReader(""), out, errs)
	c.SetUp()
	return c, out, errs
}

// Flags that do not fit each other, or not the target, are refused with exit code 2
// before a network is looked for.
func TestRefusedFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	deploy := "--scheme ecmp --topology qall "
	for _, test := range []struct {
		verb func(*cli.Console) *cobra.Command
		args string
		want string
	}{
		{NewDeploy, "", "deploy requires --scheme"},
		{NewDeploy, "--scheme ecmp", "deploy requires --topology"},
		{NewDeploy, deploy + "--program x", "--program is for --p4app"},
		{NewDeploy, deploy + "--takeover --backup", "--takeover and --backup exclude each other"},
		{NewDeploy, deploy + "--dry-run --diff", "--dry-run and --diff exclude each other"},
		{NewDeploy, deploy + "--timeout 0s", "--timeout 0s: want a positive time"},
		{NewDeploy, deploy + "--timeout -1s", "--timeout -1s: want a positive time"},
		{NewDeploy, deploy + "--clock-step -1s", "--clock-step -1s: want 0s to 1h"},
		{NewDeploy, deploy + "--target p4runtime --clock-step 1s", "--clock-step"},
		{NewDeploy, deploy + "--election-id 0", "--election-id 0: want a number above 0, or HIGH.LOW"},
		{NewDeploy, deploy + "--target bmv3", "--target bmv3: want one of embedded, bmv2, p4runtime, tofino"},
		{NewDeploy, deploy + "--target p4runtime --bfrt", "--bfrt is for --target embedded"},
		{NewDeploy, deploy + "--target p4runtime --seed 2", "--seed"},
		{NewDeploy, deploy + "--target p4runtime --any-port", "--any-port"},
		{NewDeploy, deploy + "--bfrt", "--bfrt requires --arch tna or t2na"},
		{NewDeploy, deploy + "--device-config leaf=x", "--device-config is for --target tofino"},
		{NewDeploy, deploy + "--tofino-api p4runtime", "--tofino-api is for --target tofino"},
		{NewDeploy, deploy + "--target tofino --tofino-api grpc", "--tofino-api grpc: want one of bfrt, p4runtime"},
		{NewDeploy, deploy + "--target tofino --tofino-api p4runtime", "--tofino-api p4runtime requires --device-config ROLE=FILE"},
		{NewDeploy, deploy + "--target tofino --takeover", "--takeover requires --device-config ROLE=FILE"},
		{NewDeploy, deploy + "--target tofino --arch v1model", "--target tofino takes --arch tna or t2na"},
		{NewDeploy, deploy + "--target bmv2 --arch tna", "--target bmv2 takes --arch v1model"},
		{NewDeploy, deploy + "--tls-ca x", "--tls-ca"},
		{NewDeploy, deploy + "--dry-run --atomic", "--atomic"},
		{NewDeploy, deploy + "--diff --no-tasks", "--no-tasks"},
		{NewDeploy, deploy + "--once --no-tasks", "--no-tasks"},
		{NewDeploy, deploy + "--once --listen 127.0.0.1:0", "--listen shows a running network: want none of --once, --dry-run and --diff"},
		{NewDeploy, deploy + "--dry-run --listen 127.0.0.1:0", "--listen shows a running network: want none of --once, --dry-run and --diff"},
		{NewDeploy, deploy + "--target p4runtime --hosts", "--hosts"},
		{NewTraffic, "--seeds 0", "--seeds 0: want 1 to 1000"},
		{NewTraffic, "--seeds 1001", "--seeds 1001: want 1 to 1000"},
		{NewTraffic, "--duration 0s", "--duration 0s, --drain 30s: want times above 0"},
		{NewTraffic, "--drain 0s", "--duration 5s, --drain 0s: want times above 0"},
		{NewTraffic, "--flows x --load 0.1", "--load"},
		{NewTraffic, "--flows x --pattern halves", "--pattern"},
		{NewInspect, "--every 0s", "--every 0s: want a time above 0"},
		{NewInspect, "--for -1s", "--for -1s: want a time above 0"},
		{NewInspect, "--replay x --contents", "--contents reads switches, --replay does not"},
		{NewInspect, "--replay x --record y.csv", "--replay excludes --record and --register"},
		{NewInspect, "--replay x --register y", "--replay excludes --record and --register"},
		{NewInspect, "--no-flows --register y", "--no-flows and --register exclude each other"},
		{NewInspect, "--record y.txt", "--record y.txt: want a name that ends in .csv or .parquet"},
		{NewInspect, "--every 1s", "--every"},
		{NewInspect, "--replay x --state y", "--state"},
		{NewInspect, "--scheme ecmp", "--topology and --scheme must be given together"},
		{NewInspect, "--topology qall", "--topology and --scheme must be given together"},
		{NewInspect, "--thrift x", "--thrift, --grpc and --bfrt need --manifest"},
		{NewInspect, "--manifest x", "--manifest"},
		{NewInspect, "--device-id 3", "--device-id"},
		{NewInspect, "--bfrt x --grpc y --manifest m", "--bfrt cannot be combined with --thrift or --grpc"},
		{NewInspect, "--bfrt x --thrift y --manifest m", "--bfrt cannot be combined with --thrift or --grpc"},
		{NewInspect, "--grpc x --manifest m --topology qall", "--topology cannot be combined with the address of a switch"},
		{NewInspect, "--grpc x --manifest m --scheme ecmp", "--topology cannot be combined with the address of a switch"},
		{NewInspect, "--thrift x --manifest m --scheme ecmp", "--topology cannot be combined with the address of a switch"},
		{NewInspect, "--grpc x --manifest m --topology qall --scheme ecmp", "--topology cannot be combined with the address of a switch"},
		{NewInspect, "--grpc x --manifest m --state y", "--state cannot be combined"},
		{NewInspect, "--topology qall --scheme ecmp --state y", "--state cannot be combined"},
		{NewInspect, "--arch tna", "--arch"},
		{NewInspect, "--ipv6", "--ipv6"},
		{NewRegister, "read l1 r --grpc x", "--thrift, --grpc and --bfrt need --manifest"},
		{NewObserve, "-o x.csv --scheme ecmp", "--topology and --scheme must be given together"},
		{NewExec, "h1 --", "exec wants"},
		{NewExec, "h1", "exec"},
		{NewRestart, "", "restart"},
		{NewRegister, "read l1", "read"},
		{NewRegister, "write l1 r 1", "write"},
		{NewHosts, "x", "unexpected argument \"x\": want no arguments"},
		{NewDown, "x", "unexpected argument \"x\": want no arguments"},
		{NewPs, "x", "unexpected argument \"x\": want no arguments"},
	} {
		_, code, err := try(t, test.verb, strings.Fields(test.args)...)
		if err == nil || !strings.Contains(err.Error(), test.want) || code != cli.ExitUsage {
			t.Errorf("%s: %v with exit code %d, want %q with %d", test.args, err, code, test.want, cli.ExitUsage)
		}
	}
}

// An election id is a number of 64 bits, or its two halves.
func TestParseElection(t *testing.T) {
	for text, want := range map[string]string{
		"1": "0 1", "18446744073709551615": "0 18446744073709551615", "2.0": "2 0", "0.7": "0 7", "3.4": "3 4",
		"0": "", "0.0": "", "": "", "x": "", "1.": "", ".1": "", "-1": "", "18446744073709551616": "", "1.2.3": "",
	} {
		id, err := parseElection(text)
		got := fmt.Sprint(id.High, " ", id.Low)
		if err != nil {
			got = ""
		}
		if got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

// A verb without a network fails, and removes the state of a network whose process has
// ended.
func TestNoNetwork(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Chdir(t.TempDir())
	for name, verb := range map[string]func(*cli.Console) *cobra.Command{"hosts": NewHosts, "down": NewDown, "traffic": NewTraffic} {
		if _, _, err := try(t, verb); err == nil || !errors.Is(err, deployed.ErrNothing) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for args, verb := range map[string]func(*cli.Console) *cobra.Command{"down l1-s1": NewLink, "l1": NewRestart} {
		if _, _, err := try(t, verb, strings.Fields(args)...); !errors.Is(err, errNoOwner) {
			t.Errorf("%s: %v", args, err)
		}
	}
	if out, _, err := try(t, NewPs); err != nil || out != "no networks are deployed\n" {
		t.Errorf("ps: %q, %v", out, err)
	}
	if out, _, err := try(t, NewPs, "-o", "json"); err != nil || out != "[]\n" {
		t.Errorf("ps -o json: %q, %v", out, err)
	}
	state := filepath.Join(t.TempDir(), "state")
	if err := up(&deployed.Note{}, state); err != nil {
		t.Errorf("switches of other processes: %v", err)
	}
	if err := up(&deployed.Note{Kept: true}, state); !errors.Is(err, hosts.ErrGone) {
		t.Errorf("the process has ended: %v", err)
	}
	j := &hostJob{}
	top := load(t)
	for _, test := range []struct {
		note *deployed.Note
		host string
		want string
	}{
		{&deployed.Note{Target: "p4runtime"}, "h1", "the deployment on target p4runtime has no hosts of p4lb's"},
		{&deployed.Note{Control: "x"}, "h9", "there is no host h9"},
		{&deployed.Note{Name: "x"}, "l1", "there is no host l1"},
		{&deployed.Note{Control: "x"}, "h2", ""},
		{&deployed.Note{Name: "x"}, "h2", ""},
	} {
		h, err := j.host(test.note, top, test.host)
		if test.want == "" && (err != nil || h.Name != test.host) || test.want != "" && (err == nil || err.Error() != test.want) {
			t.Errorf("%+v %s: %v, want %q", test.note, test.host, err, test.want)
		}
	}
}

func round() *view.Round {
	port := func(n int, peer, quantity string, v float64, text string) inspect.Reading {
		return inspect.Reading{Quantity: quantity, Index: fmt.Sprint("port ", n), Port: n, Peer: peer, Value: v, Text: text}
	}
	return &view.Round{Scheme: "x", Switches: []inspect.Result{
		{Switch: "l1", Snapshot: &inspect.Snapshot{Clock: 1500 * time.Microsecond, Readings: []inspect.Reading{
			port(1, "h1", inspect.InPackets, 5, "5"), port(2, "s1", inspect.InPackets, 0, "0"), port(1, "h1", inspect.OutPackets, 7, "7"),
			{Register: "depth", Quantity: "depth", Cell: 3, Index: "port 2", Port: 2, Peer: "s1", Raw: 9, Value: 9, Text: "nine", Change: -0.5, Rate: 2.25, Unit: "packets"},
			{Register: "util", Quantity: "utilisation", Cell: 4, Index: "leaf 2 path 1", Port: 2, Peer: "s1", Path: 1, Group: 8, Raw: 1, Value: 0.25, Text: "25 %"},
			{Register: "best", Quantity: "best", Index: "leaf 2", Group: 8, Raw: 1, Value: 1, Text: "1"},
			{Register: "flows", Quantity: "slot", Index: "flow 17", Raw: 1, Value: 1, Text: "a"},
			{Register: "cells", Quantity: "cells", Index: "cell 5", Raw: 1, Value: 1, Text: "b"},
			{Register: "rounds", Quantity: "rounds", Index: "whatever", Raw: 1, Value: 1, Text: "c"},
			{Register: "late", Quantity: "late", Minor: true, Raw: 1, Text: "minor"},
			{Quantity: "entries", Index: "table I.fib", Raw: 3, Text: "3 of 8"},
			{Quantity: "packets", Index: "counter I.c 0", Raw: 3, Text: "30"},
		}}},
		{Switch: "s1", Snapshot: &inspect.Snapshot{Readings: []inspect.Reading{port(1, "l1", inspect.InPackets, 0, "0")}}},
		{Switch: "s2", Err: errors.New("away")},
	}}
}

// Readings stand in a table for each kind of thing that they are about, side by side.
// Switches without traffic are named once, and a switch without answer is reported once.
func TestShowTables(t *testing.T) {
	c, out, errs := console(t)
	j := &inspectJob{c: c, form: cli.Table}
	for range 2 {
		out.Reset()
		if err := j.showRound(round()); err != nil {
			t.Fatal(err)
		}
		c.Out.Flush()
	}
	want := [][]string{
		{"SWITCH", "PORT", "PEER", strings.ToUpper(inspect.InPackets), strings.ToUpper(inspect.OutPackets)}, {"l1", "1", "h1", "5", "7"}, {"l1", "2", "s1", "0"}, {"s1", "1", "l1", "0"}, {},
		{"SWITCH", "PORT", "PEER", "DEPTH"}, {"l1", "2", "s1", "nine"}, {},
		{"SWITCH", "PATH", "PORT", "PEER", "UTILISATION"}, {"l1", "leaf", "2", "path", "1", "2", "s1", "25", "%"}, {},
		{"SWITCH", "GROUP", "BEST"}, {"l1", "leaf", "2", "1"}, {},
		{"SWITCH", "TABLE", "ENTRIES"}, {"l1", "I.fib", "3", "of", "8"}, {},
		{"SWITCH", "COUNTER", "PACKETS"}, {"l1", "I.c", "0", "30"}, {},
		{"SWITCH", "FLOW", "SLOT"}, {"l1", "flow", "17", "a"}, {},
		{"SWITCH", "CELL", "CELLS"}, {"l1", "cell", "5", "b"}, {},
		{"SWITCH", "ROUNDS"}, {"l1", "c"}, {},
		{"no", "traffic", "since", "deployment:", "s1"},
	}
	var lines []string
	for _, w := range want {
		lines = append(lines, strings.Join(w, " "))
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if strings.Join(got, "\n") != strings.Join(lines, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
	if n := strings.Count(errs.String(), "no readings"); n != 1 || j.failed["s2"] != "away" {
		t.Errorf("%d warnings: %s", n, errs)
	}
	back := &inspect.Result{Switch: "s2", Snapshot: &inspect.Snapshot{}}
	if !j.answered(back) || len(j.failed) != 0 {
		t.Errorf("the switch is back: %v", j.failed)
	}
	other := &inspect.Result{Switch: "s2", Err: errors.New("elsewhere")}
	for range 2 {
		if j.answered(other) {
			t.Error("a switch with another error has readings")
		}
	}
	if strings.Count(errs.String(), "elsewhere") != 1 {
		t.Errorf("another error: %s", errs)
	}
	// Minor readings are for -v and --register. A round of registers names no idle switch.
	out.Reset()
	j.registers = []string{"late"}
	if err := j.showRound(round()); err != nil {
		t.Fatal(err)
	}
	c.Out.Flush()
	if !strings.Contains(out.String(), "LATE") || !strings.Contains(out.String(), "minor") || strings.Contains(out.String(), "no traffic") {
		t.Errorf("with registers:\n%s", out)
	}
	out.Reset()
	if err := j.showRound(&view.Round{Scheme: "x", Switches: []inspect.Result{*back}}); err != nil {
		t.Fatal(err)
	}
	c.Out.Flush()
	if !strings.HasPrefix(out.String(), "x keeps nothing in registers") {
		t.Errorf("without readings: %q", out)
	}
}

// With -v the clock of each switch that answers is logged.
func TestShowClocks(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		var out, errs bytes.Buffer
		c := cli.New(t.Context(), nil, strings.NewReader(""), &out, &errs)
		c.Verbose = verbose
		c.SetUp()
		if err := (&inspectJob{c: c, form: cli.Table}).showRound(round()); err != nil {
			t.Fatal(err)
		}
		if text := errs.String(); strings.Contains(text, "switch=l1 clock=1.5ms") != verbose || strings.Contains(text, "switch=s1 clock=") != verbose || strings.Contains(text, "switch=s2 clock=") {
			t.Errorf("verbose %v: %s", verbose, text)
		}
	}
}

// In CSV each reading has a row. Cells without a value are empty.
func TestLongGrid(t *testing.T) {
	g := longGrid(round())
	if len(g) != 14 || len(g[0]) != 16 {
		t.Fatalf("%d rows of %d cells", len(g), len(g[0]))
	}
	for at, want := range map[int]string{
		1: "l1,1500,," + inspect.InPackets + ",0,port 1,1,h1,,,0,5,,5,0,0",
		4: "l1,1500,depth,depth,3,port 2,2,s1,,,9,9,packets,nine,-0.5,2.25",
		5: "l1,1500,util,utilisation,4,leaf 2 path 1,2,s1,8,1,1,0.25,,25 %,0,0",
	} {
		if got := strings.Join(g[at], ","); got != want {
			t.Errorf("row %d: %s, want %s", at, got, want)
		}
	}
	if got := realNumber(1.0 / 3); got != "0.333333333" {
		t.Errorf("a third is %s", got)
	}
}

type fakeHolder struct{ err [2]error }

func (h fakeHolder) Tables(context.Context) ([]controller.TableFill, error) {
	return []controller.TableFill{{Table: "I.fib", Entries: 3, Size: 8, Count: &controller.Count{Packets: 5, Bytes: 600}}, {Table: "I.none", Size: 4}}, h.err[0]
}

func (h fakeHolder) Counters(context.Context) ([]controller.CounterCell, error) {
	return []controller.CounterCell{{Counter: "I.c", Cell: 2, Count: controller.Count{Packets: 1, Bytes: 64}}}, h.err[1]
}

// Tables have their entries and hits, counters their cells.
func TestContents(t *testing.T) {
	var s inspect.Snapshot
	if err := addContents(t.Context(), fakeHolder{}, &s); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range s.Readings {
		got = append(got, fmt.Sprintf("%s %s %d %g %s", r.Index, r.Quantity, r.Raw, r.Value, r.Text))
	}
	want := []string{
		"table I.fib entries 3 3 3 of 8", "table I.fib packets 5 5 5", "table I.fib bytes 600 600 600", "table I.none entries 0 0 0 of 4",
		"counter I.c 2 packets 1 1 1", "counter I.c 2 bytes 64 64 64",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
	broken := errors.New("broken")
	for _, h := range []fakeHolder{{[2]error{broken, nil}}, {[2]error{nil, broken}}} {
		if err := addContents(t.Context(), h, &s); err != broken {
			t.Errorf("%v: %v", h.err, err)
		}
	}
}

// A switch whose tables cannot be read has an error and no readings. Others are not affected.
func TestAddContents(t *testing.T) {
	broken := errors.New("broken")
	with := func(h fakeHolder) holder {
		return struct {
			controller.Peek
			fakeHolder
		}{fakeHolder: h}
	}
	r := round()
	n, other := len(r.Switches[0].Snapshot.Readings), r.Switches[2].Err
	contents{"l1": with(fakeHolder{}), "s1": with(fakeHolder{[2]error{broken, nil}}), "s2": with(fakeHolder{})}.add(t.Context(), r)
	if l1, s1, s2 := r.Switches[0], r.Switches[1], r.Switches[2]; len(l1.Snapshot.Readings) != n+6 || s1.Snapshot != nil || s1.Err != broken || s2.Err != other || s2.Snapshot != nil {
		t.Errorf("%+v", r.Switches)
	}
}

// Progress of a deployment is followed unless the verb is quiet.
func TestProgress(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		c, _, _ := console(t)
		c.Quiet = quiet
		var o controller.DeployOptions
		bar := (&deployJob{c: c}).progress(&plan.Plan{Switches: make([]*plan.Switch, 3)}, &o)
		if (o.Progress == nil) != quiet || (bar.Progress == nil) != quiet {
			t.Errorf("quiet %v: follows %v, %v", quiet, o.Progress != nil, bar.Progress)
		}
		bar.End()
		bar.End()
	}
}

// A report has a line for each switch, each note once with its switches, and a summary.
// Differences have a row each.
func TestShowReport(t *testing.T) {
	r := &report.Report{Elapsed: 1234567 * time.Microsecond, Switches: []report.Switch{
		{Name: "l1", Pushed: true, Verified: true, Written: 3, Notes: []string{"no queues", "slow"}, Changes: []report.Change{{Kind: report.Insert, Object: "a", After: "1"}}},
		{Name: "l2", Verified: true, Written: 4, Notes: []string{"no queues"}},
	}}
	pair := ping.Result{From: "h1", To: "h3"}
	for _, test := range []struct {
		what   string
		report *report.Report
		lost   *loss
		diff   bool
		want   string
	}{
		{"no hosts", r, nil, false, "2 switches verified in 1.235s, 7 changes written\n"},
		{"all pass", r, &loss{pairs: 4}, false, "2 switches verified in 1.235s, 7 changes written; packets pass between 4 of 4 pairs of hosts\n"},
		{"one is lost", r, &loss{pairs: 4, failed: []ping.Result{pair}}, false, "2 switches programmed in 1.235s, 7 changes written; packets pass between 3 of 4 pairs of hosts\n"},
		{"not checked", r, &loss{pairs: 4, err: errors.New("x")}, false, "2 switches verified in 1.235s, 7 changes written\n"},
		{"notes", r, nil, false, "note: no queues (l1, l2)\nnote: slow (l1)\n"},
		{"not verified", &report.Report{Switches: []report.Switch{{Name: "l1"}}}, nil, false, "as planned\n"},
		{"differences", r, nil, true, "l1      insert  a       -       1\n"},
		{"no differences", &report.Report{Switches: []report.Switch{{Name: "l1", Verified: true}}}, nil, true, "nothing differs\n"},
		{"a failure", &report.Report{Switches: []report.Switch{{Name: "l1", Err: &plan.Error{Switch: "l1", Err: errors.New("x")}}}}, nil, true, "SWITCH"},
	} {
		c, out, _ := console(t)
		j := &deployJob{c: c, format: cli.Table, diff: test.diff}
		if err := j.show(test.report, test.lost); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), test.want) {
			t.Errorf("%s:\n%s\nwant\n%s", test.what, out, test.want)
		}
		if strings.Contains(out.String(), "changes written") != (test.report == r && !test.diff) {
			t.Errorf("%s: the summary:\n%s", test.what, out)
		}
	}
	j := &deployJob{}
	if err := j.show(nil, nil); err != nil {
		t.Error(err)
	}
	if err := errors.Join(j.lossError(nil), j.lossError(&loss{pairs: 3})); err != nil {
		t.Errorf("nothing is lost: %v", err)
	}
	if err := j.lossError(&loss{err: errors.New("no route")}); err == nil || err.Error() != "checking the connectivity: no route" {
		t.Error(err)
	}
	err := j.lossError(&loss{pairs: 4, failed: []ping.Result{pair, {From: "h3", To: "h1"}}})
	if f, ok := errors.AsType[*cli.Failure](err); !ok || f.Code != cli.ExitRefused || f.Error() != "no packets pass between 2 of 4 pairs of hosts: h1 to h3, h3 to h1" {
		t.Error(err)
	}
	for _, c := range []struct {
		path []string
		want string
	}{
		{nil, "p4lb ping --all"},
		{[]string{"l1", "s1"}, "the packet from h1 to h3 was lost after l1-s1; p4lb ping --all"},
		{[]string{"l1", "s1", "l1", "s1", "l1", "s1", "l1", "s1"}, "the packet from h1 to h3 goes round: l1-s1-l1-s1-l1-s1-…; p4lb ping --all"},
	} {
		f, _ := errors.AsType[*cli.Failure](j.lossError(&loss{pairs: 1, failed: []ping.Result{{From: "h1", To: "h3", Path: c.path}}}))
		if !strings.HasPrefix(f.Hint, c.want) {
			t.Errorf("hint %q, want %q", f.Hint, c.want)
		}
	}
}

// Equal errors of several switches are printed once. The last error is returned, and each
// has its hint and exit code 3.
func TestEachError(t *testing.T) {
	c, _, errs := console(t)
	j := &deployJob{c: c}
	refused := func(sw, hint string) *plan.Error {
		return &plan.Error{Switch: sw, Err: errors.New("refused"), Hint: hint}
	}
	list := plan.Errors{refused("l1", "a"), refused("s1", "b"), refused("l2", "a"), {Switch: "s2", Err: errors.New("away")}}
	err := j.deployErrors(list)
	f, ok := errors.AsType[*cli.Failure](err)
	if !ok || f.Code != cli.ExitRefused || err.Error() != "s2: away" {
		t.Errorf("the last error: %v", err)
	}
	if text := errs.String(); !strings.Contains(text, "l1, l2: refused") || !strings.Contains(text, "s1: refused") || strings.Count(text, "refused") != 2 || strings.Contains(text, "away") {
		t.Errorf("the others:\n%s", text)
	}
	if err := j.deployErrors(nil); err != nil {
		t.Error(err)
	}
	if err := j.deployErrors(io.EOF); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if err := j.planErrors(plan.Errors{refused("l1", "turn it on")}); err == nil || err.Error() != "l1: refused" {
		t.Error(err)
	}
}

// A linkTarget records the links that are set, and refuses one of them.
type linkTarget struct {
	target.Target
	set    map[string]fabric.Link
	random map[string]target.Random
	refuse string
}

func (l *linkTarget) Name() string { return "test" }

func (l *linkTarget) LinkDown(fabric.Link) (bool, error) { return false, nil }

func (l *linkTarget) SetLink(link fabric.Link, r target.Random) error {
	if name := fmt.Sprint(link); strings.Contains(name, l.refuse) && l.refuse != "" {
		return errors.New("no such interface")
	}
	l.set[fmt.Sprint(link)], l.random[fmt.Sprint(link)] = link, r
	return nil
}

func (l *linkTarget) Endpoint(name string) (target.Endpoint, error) {
	return target.Endpoint{Address: "127.0.0.1:1"}, nil
}

// Links change together or not at all and keep earlier settings. The verb prints their
// present state.
func TestSetLinks(t *testing.T) {
	c, out, _ := console(t)
	top := load(t)
	links := &linkTarget{set: map[string]fabric.Link{}, random: map[string]target.Random{}}
	k := &keeper{
		c: c, target: links, plan: &plan.Plan{Topology: top},
		job: &deployJob{c: c, state: filepath.Join(t.TempDir(), "state"), target: targetEmbedded},
	}
	set := func(edit func(*linkChange), names ...string) (string, error) {
		out.Reset()
		err := k.setLinks(t.Context(), c, names, edit, true)
		c.Out.Flush()
		return out.String(), err
	}
	down := func(l *linkChange) { l.link.Down = true }
	if text, err := set(down, "l1-s1", "l1-s9"); err == nil || len(links.set) != 0 || text != "" {
		t.Errorf("with a link that does not exist: %v, %v, %q", err, links.set, text)
	}
	text, err := set(down, "l1-s1")
	if err != nil || !strings.HasSuffix(text, ": down, 1Gbps, delay 0s\n") && !strings.Contains(text, "down, ") || len(links.set) != 1 {
		t.Errorf("%q, %v, %v", text, err, links.set)
	}
	if k.plan.Topology.Links[3].Down || !k.actual().Links[3].Down {
		t.Errorf("the plan and the network: %v, %v", k.plan.Topology.Links[3], k.actual().Links[3])
	}
	text, err = set(func(l *linkChange) {
		l.link.Delay, l.random = 5*time.Millisecond, target.Random{Loss: 0.01, Jitter: time.Millisecond}
	}, "l1-s1", "h1-l1")
	if err != nil || strings.Count(text, "\n") != 2 || strings.Count(text, "delay 5ms ± 1ms, loss 1 %") != 2 || strings.Count(text, ": down, ") != 1 || strings.Count(text, ": up, ") != 1 {
		t.Errorf("%q, %v", text, err)
	}
	links.refuse = "l2"
	before := len(k.links)
	if _, err := set(down, "l2-s1"); err == nil || len(k.links) != before {
		t.Errorf("refused by the target: %v, %d links", err, len(k.links))
	} else if f, ok := errors.AsType[*cli.Failure](err); !ok || f.Code != cli.ExitRefused {
		t.Errorf("refused by the target: %v", err)
	}
	if _, err := set(func(l *linkChange) { l.link.Down = false }, "l1-s1"); err != nil || k.actual().Links[3].Down {
		t.Errorf("up again: %v", err)
	}
	if d, _, err := deployed.Read(k.job.state); err != nil || !d.Kept || d.Target != "test" {
		t.Errorf("the note: %+v, %v", d, err)
	}
	k.target = struct{ target.Target }{links}
	if _, err := set(down, "l1-s1"); err == nil || err.Error() != "the links of target test are not p4lb's to change" {
		t.Errorf("a target without links: %v", err)
	}
	if err := k.restart(t.Context(), c, []string{"l1"}); err == nil || err.Error() != "the switches of target test are not p4lb's to restart" {
		t.Errorf("a target that restarts nothing: %v", err)
	}
}

// Another deployment is handed to the process that runs the network only if it can be
// changed there.
func TestDeployFor(t *testing.T) {
	c, _, _ := console(t)
	mine := &deployJob{target: targetEmbedded}
	k := &keeper{c: c, job: mine, ctrl: &controller.Controller{}}
	try := func(k *keeper, j *deployJob, args ...string) error {
		cmd := &cobra.Command{Use: "deploy"}
		cmd.SetContext(t.Context())
		(&deployJob{c: c}).addFlags(cmd)
		if err := cmd.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		return k.deployFor(cmd, j)
	}
	for _, test := range []struct {
		k    *keeper
		j    *deployJob
		args []string
		want string
	}{
		{&keeper{c: c, job: mine}, &deployJob{target: targetEmbedded}, nil, "a project and another deployment do not mix"},
		{k, &deployJob{target: targetEmbedded, app: "x"}, nil, "a project and another deployment do not mix"},
		{k, &deployJob{target: targetBMv2}, nil, "it has other switches than --target bmv2 and its flags ask for"},
		{k, &deployJob{target: targetEmbedded, bfrt: true}, nil, "it has other switches"},
		{k, &deployJob{target: targetEmbedded, bmv2: bmv2Flags{keep: true}}, nil, "it has other switches"},
		{k, &deployJob{target: targetEmbedded, tofino: tofinoFlags{api: "x"}}, nil, "it has other switches"},
		{k, &deployJob{target: targetEmbedded, page: view.PageServer{Listen: "x"}}, nil, "--listen cannot begin now"},
		{k, &deployJob{target: targetEmbedded, hosts: hostFlags{pcap: "x"}}, nil, "--pcap cannot begin now"},
		{k, &deployJob{target: targetEmbedded, hosts: hostFlags{wanted: true}}, []string{"--hosts"}, "--hosts and --rates cannot change now"},
		{k, &deployJob{target: targetEmbedded, hosts: hostFlags{rates: true}}, []string{"--rates"}, "--hosts and --rates cannot change now"},
		{k, &deployJob{target: targetEmbedded, takeover: true}, nil, "it is the controller of the switches already"},
		{k, &deployJob{target: targetEmbedded, backup: true}, nil, "it is the controller of the switches already"},
	} {
		err := try(test.k, test.j, test.args...)
		f, ok := errors.AsType[*cli.Failure](err)
		if want := fmt.Sprintf("process %d runs this network: %s", os.Getpid(), test.want); !ok || f.Code != cli.ExitRefused || !strings.HasPrefix(f.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Deployments whose switches end with the process are its own.
func TestOurs(t *testing.T) {
	for _, test := range []struct {
		j    deployJob
		want bool
	}{
		{deployJob{target: targetEmbedded}, true}, {deployJob{target: targetBMv2}, true}, {deployJob{target: targetBMv2, bmv2: bmv2Flags{keep: true}}, false},
		{deployJob{target: targetBMv2, bmv2: bmv2Flags{attach: true}}, false}, {deployJob{target: targetServers}, false}, {deployJob{target: targetTofino}, false},
		{deployJob{target: targetServers, app: "x"}, true},
	} {
		if got := (&keeper{job: &test.j}).ours(); got != test.want {
			t.Errorf("%s, keep %v, attach %v: %v", test.j.target, test.j.bmv2.keep, test.j.bmv2.attach, got)
		}
	}
	for _, test := range []struct {
		j    deployJob
		want bool
	}{{deployJob{}, true}, {deployJob{once: true}, false}, {deployJob{dryRun: true}, false}, {deployJob{diff: true}, false}} {
		if got := test.j.stays(); got != test.want {
			t.Errorf("%+v stays: %v", test.j, got)
		}
	}
}

// How to use the hosts is printed for people, if there are hosts.
func TestHowTo(t *testing.T) {
	for _, test := range []struct {
		j    deployJob
		want string
	}{
		{deployJob{target: targetBMv2}, "3 hosts; a command on h1: p4lb exec h1 -- ping 10.0.2.1\n"},
		{deployJob{target: targetBMv2, bmv2: bmv2Flags{keep: true}}, "3 hosts; a command on h1: p4lb exec h1 -- ping 10.0.2.1\nthe network stays; to end it: p4lb down\n"},
		{deployJob{target: targetBMv2, bmv2: bmv2Flags{attach: true}}, ""},
		{deployJob{target: targetEmbedded}, ""},
		{deployJob{target: targetBMv2, format: cli.JSON}, ""},
	} {
		c, out, _ := console(t)
		test.j.c = c
		if test.j.format == "" {
			test.j.format = cli.Table
		}
		if err := (&keeper{job: &test.j, plan: &plan.Plan{Topology: load(t)}}).howTo(); err != nil || out.String() != test.want {
			t.Errorf("%s: %q, %v; want %q", test.j.target, out, err, test.want)
		}
	}
}

// CPU time: user, nice, system, irq, softirq and steal are busy, idle and iowait are not.
func TestParseCPU(t *testing.T) {
	if got := parseCPU("cpu  1 2 4 8 16 32 64 128 256 512"); got != (cpuTime{busy: 1 + 2 + 4 + 32 + 64 + 128, idle: 8 + 16}) {
		t.Errorf("%+v", got)
	}
	if got := parseCPU(""); got != (cpuTime{}) {
		t.Errorf("no line: %+v", got)
	}
	c, _, errs := console(t)
	for share, want := range map[float64]bool{0.9: false, 0.91: true, 0: false} {
		errs.Reset()
		if got := warnOfBusy(c, cpuTime{}, cpuTime{busy: 1000 * share, idle: 1000 * (1 - share)}); got != want || (errs.Len() > 0) != want {
			t.Errorf("%g busy: %v, %q", share, got, errs)
		}
	}
	if warnOfBusy(c, cpuTime{1, 1}, cpuTime{1, 1}) {
		t.Error("no time has passed")
	}
	errs.Reset()
	if warnOfUnread(c, 0); errs.Len() > 0 {
		t.Errorf("nothing is unread: %s", errs)
	}
	if warnOfUnread(c, 1); !strings.Contains(errs.String(), "did not read 1 packets in time") {
		t.Errorf("one is unread: %s", errs)
	}
}

// A sequence of rounds ends with io.EOF. A recording shows its last round, unless it is
// watched; other errors end with the error.
func TestDrain(t *testing.T) {
	for _, test := range []struct {
		j      inspectJob
		err    error
		rounds int // that the sink gets
		shown  bool
	}{
		{inspectJob{replay: "x"}, io.EOF, 3, true},
		{inspectJob{replay: "x", watch: true}, io.EOF, 3, false},
		{inspectJob{replay: "x", record: "y"}, io.EOF, 3, false},
		{inspectJob{}, io.EOF, 3, false},
		{inspectJob{}, io.ErrUnexpectedEOF, 3, false},
	} {
		c, out, _ := console(t)
		test.j.c, test.j.form = c, cli.Table
		n := 0
		err := test.j.drain(t.Context(), rounds(func() (*view.Round, error) {
			if n == 3 {
				return nil, test.err
			}
			return round(), nil
		}), []func(*view.Round) error{func(*view.Round) error { n++; return nil }})
		c.Out.Flush()
		if want := test.err; want == io.EOF && err != nil || want != io.EOF && err != want || n != test.rounds || (out.Len() > 0) != test.shown {
			t.Errorf("%+v: %v after %d rounds, %d bytes", test.j, err, n, out.Len())
		}
	}
	full := errors.New("full")
	c, _, _ := console(t)
	j := inspectJob{c: c, form: cli.Table}
	if err := j.drain(t.Context(), rounds(func() (*view.Round, error) { return round(), nil }), []func(*view.Round) error{func(*view.Round) error { return full }}); err != full {
		t.Errorf("a sink that fails: %v", err)
	}
	for _, test := range []struct {
		j    inspectJob
		want bool
	}{{inspectJob{}, false}, {inspectJob{watch: true}, true}, {inspectJob{record: "x"}, true}, {inspectJob{span: 1}, true}, {inspectJob{page: view.PageServer{Listen: "x"}}, true}} {
		if got := test.j.readsAgain(); got != test.want {
			t.Errorf("%+v goes on: %v", test.j, got)
		}
	}
}

type rounds func() (*view.Round, error)

func (r rounds) next(context.Context) (*view.Round, error) { return r() }
func (r rounds) topology() *fabric.Topology                { return nil }

// A recording holds the snapshots of switches that answered.
func TestRecordFile(t *testing.T) {
	c, _, errs := console(t)
	file := filepath.Join(t.TempDir(), "x.csv")
	j := &inspectJob{c: c, record: file}
	sink, end, err := j.openRecord()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := sink(round()); err != nil {
			t.Fatal(err)
		}
	}
	errs.Reset()
	end()
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), "\n") != 1+2*13 {
		t.Errorf("%d lines, %v; %s", strings.Count(string(text), "\n"), err, errs)
	}
	if got := errs.String(); !strings.Contains(got, "recorded") || !strings.Contains(got, "rounds=2") {
		t.Errorf("the end of the recording: %q", got)
	}
	j.record = filepath.Join(t.TempDir(), "none", "x.csv")
	if _, _, err := j.openRecord(); err == nil {
		t.Error("a file in a folder that does not exist")
	}
}
