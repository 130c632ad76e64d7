package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/cmd/p4lb/internal/experiment"
	"github.com/p4lb/p4lb/cmd/p4lb/internal/network"
	"github.com/p4lb/p4lb/cmd/p4lb/internal/serve"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// run executes one command line and returns the exit code. A verb that ends well
// although it was interrupted was done, or is one that is ended that way.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := cli.New(ctx, args, stdin, stdout, stderr)
	root := newRoot(c)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if e := c.Out.Flush(); err == nil && e != nil {
		err = fmt.Errorf("writing to standard output: %w", plain.Bare(e))
	}
	if err != nil && ctx.Err() != nil {
		err = &cli.Failure{Code: cli.ExitInterrupted, Err: errors.New("interrupted")}
	}
	return c.Report(err)
}

func newRoot(c *cli.Console) *cobra.Command {
	root := &cobra.Command{
		Use:   "p4lb VERB [ARG]...",
		Short: "Generate, run, deploy and measure load balancers in P4_16",
		Long: `p4lb generates, compiles, runs, deploys, measures and inspects in-network load
balancers written in P4_16, in one binary: no p4c, no BMv2, nothing to install.`,
		Example: `  p4lb schemes
  p4lb gen --scheme qall-poly3 -o out
  p4lb lab --scheme qall-poly3 --vs ecmp,letflow,drill --load 0.7
  p4lb deploy --scheme qall-poly3 --topology qall
  p4lb inspect --watch`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,

		DisableFlagsInUseLine: true,
		RunE:                  noVerb,
		PersistentPreRun:      func(*cobra.Command, []string) { c.SetUp() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(newHelp())
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	root.SetUsageFunc(usage)
	root.SetFlagErrorFunc(c.FlagError)

	c.AddFlags(root.PersistentFlags())

	root.AddCommand(
		newCompile(c), newLint(c), newFmt(c), newTest(c), newSchemes(c), newGen(c), newResources(c), serve.New(c), newFit(c), newAdvise(c), newTopo(c), network.NewDeploy(c), network.NewPs(c), network.NewHosts(c), network.NewExec(c), network.NewTraffic(c), network.NewDown(c), experiment.New(c), experiment.NewResults(c), newBench(c),
		newNew(c), newManifest(c),
		network.NewInspect(c), network.NewRegister(c), network.NewObserve(c), newConformance(c), newDoctor(c), newVersion(c), newCompletion(c), newMan(c),
	)
	asDeclared(root)
	return root
}

// asDeclared has all verbs print their flags in the order in which they are
// declared, and their usage as it is written.
func asDeclared(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	cmd.DisableFlagsInUseLine = true
	for _, verb := range cmd.Commands() {
		asDeclared(verb)
	}
}

// noVerb is what the root does by itself: it explains what is missing.
func noVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		cmd.SetOut(cmd.ErrOrStderr())
		cmd.Help()
		return &cli.Failure{Code: cli.ExitUsage}
	}
	return cli.UnknownVerb(cmd, args[0])
}
