package serve

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
)

// Each name of --limit sets one limit, from 1 on, and no other.
func TestLimits(t *testing.T) {
	fields := map[string]string{
		"connections": "MaxConnections", "calls": "MaxCalls", "reads": "MaxReads", "streams": "MaxStreams", "controllers": "MaxControllers",
		"roles": "MaxRoles", "message": "MaxMessage", "incoming": "MaxIncoming", "entity": "MaxEntity", "updates": "MaxUpdates",
		"requests": "MaxRequests", "pending": "MaxPending",
	}
	var unset limits
	if err := unset.check(); err != nil {
		t.Fatal(err)
	}
	for name, field := range fields {
		l := limits{list: []string{name + "=1"}}
		if err := l.check(); err != nil {
			t.Errorf("%s=1: %v", name, err)
		}
		want := unset.server
		reflect.ValueOf(&want).Elem().FieldByName(field).SetInt(1)
		if l.server != want || l.thrift != unset.thrift {
			t.Errorf("%s=1: %+v, want %+v", name, l.server, want)
		}
		if !strings.Contains(limitHelp, "\n  "+name+" ") {
			t.Errorf("the help does not have %s", name)
		}
	}
	for text, want := range map[string]string{
		"calls=0":          "want a number from 1 to 2147483647",
		"calls=-1":         "want a number from 1 to 2147483647",
		"calls=2147483648": "want a number from 1 to 2147483647",
		"calls=2147483647": "",
		"calls":            "want a number from 1 to 2147483647",
		"calls=many":       "want a number from 1 to 2147483647",
		"stall=0s":         "want a positive time such as 30s",
		"stall=-1s":        "want a positive time such as 30s",
		"stall=5":          "want a positive time such as 30s",
		"stall=1ns":        "",
		"cells=1":          "want one of calls, connections, controllers, entity, incoming, message, pending, reads, requests, roles, stall, streams, thrift, updates",
		"=1":               "want one of calls",
	} {
		err := (&limits{list: []string{text}}).check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), "--limit "+text+": ") || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	l := limits{list: []string{"stall=90s", "thrift=3", "calls=5", "calls=6"}}
	if err := l.check(); err != nil || l.server.MaxStall != 90*time.Second || l.thrift != 3 || l.server.MaxCalls != 6 {
		t.Errorf("%+v, %v", l, err)
	}
}

// The connections of both servers, with as many that wait for P4Runtime, fit into the
// open files of the process.
func TestConnectionsFitFiles(t *testing.T) {
	files := maxFiles()
	var l limits
	if err := l.check(); err != nil {
		t.Fatal(err)
	}
	if n := 2*l.server.MaxConnections + l.thrift; n > files-spareFiles || l.server.MaxConnections < 1 || l.server.MaxConnections > 1024 || l.thrift < 1 {
		t.Errorf("%d and %d connections by default, with %d files", l.server.MaxConnections, l.thrift, files)
	}
	if files == math.MaxInt32 {
		return // any number fits
	}
	room := files - spareFiles
	for _, test := range []struct {
		connections, thrift int
		ok                  bool
	}{{(room - 1) / 2, 1, true}, {1, room - 2, true}, {1, room - 1, false}, {(room + 1) / 2, 1, false}} {
		l := limits{list: []string{fmt.Sprint("connections=", test.connections), fmt.Sprint("thrift=", test.thrift)}}
		if err := l.check(); (err == nil) != test.ok {
			t.Errorf("%d and %d connections with %d files: %v", test.connections, test.thrift, files, err)
		}
	}
}

func TestParsePort(t *testing.T) {
	for _, test := range []struct {
		text, where, want string
		number            uint32
	}{
		{"1@veth0", "veth0", "", 1},
		{"0@pcap:in,out", "pcap:in,out", "", 0},
		{"511@udp:127.0.0.1:1,127.0.0.1:2", "udp:127.0.0.1:1,127.0.0.1:2", "", 511},
		{"512@veth0", "", `port "512": want a number from 0 to 511`, 0},
		{"-1@veth0", "", `port "-1": want a number from 0 to 511`, 0},
		{"@veth0", "", `port "": want a number from 0 to 511`, 0},
		{"1@", "", "want PORT@INTERFACE", 0},
		{"veth0", "", "want PORT@INTERFACE", 0},
	} {
		number, where, err := parsePort(test.text)
		if number != test.number || where != test.where || (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %d, %q, %v", test.text, number, where, err)
		}
	}
}

