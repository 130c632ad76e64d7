package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/stf"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/own"
	"github.com/p4lb/p4lb/internal/text/plain"
)

func newTest(c *cli.Console) *cobra.Command {
	var opts p4.Options
	var e cli.Engine
	rounds := 0
	cmd := &cobra.Command{
		SuggestFor: []string{"stf", "ptf"},
		Use:        "test [SCHEME | PROG.p4|PROG.json CASES.stf...]",
		Short:      "Run packet tests against a program",
		Long: `Test runs a program on the embedded switch, sends it the packets of each test and
compares the output. The program is P4_16, which test compiles first, or BMv2 JSON
of any compiler. Each test starts with a new switch. In a program for Tofino (TNA,
T2NA), clone sessions are mirror sessions, and packets to ports 68 to 71 of a pipe,
or to port 6 of Tofino 2, recirculate unless the test expects them there.

For a scheme of your own, given as a folder or a manifest, test runs the packet
tests beside its programs. Without arguments it tests the scheme in the current
folder.

A test contains lines in p4c's Simple Test Framework:

  add routes hdr.ipv4.dst:0x0A0001** via(next_hop:1)   add a table entry
  setdefault routes drop()                             set the default action
  packet 3 0200000000010200...                         send a packet to port 3
  expect 1 0200******** 0800$                          expect one from port 1: *
                                                       is any digit, $ the end
  no_packet                                            expect no further packets
  check_counter hits(3) packets == 2                   check a counter
  check_register last(3) lo = 0x0102                   check a cell, or half a pair
  ghost run 5:80                                       queue 5: 80 cells (Tofino 2)
  remove all                                           remove all entries
  mirroring_add 5 2                                    clone session 5 to port 2

Test also accepts the dialect of the Tofino compiler's tests: actions without
parentheses, = as a comparison, statements separated by ;, and \ at the end of a
continued line. A port that a test names must not send unexpected packets. Commands
of simple_switch_CLI: mirroring_*, mc_mgrp_create, mc_node_create, mc_node_update,
mc_node_associate, counter_*, register_*, meter_*, and for tables with an action
profile or selector, whose members and groups count from 0:

  act_prof_create_member paths via 7                   create member 0: via(7)
  act_prof_create_group paths                          create group 0
  act_prof_add_member_to_group paths 0 0               add member 0 to group 0
  table_indirect_add_with_group routes 0x0A000001/8 => 0
                                                       add an entry with group 0
                                                       (table_indirect_add: member)
  table_indirect_set_default routes 0                  use member 0 on a miss`,
		Example: `  p4lb test router.p4 router.stf
  p4lb test -D FLOW_SLOTS=16 flowlet.p4 *.stf
  p4lb test p4src/tna/ecmp.p4 ecmp.stf`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if rounds <= 0 {
				return cli.UsageError(cmd, "--rounds %d: want at least 1", rounds)
			}
			if len(args) == 0 {
				args = []string{"."}
			}
			if len(args) == 1 {
				return testScheme(c, cmd, args[0], e, rounds)
			}
			config, err := c.LoadProgram(args[0], opts)
			if err != nil {
				return err
			}
			return runTests(c, config, args[1:], e, rounds)
		},
	}
	cli.AddSourceFlags(cmd, &opts)
	e.AddFlag(cmd)
	cli.AddRoundsFlag(cmd, &rounds)
	return cmd
}

// testScheme runs the tests of a scheme of the user's own.
func testScheme(c *cli.Console, cmd *cobra.Command, name string, e cli.Engine, rounds int) error {
	if info, err := os.Stat(name); err != nil || !info.IsDir() && !own.HasManifest(name) {
		return cli.UsageError(cmd, "test requires a program and one or more tests")
	}
	s, err := own.Open(".", name)
	if err != nil {
		return err
	}
	tests, err := s.Tests(".")
	if err != nil {
		return err
	}
	if len(tests) == 0 {
		return fmt.Errorf("%s has no packet tests: want *.stf files beside its manifest", name)
	}
	var bad error
	for _, t := range tests {
		p, err := s.Build(codegen.Params{Role: t.Role})
		if err != nil {
			return c.Diagnose(err)
		}
		compiled, err := p.Compiled()
		if err != nil {
			return c.Diagnose(err)
		}
		if err := runTests(c, compiled.Config, t.Files, e, rounds); err != nil {
			bad = err
		}
	}
	return bad
}

// Limits of the output for a failed test, which may quote thousands of packets
// of megabytes each.
const (
	maxFailures = 100  // lines
	maxFailure  = 4000 // bytes per line
)

// runTests runs each test on a new switch and prints the results.
func runTests(c *cli.Console, config *bmv2.Config, names []string, e cli.Engine, rounds int) error {
	var bad error
	for _, name := range names {
		text, err := c.ReadSource(name)
		if err != nil {
			return err
		}
		script, err := stf.Parse(cli.DisplayName(name), string(text))
		if err != nil {
			return err
		}
		options := script.Options(config)
		options.Closures = e == cli.EngineClosures
		options.Rounds = rounds
		var ended []dataplane.Ended
		options.Ended = func(e dataplane.Ended) { ended = append(ended, e) }
		sw, err := dataplane.New(config, options)
		if err != nil {
			return fmt.Errorf("loading the program: %w", err)
		}
		err = script.Run(sw)
		if len(ended) > 0 {
			c.Warning("%s: %v (%d in all; --rounds)", name, ended[0], len(ended))
		}
		if err != nil {
			bad = cli.ErrReported
			fmt.Fprintf(c.Out, "FAIL  %s\n", name)
			lines := strings.Split(strings.TrimSuffix(err.Error(), "\n"), "\n")
			for _, line := range lines[:min(len(lines), maxFailures)] {
				fmt.Fprintf(c.Out, "      %s\n", plain.Printable(line, "\n\t", maxFailure))
			}
			if more := len(lines) - maxFailures; more > 0 {
				fmt.Fprintf(c.Out, "      and %d more lines\n", more)
			}
			continue
		}
		in, out := countPackets(string(text))
		fmt.Fprintf(c.Out, "ok    %-28s %3d packets in, %3d out\n", name, in, out)
	}
	return bad
}

// countPackets counts the packets that a test sends and expects.
func countPackets(text string) (in, out int) {
	for line := range strings.Lines(text) {
		switch fields := strings.Fields(line); {
		case len(fields) == 0:
		case fields[0] == "packet":
			in++
		case fields[0] == "expect":
			out++
		}
	}
	return in, out
}
