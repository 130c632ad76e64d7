package network

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/ping"
)

// A pingJob is one run of the verb ping.
type pingJob struct {
	hostJob
	all   bool
	count int
	wait  time.Duration
	form  cli.Format
}

// NewPing returns the verb ping.
func NewPing(c *cli.Console) *cobra.Command { return newPing(c, nil) }

func newPing(c *cli.Console, k *keeper) *cobra.Command {
	j := &pingJob{hostJob: hostJob{c: c}}
	cmd := &cobra.Command{
		Use:   "ping HOST HOST | --all",
		Short: "Send packets between hosts of the running network",
		Long: `Ping sends echo requests between two hosts of the network deployed from this folder,
or with --all between all pairs. It prints how many replies arrived and the round-trip
times. On embedded switches it also prints the path of the last request.

--all prints a line for each host, with the hosts that it reaches and an X for each
unreachable one. The table below summarises pairs of leaves, with the share of packets
on each path. -o json or csv prints every pair.

Exit code 3: packets were lost.`,
		Example: `  p4lb ping h1 h17
  p4lb ping --all
  p4lb ping --all --count 10 -o csv`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case j.all && len(args) > 0, !j.all && len(args) != 2:
				return cli.UsageError(cmd, "ping wants two hosts, or --all")
			case j.count < 1 || j.count > 1000:
				return cli.UsageError(cmd, "--count %d: want 1 to 1000", j.count)
			case j.wait <= 0:
				return cli.UsageError(cmd, "--wait %v: want a time above 0", j.wait)
			}
			if k != nil {
				return k.ping(cmd.Context(), j, cmd.Flags().Changed("count"), args)
			}
			if err := findState(&j.state); err != nil {
				return err
			}
			return ask(cmd.Context(), c, j.state)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&j.all, "all", false, "try all pairs of hosts")
	f.IntVar(&j.count, "count", 5, "requests per pair (with --all: default 1)")
	f.DurationVar(&j.wait, "wait", time.Second, "time to wait for the last replies")
	cli.AddFormat(cmd, &j.form, cli.Table, cli.JSON, cli.CSV)
	j.addFlags(cmd)
	return cmd
}

// ping runs in its own goroutine, so it may read the keeper's fields only inside
// do.
func (k *keeper) ping(ctx context.Context, j *pingJob, counted bool, names []string) error {
	var prober ping.Prober
	var trace ping.Trace
	var topo *fabric.Topology
	if err := k.do(ctx, func(context.Context) {
		prober, trace = k.prober()
		topo = k.plan.Topology
	}); err != nil {
		return err
	}
	if prober == nil {
		return fmt.Errorf("the deployment on target %s has no hosts of p4lb's", k.target.Name())
	}
	var pairs []ping.Pair
	if j.all {
		if pairs = ping.AllPairs(topo); len(pairs) == 0 {
			return fmt.Errorf("the topology %s has %d hosts: want two", topo.Name, len(topo.Hosts))
		}
		if !counted {
			j.count = 1
		}
	} else {
		var two [2]*fabric.Host
		for i, name := range names {
			if two[i] = topo.Host(name); two[i] == nil {
				return noHost(topo, name)
			}
		}
		pairs = []ping.Pair{{From: two[0], To: two[1]}}
	}
	list, err := prober.Probe(ctx, pairs, ping.Options{Count: j.count, Wait: j.wait, Trace: trace})
	if err != nil {
		return err
	}
	return errors.Join(j.show(topo, list), lostError(list))
}

func lostError(list []ping.Result) error {
	sent, received := 0, 0
	for _, r := range list {
		sent, received = sent+r.Sent, received+r.Received
	}
	if sent == received {
		return nil
	}
	return &cli.Failure{Code: cli.ExitRefused, Err: fmt.Errorf("%d of %d packets were lost", sent-received, sent)}
}

func (j *pingJob) show(t *fabric.Topology, list []ping.Result) error {
	rows := cli.Grid{{"FROM", "TO", "SENT", "LOST", "RTT", "PATH"}}
	for _, r := range list {
		rows = append(rows, []string{r.From, r.To, fmt.Sprint(r.Sent), percent(r.Loss()), rtt(r.RTT), pathName(r.Path)})
	}
	if j.form != cli.Table || !j.all {
		return cli.Show(j.c.Out, j.form, rows, list)
	}
	reached := map[string]map[string]bool{}
	for _, r := range list {
		if reached[r.From] == nil {
			reached[r.From] = map[string]bool{}
		}
		reached[r.From][r.To] = r.Received > 0
	}
	for _, from := range t.Hosts {
		line := from.Name + " ->"
		for _, to := range t.Hosts {
			switch {
			case to.Name == from.Name:
			case reached[from.Name][to.Name]:
				line += " " + to.Name
			default:
				line += " X"
			}
		}
		fmt.Fprintln(j.c.Out, line)
	}
	fmt.Fprintln(j.c.Out)
	return cli.Show(j.c.Out, cli.Table, leafRows(t, list), nil)
}

// leafRows sums up the results for each pair of leaves.
func leafRows(t *fabric.Topology, list []ping.Result) cli.Grid {
	type sum struct {
		pairs, sent, received int
		rtt                   time.Duration
		paths                 map[string]int
	}
	sums := map[[2]string]*sum{}
	var order [][2]string
	for _, r := range list {
		at := [2]string{t.Host(r.From).Switch, t.Host(r.To).Switch}
		s := sums[at]
		if s == nil {
			s = &sum{paths: map[string]int{}}
			sums[at] = s
			order = append(order, at)
		}
		s.pairs++
		s.sent += r.Sent
		s.received += r.Received
		s.rtt += r.RTT * time.Duration(r.Received)
		if len(r.Path) > 0 && r.Received > 0 {
			s.paths[pathName(r.Path)]++
		}
	}
	slices.SortFunc(order, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	rows := cli.Grid{{"FROM", "TO", "PAIRS", "LOST", "RTT", "PATHS"}}
	for _, at := range order {
		s := sums[at]
		total := 0
		for _, n := range s.paths {
			total += n
		}
		var paths []string
		for _, p := range slices.Sorted(maps.Keys(s.paths)) {
			paths = append(paths, fmt.Sprintf("%s %.0f %%", p, 100*float64(s.paths[p])/float64(total)))
		}
		if len(paths) == 0 {
			paths = []string{"-"}
		}
		rows = append(rows, []string{
			at[0], at[1], fmt.Sprint(s.pairs), percent(1 - float64(s.received)/float64(s.sent)), rtt(s.rtt / time.Duration(max(1, s.received))), strings.Join(paths, ", "),
		})
	}
	return rows
}

func percent(v float64) string { return fmt.Sprintf("%.4g %%", 100*v) }

func rtt(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.Round(time.Microsecond).String()
}

func pathName(path []string) string {
	if len(path) == 0 {
		return "-"
	}
	return strings.Join(path, "-")
}
