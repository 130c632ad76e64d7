package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/controller/deployed"
	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/hosts"
	"github.com/p4lb/p4lb/internal/network/testbed"
	"github.com/p4lb/p4lb/internal/network/traffic"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// A trafficJob is one run of the traffic verb.
type trafficJob struct {
	hostJob
	flows    spec.Traffic
	cut      string
	load     string
	list     string
	duration time.Duration
	drain    time.Duration
	seeds    int
	tcp      string
	rdma     bool
	metrics  []string
	dir      string
	format   cli.Format
}

// NewTraffic returns the verb traffic.
func NewTraffic(c *cli.Console) *cobra.Command {
	j := &trafficJob{hostJob: hostJob{c: c}}
	cmd := &cobra.Command{
		Use:   "traffic [--workload W] [--load L]",
		Short: "Send flows between the hosts of the deployed network",
		Long: `Traffic sends flows between the hosts of the network deployed from this folder, with
the kernel's TCP, and prints their completion times.

Sizes, start times and pairs of hosts are random as in the lab, with the same seeds.
Alternatively a file lists them (--flows). A completion time lasts from the start of
the connection to the receiver's last byte. The kernel counts retransmissions,
timeouts and reordered segments.

--rdma sends each flow as a message of RoCEv2: packets to UDP port 4791 with a BTH, 1024
bytes of payload, and source port 10000 + n for flow n. Receivers
acknowledge packets in the order of their sequence numbers and refuse others; the
sender then goes back to the missing packet. out-of-order counts the packets that
arrive after a packet that was sent later. The CRC of RoCE (ICRC) is 0.

p4lb lab --on embedded does the same for several schemes, each in its own network,
and compares them.`,
		Example: `  p4lb traffic --load 0.5 --duration 10s
  p4lb traffic --pattern incast --cut 1MB --seeds 3 -o flows
  p4lb traffic --to web --load 0.2
  p4lb traffic --flows list.txt
  p4lb traffic --rdma --load 0.3 --cut 1MB`,
		Args: cli.WantArgs(0, 0, "flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error { return j.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&j.flows.Workload, "workload", "websearch", "flow sizes: a `NAME` of lab list workloads, or a file of lines \"bytes p\"")
	f.StringVar(&j.cut, "cut", "", "limit flow sizes to `SIZE`, such as 1MB")
	f.StringVar(&j.load, "load", "0.5", "`LOAD` from 0 to 1")
	f.StringVar(&j.flows.LoadOf, "load-of", spec.OfHosts, "a load of 1 is the capacity of `BASE`: hosts (all senders), fabric (the links from leaves to spines), or a rate")
	f.StringVar(&j.flows.Pattern, "pattern", spec.Halves, "senders and receivers: "+strings.Join(spec.Patterns[:4], ", "))
	f.StringSliceVar(&j.flows.To, "to", nil, "send to these `HOSTS`: hosts, leaves, ranges such as h1..h4, or services of the topology; all hosts send")
	f.StringVar(&j.list, "flows", "", "send the flows of `FILE` instead: lines \"SOURCE DESTINATION BYTES SECONDS\"")
	f.DurationVar(&j.duration, "duration", 5*time.Second, "flows start within this `TIME`")
	f.DurationVar(&j.drain, "drain", 30*time.Second, "wait this `TIME` for flows to end")
	f.IntVar(&j.seeds, "seeds", 1, "send the flows of the seeds 1 to `N`, one after the other")
	f.StringVar(&j.tcp, "congestion", "", "the kernel's congestion control, a `NAME` such as reno or bbr (default: the setting of the machine)")
	f.BoolVar(&j.rdma, "rdma", false, "send RDMA messages (RoCEv2) instead of TCP")
	f.StringSliceVar(&j.metrics, "metrics", []string{"fct-mean", "fct-mean:short", "fct-p99", "slowdown-mean", "out-of-order", "retransmitted", "timeouts", "unfinished"}, "print these `METRICS`; lab list metrics lists all")
	f.StringVarP(&j.dir, "output", "o", "", "write a row for each flow into files of the folder `DIR`")
	cli.AddFormatFlag(cmd, &j.format, "format", "", []cli.Format{cli.Table, cli.JSON, cli.CSV})
	j.addFlags(cmd)
	cli.CompleteWith(cmd, "workload", spec.Workloads())
	cli.CompleteWith(cmd, "pattern", spec.Patterns[:4])
	return cmd
}

func (j *trafficJob) run(cmd *cobra.Command) error {
	switch {
	case j.seeds < 1 || j.seeds > 1000:
		return cli.UsageError(cmd, "--seeds %d: want 1 to 1000", j.seeds)
	case j.rdma && j.tcp != "":
		return cli.UsageError(cmd, "--congestion is for TCP: want it without --rdma")
	case j.duration <= 0 || j.drain <= 0:
		return cli.UsageError(cmd, "--duration %v, --drain %v: want times above 0", j.duration, j.drain)
	}
	if err := cli.Requires(cmd, j.list == "", "flows to draw: --flows lists them", "workload", "cut", "load", "load-of", "pattern", "to"); err != nil {
		return err
	}
	switch {
	case len(j.flows.To) == 0:
	case !cmd.Flags().Changed("pattern"):
		j.flows.Pattern = spec.AllToAll
	case j.flows.Pattern != spec.AllToAll && j.flows.Pattern != spec.Incast:
		return cli.UsageError(cmd, "--to is for --pattern %s and %s: %s chooses its receivers", spec.AllToAll, spec.Incast, j.flows.Pattern)
	}
	d, t, err := j.read()
	if err != nil {
		return err
	}
	if len(t.Hosts) < 2 {
		return fmt.Errorf("the topology %s has %d hosts: traffic wants two", t.Name, len(t.Hosts))
	}
	if _, err := j.host(d, t, t.Hosts[0].Name); err != nil {
		return err
	}
	x, err := j.experiment(cmd, d)
	if err != nil {
		return err
	}
	network, err := openSockets(d, t)
	if err != nil {
		return cli.Hinted(err, "p4lb deploy brings the network up again")
	}
	defer network.Close()
	world := lab.Embedded
	if d.Name != "" {
		world = lab.BMv2
	}
	if err := warnOfStrain(j.c, x, t, world); err != nil {
		return err
	}
	unread, before := unreadBy(cmd.Context(), j.c, j.state), readCPU()
	row, err := j.send(cmd.Context(), x, t, network)
	warnOfBusy(j.c, before, readCPU())
	warnOfUnread(j.c, unreadBy(cmd.Context(), j.c, j.state)-unread)
	if row == nil || len(row.Runs) == 0 {
		return err
	}
	for _, alert := range row.Runs[0].Alerts {
		j.c.Warning("%s", alert)
	}
	return errors.Join(j.show(row, x.Classes), err)
}

// deployedTopology is the experiment's name for the topology of the deployment.
const deployedTopology = "deployed.yaml"

// experiment returns an experiment with the flows of the job, from which the lab draws them.
func (j *trafficJob) experiment(cmd *cobra.Command, d *deployed.Note) (*spec.Experiment, error) {
	x := &spec.Experiment{
		Name: "traffic", Seeds: spec.FirstSeeds(j.seeds), Metrics: j.metrics,
		Schemes: []spec.Scheme{{Scheme: "ecmp"}}, // The program does not matter, because the flows do not depend on it.
	}
	x.Topology.Name = deployedTopology
	x.Duration, x.Drain = spec.Time(j.duration), spec.Time(j.drain)
	x.Warmup = spec.NoWarmup()
	var l spec.LoadLevel
	if err := l.Parse(j.load); err != nil {
		return nil, cli.UsageError(cmd, "--load: %w", err)
	}
	x.Loads = []spec.LoadLevel{l}
	j.flows.Cut = spec.Uncut
	if j.cut != "" {
		if err := j.flows.Cut.Parse(j.cut); err != nil {
			return nil, cli.UsageError(cmd, "--cut: %w", err)
		}
	}
	if j.list != "" {
		j.flows = spec.Traffic{Pattern: spec.List, File: j.list}
	}
	x.Traffic = []spec.Traffic{j.flows}
	return x, x.Complete("traffic", func(name string) ([]byte, error) {
		if name == deployedTopology {
			return []byte(d.Topology), nil
		}
		return plain.ReadFile(name)
	}, nil)
}

// send sends the flows.
func (j *trafficJob) send(ctx context.Context, x *spec.Experiment, t *fabric.Topology, n *socketNetwork) (*lab.Row, error) {
	var files func(seed uint64) (io.WriteCloser, error)
	if j.dir != "" {
		if err := os.MkdirAll(j.dir, 0o777); err != nil {
			return nil, fmt.Errorf("making %s: %w", j.dir, plain.Bare(err))
		}
		files = func(seed uint64) (io.WriteCloser, error) {
			return os.Create(filepath.Join(j.dir, fmt.Sprintf("flows-%d.csv", seed)))
		}
	}
	o := traffic.Options{Congestion: j.tcp}
	if j.rdma {
		o.RDMA = n.datagrams
	}
	return lab.Send(ctx, x, t, n, o, files)
}

// show prints the metrics, with confidence intervals over the seeds.
func (j *trafficJob) show(row *lab.Row, classes []spec.Class) error {
	rows := cli.Grid{{"METRIC", "VALUE", "UNIT", "ABOUT"}}
	list := []map[string]any{}
	for _, name := range j.metrics {
		m, _ := spec.MetricNamed(name, classes) // checked before
		e := row.Estimate(name)
		rows = append(rows, []string{name, e.String(), m.Unit, m.About})
		one := map[string]any{"metric": name, "unit": m.Unit, "runs": e.N}
		if e.N > 0 {
			one["mean"], one["half_interval"] = e.Mean, e.Half
		}
		list = append(list, one)
	}
	return cli.Show(j.c.Out, j.format, rows, list)
}

// A socketNetwork opens sockets on the hosts of a deployment.
type socketNetwork struct {
	topo              *fabric.Topology
	socket, datagrams func(host string) (int, error)
	end               func() error
}

// openSockets opens access to sockets on the hosts of a deployment.
func openSockets(d *deployed.Note, t *fabric.Topology) (*socketNetwork, error) {
	if d.Name != "" {
		s := testbed.Sockets(d.Name)
		return &socketNetwork{t, s.Socket, s.Datagrams, func() error { return nil }}, nil
	}
	s, err := hosts.Knock(d.Control)
	if err != nil {
		return nil, err
	}
	return &socketNetwork{t, s.Socket, s.Datagrams, s.Close}, nil
}

// Socket creates a socket on a host.
func (n *socketNetwork) Socket(host string) (int, error) { return n.socket(host) }

// Address returns a host's address.
func (n *socketNetwork) Address(host string) netip.Addr { return n.topo.Host(host).IP.Addr() }

// Close releases the hosts.
func (n *socketNetwork) Close() error { return n.end() }
