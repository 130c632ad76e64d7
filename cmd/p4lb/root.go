package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/cmd/p4lb/internal/experiment"
	"github.com/p4lb/p4lb/cmd/p4lb/internal/network"
	"github.com/p4lb/p4lb/cmd/p4lb/internal/serve"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// run executes one command line and returns the exit code. An interrupted verb
// that returns no error counts as successful: it had finished, or an interrupt is
// its normal end.
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
		Long: `p4lb builds, tests and compares in-network load balancers written in P4_16.
It needs no p4c, no BMv2 and no root.`,
		Example: `  p4lb lab --scheme qall-poly3 --vs ecmp,letflow,drill --load 0.7   # compare schemes
  p4lb gen --scheme qall-poly3 -o out                              # generate a program
  p4lb deploy --scheme qall-poly3 --topology qall                  # start a live network
  p4lb inspect --watch                                             # watch its registers`,
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
	root.SetHelpFunc(help)
	root.SetFlagErrorFunc(c.FlagError)

	c.AddFlags(root.PersistentFlags())

	root.AddCommand(
		newCompile(c), newLint(c), newFmt(c), newTest(c), newSchemes(c), newGen(c), newResources(c), withRestart(c), newFit(c), newAdvise(c), newTopo(c), network.NewDeploy(c), network.NewPs(c), network.NewPing(c), network.NewLink(c), network.NewHosts(c), network.NewExec(c), network.NewTraffic(c), network.NewDown(c), experiment.New(c), experiment.NewResults(c), newBench(c),
		newNew(c), newManifest(c), newPlay(c),
		network.NewInspect(c), network.NewRegister(c), network.NewObserve(c), newConformance(c), newDoctor(c), newVersion(c), newCompletion(c), newMan(c),
	)
	group(root)
	asDeclared(root)
	return root
}

// withRestart returns the verb switch, with a subverb that restarts a switch of a
// running network.
func withRestart(c *cli.Console) *cobra.Command {
	cmd := serve.New(c)
	cmd.AddCommand(network.NewRestart(c))
	return cmd
}

func init() { cobra.EnableCommandSorting = false } // verbs have the order of their groups

// verbGroups lists the verbs by task, in the order of the help.
var verbGroups = []struct {
	title string
	verbs []string
}{
	{"Compare load balancers", []string{"lab", "results", "play", "advise", "fit", "topo"}},
	{"Generate and compile programs", []string{"schemes", "gen", "compile", "fmt", "lint", "resources"}},
	{"Write your own load balancer", []string{"new", "manifest", "test"}},
	{"Deploy and operate a network", []string{"deploy", "down", "ps", "ping", "link", "hosts", "exec", "traffic", "inspect", "register", "observe", "switch"}},
	{"Check this machine", []string{"doctor", "bench", "version", "completion"}},
}

// group assigns each verb to its group, in the order of verbGroups. Other verbs
// follow without a group.
func group(root *cobra.Command) {
	verbs := root.Commands()
	rank := func(c *cobra.Command) int {
		for i, g := range verbGroups {
			if j := slices.Index(g.verbs, c.Name()); j >= 0 {
				c.GroupID = g.title
				return 100*i + j
			}
		}
		return 100 * len(verbGroups)
	}
	for _, g := range verbGroups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
	}
	root.RemoveCommand(verbs...)
	slices.SortStableFunc(verbs, func(a, b *cobra.Command) int { return rank(a) - rank(b) })
	root.AddCommand(verbs...)
}

// asDeclared makes every verb print its flags in the order of their declaration
// and its usage line unchanged.
func asDeclared(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	cmd.DisableFlagsInUseLine = true
	for _, verb := range cmd.Commands() {
		asDeclared(verb)
	}
}

// noVerb handles a command line without a known verb: it prints the help or
// reports the unknown word.
func noVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		cmd.SetOut(cmd.ErrOrStderr())
		cmd.Help()
		return &cli.Failure{Code: cli.ExitUsage}
	}
	return cli.UnknownVerb(cmd, args[0])
}
