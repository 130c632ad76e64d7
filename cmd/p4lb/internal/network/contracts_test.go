package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/ping"
)

const twoLeaves = `
switches: {l1: {role: leaf}, l2: {role: leaf}, s1: {role: spine}}
hosts: {h1: {ip: 10.0.1.1/24}, h2: {ip: 10.0.1.2/24}, h3: {ip: 10.0.2.1/24}}
links:
  - {ends: [h1, l1], rate: 1G}
  - {ends: [h2, l1], rate: 1G}
  - {ends: [h3, l2], rate: 1G}
  - {ends: [l1, s1], rate: 1G}
  - {ends: [l2, s1], rate: 1G}
`

func load(t *testing.T) *fabric.Topology {
	t.Helper()
	top, err := fabric.Load("test.yaml", []byte(twoLeaves))
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// try runs a verb and returns its output, its exit code and its error.
func try(t *testing.T, verb func(*cli.Console) *cobra.Command, args ...string) (out string, code int, err error) {
	t.Helper()
	var stdout bytes.Buffer
	c := cli.New(t.Context(), args, strings.NewReader(""), &stdout, &stdout)
	c.SetUp()
	cmd := verb(c)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{}, args...)) // without a list, cobra takes the arguments of the test
	err = cmd.ExecuteContext(context.WithoutCancel(t.Context()))
	c.Out.Flush()
	if f, ok := errors.AsType[*cli.Failure](err); ok {
		code = f.Code
	}
	return stdout.String(), code, err
}

// Invalid command lines fail before p4lb looks for a network, with exit code
// 2 and the value that is wrong.
func TestUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, test := range []struct {
		verb func(*cli.Console) *cobra.Command
		args string
		want string
	}{
		{NewObserve, "", "observe requires a file for the dataset"},
		{NewObserve, "-o x.txt", "-o x.txt: want a name that ends in .csv or .parquet"},
		{NewObserve, "-o x.csv --every 0s", "--every 0s: want a time above 0"},
		{NewObserve, "-o x.csv --every -1ms", "--every -1ms: want a time above 0"},
		{NewObserve, "-o x.csv --for -1s", "--for and --rows cannot be negative"},
		{NewObserve, "-o x.csv --rows -1", "--for and --rows cannot be negative"},
		{NewPing, "h1", "ping wants two hosts, or --all"},
		{NewPing, "h1 h2 --all", "ping wants two hosts, or --all"},
		{NewPing, "h1 h2 --count 0", "--count 0: want 1 to 1000"},
		{NewPing, "h1 h2 --count 1001", "--count 1001: want 1 to 1000"},
		{NewPing, "h1 h2 --wait 0s", "--wait 0s: want a time above 0"},
		{NewLink, "down", "down requires links such as l1-s1"},
		{NewLink, "up", "up requires links such as l1-s1"},
		{NewLink, "set --rate 1G", "set requires links such as l1-s1"},
		{NewLink, "set l1-s1", "link set wants --rate, --delay, --loss or --jitter"},
		{NewLink, "set l1-s1 --rate 0", "--rate 0: want a rate such as 10Mbps"},
		{NewLink, "set l1-s1 --rate fast", "--rate fast: want a rate such as 10Mbps"},
		{NewLink, "set l1-s1 --loss 101%", "--loss 101%: want a share such as 1% or 0.01"},
		{NewLink, "set l1-s1 --delay -1ms", "--delay -1ms, --jitter 0s: want times of at least 0"},
		{NewLink, "set l1-s1 --jitter -1ms", "--delay 0s, --jitter -1ms: want times of at least 0"},
	} {
		_, code, err := try(t, test.verb, strings.Fields(test.args)...)
		if err == nil || !strings.Contains(err.Error(), test.want) || code != cli.ExitUsage {
			t.Errorf("%s: %v with exit code %d, want %q with %d", test.args, err, code, test.want, cli.ExitUsage)
		}
		if _, err := os.Stat("x.csv"); err == nil {
			t.Fatalf("%s: a file is left", test.args)
		}
	}
}

