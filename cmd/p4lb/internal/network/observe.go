package network

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/ui/live"
)

// NewObserve returns the verb observe.
func NewObserve(c *cli.Console) *cobra.Command {
	j := &observeJob{c: c}
	cmd := &cobra.Command{
		Use:   "observe [SWITCH]... -o FILE [--rows N] [--for TIME]",
		Short: "Sample ports into a dataset for p4lb fit",
		Long: `Observe samples the egress ports that lead to other switches, and writes a dataset for
fitting QALL's congestion index (Section III-B). Each row is a port in a sample:
clock_us, switch, port and these columns:

  egress_traffic     rate of the port between two samples, in kbit/s
  occupancy          occupancy of its queue, in percent
  dequeue_interval   time between two packets that left the queue, in us

A port without a report since the previous sample has no row. The scheme must measure
queue behaviour, as qall-pkt does. The paper observes the spine switches of a fabric
under load.

` + reachHelp,
		Example: `  p4lb observe s1 s2 -o obs.parquet --rows 200000
  p4lb observe -o obs.csv --for 30s --every 5ms
  p4lb fit --data obs.csv --degree 3 -o model.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			cli.TidiesUp(cmd.Context())
			if err := j.check(cmd); err != nil {
				return err
			}
			return j.run(cmd.Context(), args)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return j.reach.switchNames(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	f := cmd.Flags()
	f.StringVarP(&j.file, "output", "o", "", "write the dataset to `FILE`.csv or .parquet")
	f.DurationVar(&j.every, "every", 10*time.Millisecond, "interval between samples")
	f.DurationVar(&j.span, "for", 0, "stop after this time (default: when interrupted)")
	f.IntVar(&j.rows, "rows", 0, "stop after `N` rows (default: when interrupted)")
	j.reach.addFlags(cmd)
	return cmd
}

// An observeJob is one run of the observe verb.
type observeJob struct {
	c     *cli.Console
	reach reach
	file  string
	every time.Duration
	span  time.Duration
	rows  int
}

func (j *observeJob) check(cmd *cobra.Command) error {
	switch {
	case j.file == "":
		return cli.UsageError(cmd, "observe requires a file for the dataset: -o FILE.csv")
	case cli.RecordFormat(j.file) == "":
		return cli.UsageError(cmd, "-o %s: want a name that ends in .%s", j.file, strings.Join(inspect.RecordFormats, " or ."))
	case j.every <= 0:
		return cli.UsageError(cmd, "--every %v: want a time above 0", j.every)
	case j.span < 0 || j.rows < 0:
		return cli.UsageError(cmd, "--for and --rows cannot be negative")
	}
	return j.reach.check(cmd, j.c)
}

func (j *observeJob) run(ctx context.Context, args []string) error {
	s, err := j.reach.open(ctx, j.c, args)
	if err != nil {
		return err
	}
	defer s.close()
	var observers []*inspect.Observer
	for _, sw := range s.switches {
		o, err := inspect.NewObserver(sw.node, sw.registers)
		if err != nil {
			return explained(err)
		}
		if err := o.Ready(ctx); err != nil {
			return explained(err)
		}
		observers = append(observers, o)
	}
	file, err := os.Create(j.file)
	if err != nil {
		return cli.CannotWrite(j.file, err)
	}
	n, err := j.collect(ctx, observers, file)
	if e := file.Close(); err == nil && e != nil {
		err = cli.CannotWrite(j.file, e)
	}
	if err != nil {
		return err
	}
	j.c.Log.Info("observed", "file", j.file, "rows", n)
	if n == 0 {
		j.c.Log.Warn("no port has been reported: is there traffic?")
	}
	return nil
}

// collect samples until it has enough rows.
func (j *observeJob) collect(ctx context.Context, observers []*inspect.Observer, file *os.File) (n int, err error) {
	w, err := inspect.NewObservationWriter(file, cli.RecordFormat(j.file))
	if err != nil {
		return 0, fmt.Errorf("writing %s: %w", j.file, err)
	}
	if j.span > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, j.span)
		defer cancel()
	}
	progress := live.NewProgress(live.ProgressOptions{
		Out: j.c.Err, Terminal: cli.IsTerminal(j.c.Err) && !j.c.Quiet, What: "observe", Unit: "rows", Total: j.rows,
	})
	defer progress.End()
	tick := time.NewTicker(j.every)
	defer tick.Stop()
	var list []inspect.Observation
	for j.rows == 0 || n < j.rows {
		list = list[:0]
		for _, o := range observers {
			if list, err = o.Sample(ctx, list); err != nil && ctx.Err() == nil {
				return n, errors.Join(vanished(err), w.Close())
			}
		}
		if ctx.Err() != nil {
			break
		}
		if j.rows > 0 {
			list = list[:min(len(list), j.rows-n)]
		}
		if err := w.Write(list); err != nil {
			return n, cli.CannotWrite(j.file, err)
		}
		n += len(list)
		if j.rows > 0 {
			progress.Set(n, "")
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	if err := w.Close(); err != nil {
		return n, cli.CannotWrite(j.file, err)
	}
	return n, nil
}