// Mistakes of the command line of p4lb switch have exit code 2 and name the flag.
func TestSwitchUsage(t *testing.T) {
	for args, want := range map[string]string{
		"--tls-cert x":                        "--tls-cert and --tls-key go together",
		"--tls-key x":                         "--tls-cert and --tls-key go together",
		"--tls-ca x":                          "--tls-ca requires --tls-cert and --tls-key",
		"--p4info x":                          "--p4info requires --load",
		"--entries x":                         "--entries requires --load",
		"--rounds 0":                          "--rounds 0: want at least 1",
		"--depth 0":                           "--depth 0: want at least 1",
		"--priorities 0":                      "--priorities 0: want 1 to 8",
		"--priorities 9":                      "--priorities 9: want 1 to 8",
		"--limit calls=0":                     "--limit calls=0",
		"--grpc off --limit calls=5":          "--limit calls=5: this limit belongs to a server that is off",
		"--thrift off --limit thrift=5":       "--limit thrift=5: this limit belongs to a server that is off",
		"-i 1@pcap:a,b -i 1@pcap:c,d":         "-i 1@pcap:c,d: port 1 is already connected to pcap:a,b",
		"-i 512@pcap:a,b":                     `port "512"`,
		"--grpc off --tls-cert x --tls-key x": "--grpc or --bfrt",
		"--load x.json -D A=1":                "a P4 program",
	} {
		var out bytes.Buffer
		c := cli.New(t.Context(), nil, strings.NewReader(""), &out, &out)
		cmd := New(c)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(strings.Fields(args))
		err := cmd.ExecuteContext(t.Context())
		f, ok := errors.AsType[*cli.Failure](err)
		if !ok || f.Code != cli.ExitUsage || !strings.Contains(f.Error(), want) {
			t.Errorf("%s: %v, want %q with exit code %d", args, err, want, cli.ExitUsage)
		}
	}
}

// The trace is one JSON object for each event, with the fields that the event has.
func TestTraceFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "trace.jsonl")
	f := &traceFile{name: name}
	if err := f.begin(); err != nil {
		t.Fatal(err)
	}
	f.event(dataplane.Event{Kind: dataplane.EventTableHit, Packet: 1, Name: "In.t", Value: 0})
	f.event(dataplane.Event{Kind: dataplane.EventEnqueue, Packet: 1, Value: 3, Depth: 0})
	f.event(dataplane.Event{Kind: dataplane.EventAction, Packet: 2, Name: "In.a<b>", Value: 9, Source: &bmv2.SourceInfo{Filename: "p.p4", Line: 7, SourceFragment: "a < b"}})
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var got []string
	for s := bufio.NewScanner(file); s.Scan(); {
		var line map[string]any
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", s.Text(), err)
		}
		if us, ok := line["us"].(float64); !ok || us < 0 {
			t.Errorf("%s: no time", s.Text())
		}
		delete(line, "us")
		text, _ := json.Marshal(line)
		got = append(got, string(text))
	}
	want := []string{
		`{"event":"` + dataplane.EventTableHit.String() + `","name":"In.t","packet":1,"value":0}`,
		`{"depth":0,"event":"` + dataplane.EventEnqueue.String() + `","packet":1,"value":3}`,
		`{"event":"` + dataplane.EventAction.String() + `","name":"In.a\u003cb\u003e","packet":2,"source":{"file":"p.p4","line":7,"text":"a \u003c b"}}`,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := (&traceFile{name: filepath.Join(name, "x")}).begin(); err == nil {
		t.Error("a trace below a file")
	}
	if err := (&traceFile{}).close(); err != nil {
		t.Errorf("a trace that never began: %v", err)
	}
}

// Thrift clients can only connect network interfaces, not files or sockets.
func TestConnectTakesInterfaces(t *testing.T) {
	s := &switchPorts{names: map[uint32]string{}}
	for _, where := range []string{"pcap:in,out", "udp:127.0.0.1:1,127.0.0.1:2", ":"} {
		if err := s.Connect(1, where); err == nil || !strings.Contains(err.Error(), "not a network interface") {
			t.Errorf("%s: %v", where, err)
		}
	}
	if len(s.names) != 0 {
		t.Errorf("connected: %v", s.names)
	}
}