func TestParseShare(t *testing.T) {
	for text, want := range map[string]float64{"0": 0, "1": 1, "0.01": 0.01, "1%": 0.01, "100%": 1, "0.5 %": -1, "101%": -1, "1.01": -1, "-0.1": -1, "NaN": -1, "x": -1, "": -1, "%": -1} {
		got, err := parseShare(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %v, want %v (-1: an error)", text, got, want)
		}
	}
}

// A change of a link is in the plan only if the controller routes around it.
func TestAdjusted(t *testing.T) {
	top := load(t)
	down := func(at int, routed bool) linkChange {
		l := top.Links[at]
		l.Down, l.Rate = true, l.Rate/2
		return linkChange{link: l, routed: routed}
	}
	got, err := adjusted(top, map[int]linkChange{3: down(3, true), 4: down(4, false)})
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range got.Links {
		want := top.Links[i].Rate
		if i == 3 {
			want /= 2
		}
		if l.Down != (i == 3) || l.Rate != want {
			t.Errorf("link %d: down %v, rate %v; want %v", i, l.Down, l.Rate, want)
		}
	}
	if top.Links[3].Down {
		t.Error("the topology itself has changed")
	}
}

func TestAge(t *testing.T) {
	const day = 24 * time.Hour
	for ago, want := range map[time.Duration]string{
		5 * time.Second: "5s", 90 * time.Second: "2m", 10 * time.Minute: "10m", 3 * time.Hour: "3h", 47 * time.Hour: "47h", 2 * day: "2d", 10 * day: "10d", 30 * day: "30d",
	} {
		if got := age(time.Now().Add(-ago)); got != want {
			t.Errorf("%v ago: %s, want %s", ago, got, want)
		}
	}
}

func TestAbbreviated(t *testing.T) {
	names := strings.Fields("a b c d e f g h i j k l m n")
	for n, want := range map[int]string{
		0: "", 1: "a", 2: "a, b", 12: "a, b, c, d, e, f, g, h, i, j, k, l", 13: "a, b, c, d, e, f, g, h, i, j, k, l and 1 more", 14: "a, b, c, d, e, f, g, h, i, j, k, l and 2 more",
	} {
		if got := abbreviated(names[:n]); got != want {
			t.Errorf("%d names: %s, want %s", n, got, want)
		}
	}
}

// Lost packets make ping fail with the number of the refused, however few they are.
func TestLostPackets(t *testing.T) {
	for _, test := range []struct {
		list []ping.Result
		want string
	}{
		{nil, ""},
		{[]ping.Result{{Sent: 3, Received: 3}, {Sent: 1, Received: 1}}, ""},
		{[]ping.Result{{Sent: 3, Received: 2}, {Sent: 7, Received: 5}}, "3 of 10 packets were lost"},
		{[]ping.Result{{Sent: 1}}, "1 of 1 packets were lost"},
	} {
		err := lostError(test.list)
		if test.want == "" {
			if err != nil {
				t.Errorf("%v: %v", test.list, err)
			}
			continue
		}
		f, ok := errors.AsType[*cli.Failure](err)
		if !ok || f.Code != cli.ExitRefused || f.Error() != test.want {
			t.Errorf("%v: %v, want %s with exit code %d", test.list, err, test.want, cli.ExitRefused)
		}
	}
}

