package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/cmd/p4lb/internal/view"
	"github.com/p4lb/p4lb/internal/controller/deployed"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/ui/live"
)

// NewInspect returns the verb inspect.
func NewInspect(c *cli.Console) *cobra.Command {
	j := &inspectJob{c: c}
	cmd := &cobra.Command{
		SuggestFor: []string{"watch", "monitor", "show"},
		Use:        "inspect [SWITCH]... [--register R]... [--watch] [-o FORMAT]",
		Short:      "Show decoded registers, tables and ports of switches",
		Long: `Inspect reads the registers of switches and prints their meaning: queue
occupancy, dequeue interval, trend, congestion index, weights and shares of
paths, delays, load degrees, utilisation, warnings, recirculations, and the
occupancy of flow tables. The manifest of each program defines how to decode its
registers. The rates, drops and queues of all ports come first. For a project
(deploy --p4app) inspect also shows tables and counters.

` + reachHelp + `

On a terminal --watch updates the screen continuously. --record writes every
reading to FILE.csv or FILE.parquet, with the clock of each switch, and --replay
shows such a file. --listen serves a live web page, and the readings for
Prometheus at /metrics. Clients on other machines need the --listen-token or TLS.
These modes run until you interrupt them, or for the time of --for.

Tables and the screen omit internal registers of programs unless you give -v.
Other formats and --register include all registers.`,
		Example: `  p4lb inspect
  p4lb inspect l1 --register fl_port -o csv
  p4lb inspect --watch
  p4lb inspect --record run.parquet --every 100ms --for 1m
  p4lb inspect --listen 127.0.0.1:9464
  p4lb inspect --thrift 127.0.0.1:9090 --manifest qall-poly3.manifest.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			cli.TidiesUp(cmd.Context())
			if err := j.check(cmd); err != nil {
				return err
			}
			return j.run(cmd.Context(), args)
		},
		ValidArgsFunction: j.completeSwitches,
	}
	f := cmd.Flags()
	f.StringArrayVar(&j.registers, "register", nil, "read only register `R`, cell by cell (repeatable)")
	f.BoolVar(&j.noFlows, "no-flows", false, "skip flow tables, the largest registers")
	f.BoolVar(&j.contents, "contents", false, "also show table occupancy and counters (default for --p4app projects)")
	f.BoolVarP(&j.watch, "watch", "w", false, "read repeatedly; on a terminal, update the screen")
	f.DurationVar(&j.every, "every", 500*time.Millisecond, "interval between readings")
	f.DurationVar(&j.span, "for", 0, "stop after this time (default: when interrupted)")
	f.StringVar(&j.record, "record", "", "write all readings to `FILE`.csv or .parquet")
	f.StringVar(&j.replay, "replay", "", "show the recording in `FILE` instead of reading switches")
	j.page.AddFlags(cmd, "the fabric as it changes")
	cli.AddPlaintext(cmd, &j.plaintext, "metrics")
	cli.AddFormat(cmd, &j.form, cli.Table, cli.JSON, cli.CSV, cli.YAML)
	j.reach.addFlags(cmd)
	return cmd
}

// An inspectJob is one run of the inspect verb.
type inspectJob struct {
	c     *cli.Console
	reach reach
	form  cli.Format

	registers []string
	watch     bool
	record    string
	replay    string
	page      view.PageServer
	plaintext bool
	every     time.Duration
	span      time.Duration
	noFlows   bool
	contents  bool

	failed map[string]string // switches without readings, and the printed errors
}

// completeSwitches offers the switches of the deployment.
func (j *inspectJob) completeSwitches(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return j.reach.switchNames(), cobra.ShellCompDirectiveNoFileComp
}

// switchNames returns the names of the deployed switches, if there are any.
func (r *reach) switchNames() []string {
	if findState(&r.state) != nil {
		return nil
	}
	d, _, err := deployed.Read(r.state)
	if err != nil {
		return nil
	}
	return lists.Map(d.Switches, func(sw deployed.Switch) string { return sw.Name })
}

func (j *inspectJob) check(cmd *cobra.Command) error {
	switch {
	case j.every <= 0:
		return cli.UsageError(cmd, "--every %v: want a time above 0", j.every)
	case j.span < 0:
		return cli.UsageError(cmd, "--for %v: want a time above 0", j.span)
	case j.replay != "" && j.contents:
		return cli.UsageError(cmd, "--contents reads switches, --replay does not")
	case j.replay != "" && (j.record != "" || len(j.registers) > 0):
		return cli.UsageError(cmd, "--replay excludes --record and --register: it shows a complete recording")
	case j.noFlows && len(j.registers) > 0:
		return cli.UsageError(cmd, "--no-flows and --register exclude each other: no table is read but what --register names")
	case j.record != "" && cli.RecordFormat(j.record) == "":
		return cli.UsageError(cmd, "--record %s: want a name that ends in .%s", j.record, strings.Join(inspect.RecordFormats, " or ."))
	}
	if err := cmp.Or(
		j.page.Check(cmd),
		cli.Requires(cmd, j.replay == "", "switches to read: --replay reads none", "every", "no-flows", "state", "topology", "scheme", "blocks",
			"set", "file", "coeffs", "state-path", "errata", "arch", "thrift", "grpc", "bfrt", "device-id", "manifest", "tls-ca", "tls-cert", "tls-key"),
		cli.Requires(cmd, j.readsAgain(), "--watch, --for, --record or --listen", "every"),
	); err != nil {
		return err
	}
	return j.reach.check(cmd, j.c)
}

// readsAgain reports whether inspect reads more than one round.
func (j *inspectJob) readsAgain() bool {
	return j.watch || j.record != "" || j.page.Listen != "" || j.span > 0
}

// onScreen reports whether rounds fill the terminal's screen.
func (j *inspectJob) onScreen() bool {
	return j.watch && j.form == cli.Table && cli.IsTerminal(os.Stdout) && cli.IsTerminal(j.c.Err)
}

func (j *inspectJob) run(ctx context.Context, args []string) error {
	if err := j.openPage(); err != nil {
		return err
	}
	if !j.readsAgain() {
		j.every = rateSpan
	}
	source, end, err := j.source(ctx, args)
	if err != nil {
		return err
	}
	defer end()
	if live, ok := source.(*surveySource); ok && j.form == cli.Table && !j.onScreen() {
		live.strain = &strainWatch{c: j.c}
	}
	if j.span > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, j.span)
		defer cancel()
	}
	if !j.readsAgain() && j.replay == "" {
		round, err := source.next(ctx)
		if err == nil && j.form == cli.Table && len(j.registers) == 0 && !round.Idle() {
			round, err = source.next(ctx)
		}
		if err != nil {
			return err
		}
		return j.showRound(round)
	}
	return j.follow(ctx, source)
}

// rateSpan is the time between the two readings from which a table computes rates.
const rateSpan = 100 * time.Millisecond

// follow reads one round after another. It shows them on the screen, writes them to
// a file, serves them to Prometheus, or prints them.
func (j *inspectJob) follow(ctx context.Context, source roundSource) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var sinks []func(*view.Round) error
	if j.record != "" {
		sink, end, err := j.openRecord()
		if err != nil {
			return err
		}
		sinks = append(sinks, sink)
		defer end()
	}
	if j.page.Listen != "" {
		sinks = append(sinks, j.serve(ctx, source.topology(), cancel))
	}
	if j.onScreen() {
		return j.screen(ctx, source, sinks)
	}
	if j.watch || j.record == "" && j.page.Listen == "" {
		sinks = append(sinks, j.printer())
	}
	return j.drain(ctx, source, sinks)
}

// drain passes rounds to the sinks until the source ends. An interrupt counts as a
// normal end.
func (j *inspectJob) drain(ctx context.Context, source roundSource, sinks []func(*view.Round) error) error {
	var last *view.Round
	for {
		r, err := source.next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			if last != nil && j.replay != "" && !j.watch && j.record == "" && j.page.Listen == "" {
				return j.showRound(last)
			}
			return nil
		case ctx.Err() != nil:
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
				return cause
			}
			return nil
		case err != nil:
			return err
		}
		last = r
		for _, sink := range sinks {
			if err := sink(r); err != nil {
				return err
			}
		}
	}
}

// printer returns a sink that prints every round. For a recording that is not
// watched the sink prints nothing, and drain prints the last round.
func (j *inspectJob) printer() func(*view.Round) error {
	if j.replay != "" && !j.watch {
		return func(*view.Round) error { return nil }
	}
	return func(r *view.Round) error {
		if err := j.showRound(r); err != nil {
			return err
		}
		return j.c.Out.Flush()
	}
}

// openRecord begins a recording.
func (j *inspectJob) openRecord() (sink func(*view.Round) error, end func(), err error) {
	file, err := os.Create(j.record)
	if err != nil {
		return nil, nil, cli.CannotWrite(j.record, err)
	}
	recorder, err := inspect.NewRecorder(file, cli.RecordFormat(j.record))
	if err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("writing %s: %w", j.record, err)
	}
	rounds := 0
	sink = func(r *view.Round) error {
		rounds++
		for _, result := range r.Switches {
			if !j.answered(&result) {
				continue
			}
			if err := recorder.Record(result.Snapshot); err != nil {
				return cli.CannotWrite(j.record, err)
			}
		}
		return nil
	}
	end = func() {
		if err := errors.Join(recorder.Close(), file.Close()); err != nil {
			j.c.Log.Error("the recording is not complete", "file", j.record, "error", err)
			return
		}
		j.c.Log.Info("recorded", "file", j.record, "rounds", rounds)
	}
	return sink, end, nil
}

// openPage listens at the address of the page. With only --remote-plaintext, other machines can
// read the metrics but not the page.
func (j *inspectJob) openPage() error {
	if !j.metricsAlone() {
		return j.page.Open()
	}
	l, err := net.Listen("tcp", j.page.Listen)
	if err != nil {
		return cli.Refused("serving metrics at "+j.page.Listen, err)
	}
	j.page.Listener = l
	return nil
}

func (j *inspectJob) metricsAlone() bool {
	return j.plaintext && fabric.Remote(j.page.Listen) && !j.page.Guarded()
}

// serve shows rounds in a page and as metrics. If the server fails, the verb fails.
func (j *inspectJob) serve(ctx context.Context, t *fabric.Topology, cancel context.CancelCauseFunc) func(*view.Round) error {
	exporter := &live.Exporter{}
	if j.metricsAlone() {
		j.c.Log.Info("serving metrics", "address", "http://"+j.page.Listener.Addr().String()+"/metrics")
		go func() {
			if err := exporter.Serve(ctx, j.page.Listener); err != nil {
				cancel(err)
			}
		}()
		return func(r *view.Round) error {
			exporter.Show(r.Frame(true))
			return nil
		}
	}
	page := j.page.Serve(ctx, j.c, t, exporter, cancel)
	context.AfterFunc(ctx, page.End)
	return func(r *view.Round) error {
		exporter.Show(r.Frame(true))
		page.Show(r.PageFrame())
		return nil
	}
}

// screen shows rounds on the terminal until the user quits.
func (j *inspectJob) screen(ctx context.Context, source roundSource, sinks []func(*view.Round) error) error {
	frames := live.SourceFunc(func(ctx context.Context) (*live.Frame, error) {
		r, err := source.next(ctx)
		if err != nil {
			return nil, err
		}
		for _, sink := range sinks {
			if err := sink(r); err != nil {
				return nil, err
			}
		}
		return r.Frame(j.c.Verbose || len(j.registers) > 0), nil
	})
	err := live.Watch(ctx, frames, live.Options{NoColor: bool(!j.c.Paint)})
	if ctx.Err() != nil {
		return nil
	}
	return err
}