// The results of all pairs are summed up for each pair of leaves: losses, the mean time
// of the replies, and the share of each path among the pairs that have one.
func TestPingOfLeaves(t *testing.T) {
	const ms = time.Millisecond
	list := []ping.Result{
		{From: "h1", To: "h3", Sent: 4, Received: 3, RTT: 2 * ms, Path: []string{"l1", "s1", "l2"}},
		{From: "h2", To: "h3", Sent: 4, Received: 1, RTT: 6 * ms, Path: []string{"l1", "s2", "l2"}},
		{From: "h3", To: "h1", Sent: 2, Received: 0, Path: []string{"l2"}},
		{From: "h1", To: "h2", Sent: 1, Received: 1, RTT: ms},
	}
	got := fmt.Sprint(leafRows(load(t), list))
	want := fmt.Sprint(cli.Grid{
		{"FROM", "TO", "PAIRS", "LOST", "RTT", "PATHS"},
		{"l1", "l1", "1", "0 %", "1ms", "-"},
		{"l1", "l2", "2", "50 %", "3ms", "l1-s1-l2 50 %, l1-s2-l2 50 %"},
		{"l2", "l1", "1", "100 %", "-", "-"},
	})
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var out bytes.Buffer
	c := cli.New(t.Context(), nil, strings.NewReader(""), &out, &out)
	j := &pingJob{hostJob: hostJob{c: c}, all: true, form: cli.Table}
	if err := j.show(load(t), list); err != nil {
		t.Fatal(err)
	}
	c.Out.Flush()
	if head := "h1 -> h2 h3\nh2 -> X h3\nh3 -> X X\n\n"; !strings.HasPrefix(out.String(), head) {
		t.Errorf("got\n%s\nwant first\n%s", &out, head)
	}
}

// The flags of a BMv2 deployment exclude each other, and are refused for other targets.
func TestBMv2Flags(t *testing.T) {
	for _, test := range []struct {
		args, target string
		ok           bool
	}{
		{"", targetBMv2, true}, {"", targetServers, true},
		{"--keep", targetBMv2, true}, {"--remove --name x", targetBMv2, true}, {"--keep --name x", targetBMv2, true}, {"--attach", targetBMv2, true},
		{"--keep", targetServers, false}, {"--remove", targetServers, false}, {"--attach", targetServers, false}, {"--name x", targetServers, false},
		{"--keep --remove", targetBMv2, false}, {"--attach --keep", targetBMv2, false}, {"--attach --remove", targetBMv2, false}, {"--attach --name x", targetBMv2, false},
	} {
		var b bmv2Flags
		cmd := &cobra.Command{Use: "deploy"}
		b.addFlags(cmd)
		if err := cmd.ParseFlags(strings.Fields(test.args)); err != nil {
			t.Fatal(err)
		}
		if err := b.check(cmd, test.target); (err == nil) != test.ok {
			t.Errorf("%s for %s: %v", test.args, test.target, err)
		}
	}
}

// A client's certificate needs the certificates of the servers.
func TestClientTLS(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := cli.New(t.Context(), nil, strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
	for _, test := range []struct {
		tls  clientTLS
		want string
	}{
		{clientTLS{}, ""},
		{clientTLS{cert: "x"}, "--tls-cert and --tls-key want --tls-ca"},
		{clientTLS{key: "x"}, "--tls-cert and --tls-key want --tls-ca"},
		{clientTLS{ca: empty}, "there is no certificate in it"},
		{clientTLS{ca: filepath.Join(dir, "none.pem")}, "none.pem"},
	} {
		config, err := test.tls.config(c)
		if config != nil {
			t.Errorf("%+v: a configuration", test.tls)
		}
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%+v: %v, want %q", test.tls, err, test.want)
		}
	}
}

// An address of the topology that is in use is found before anything is made.
func TestAddressesFree(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	top := load(t)
	for i := range top.Switches {
		top.Switches[i].GRPC = "127.0.0.1:0"
	}
	j := &deployJob{}
	if err := j.addressesFree(&plan.Plan{Topology: top}); err != nil {
		t.Errorf("free addresses: %v", err)
	}
	i := slices.IndexFunc(top.Switches, func(s fabric.Switch) bool { return s.Name == "l2" })
	top.Switches[i].GRPC = l.Addr().String()
	err = j.addressesFree(&plan.Plan{Topology: top})
	f, ok := errors.AsType[*cli.Failure](err)
	if want := fmt.Sprintf("the addresses of the topology are in use: %s (l2)", l.Addr()); !ok || f.Code != cli.ExitRefused || f.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	j.embedded.anyPort = true
	if err := j.addressesFree(&plan.Plan{Topology: top}); err != nil {
		t.Errorf("with --any-port: %v", err)
	}
}
