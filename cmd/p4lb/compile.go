package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/provenance"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

func newCompile(c *cli.Console) *cobra.Command {
	j := &compileJob{c: c}
	cmd := &cobra.Command{
		SuggestFor: []string{"p4c", "build"},
		Use:        "compile FILE.p4 [-o FILE.json] [--p4info FILE.txtpb] [--entries FILE.txtpb] [--bfrt FILE.json]",
		Short:      "Compile a P4_16 program to BMv2 JSON and P4Info",
		Long: `Compile translates a P4_16 program for v1model, TNA or T2NA into BMv2 JSON (-o).
It also writes P4Info in text form (--p4info), the initial entries of the tables
as a P4Runtime WriteRequest (--entries), and for Tofino the BfRt schema (--bfrt),
the bf-rt.json of Intel's SDE. Without an output flag it only checks the program.
core.p4, v1model.p4, tna.p4 and t2na.p4 are built in. A file of the same name in a
folder given with -I takes precedence.

The included architecture determines the target: tna.p4 is Tofino, t2na.p4 is
Tofino 2. --arch rejects a program for another one. The JSON of a Tofino program
describes its pipes, each with ingress, egress, parsers and deparsers. p4lb switch
and p4lb test run it; simple_switch does not. Tofino hardware loads the output of
p4c instead. p4lb lint checks the limits of the hardware.

Errors and warnings go to standard error. After an error no file is written, and
existing files stay unchanged.`,
		Example: `  p4lb compile router.p4
  p4lb compile router.p4 -o router.json --p4info router.p4info.txtpb
  p4lb compile -I include -D PORTS=16 router.p4 -o router.json
  p4lb compile --arch tna p4src/tna/ecmp.p4 -o ecmp.json --p4info ecmp.p4info.txtpb
  p4lb compile p4src/tna/ecmp.p4 --bfrt bf-rt.json`,
		Args: cli.WantArgs(1, 1, "one program"),
		RunE: func(cmd *cobra.Command, args []string) error {
			j.name = args[0]
			if err := cli.WantArch(cmd, j.opts.Arch); err != nil {
				return err
			}
			named := map[string]string{}
			for _, f := range []struct{ flag, file string }{{"-o", j.json}, {"--p4info", j.p4info}, {"--entries", j.entries}, {"--bfrt", j.bfrt}} {
				if other := named[f.file]; f.file != "" && other != "" {
					return cli.UsageError(cmd, "%s and %s both name %s", other, f.flag, f.file)
				}
				named[f.file] = f.flag
			}
			return j.run()
		},
	}
	flags := cmd.Flags()
	cli.AddSourceFlags(cmd, &j.opts)
	cli.AddArchFlag(cmd, &j.opts.Arch, "accept only programs for the architecture `ARCH`: v1model, tna or t2na")
	flags.StringVarP(&j.json, "output", "o", "", "write BMv2 JSON to `FILE`")
	flags.StringVar(&j.p4info, "p4info", "", "write P4Info to `FILE`")
	flags.StringVar(&j.entries, "entries", "", "write the initial entries of tables to `FILE`, as a WriteRequest")
	flags.StringVar(&j.bfrt, "bfrt", "", "write the BfRt schema of a Tofino program to `FILE`")
	flags.BoolVar(&j.strict, "werror", false, "treat warnings as errors")
	return cmd
}

// A compileJob is one run of the compile verb.
type compileJob struct {
	c      *cli.Console
	name   string
	opts   p4.Options
	strict bool

	json, p4info, entries, bfrt string // output file names
}

func (j *compileJob) run() error {
	p, err := j.c.CheckProgram(j.name, j.opts)
	if err != nil {
		return err
	}
	if err := p.WantArch(); err != nil {
		return j.c.Diagnose(err)
	}
	// Without an output flag, all outputs are generated as a check.
	try := j.json == "" && j.p4info == "" && j.entries == "" && j.bfrt == "" && p.Main() != ""
	if j.json != "" || try {
		if err := p.Lower(); err != nil {
			return j.c.Diagnose(err)
		}
		// The embedded switch must be able to load the result, except that an
		// extern may exist only in the user's own BMv2.
		_, err := dataplane.New(p.Config, dataplane.Options{})
		switch {
		case errors.Is(err, dataplane.ErrUnknownPrimitive):
			p.Warnings = append(p.Warnings, &syntax.Error{Msg: "the program runs only on a BMv2 with this extern: " + err.Error(), Warning: true})
		case err != nil:
			return fmt.Errorf("%s: not supported: %w", j.name, err)
		}
	}
	if j.json != "" {
		text, err := j.c.ReadSource(j.name)
		if err != nil {
			return err
		}
		var list []string
		for _, dir := range j.opts.IncludeDirs {
			list = append(list, "-I", dir)
		}
		for _, macro := range j.opts.Defines {
			list = append(list, "-D", macro)
		}
		made := manifest.MadeBy(provenance.This().String(), "compile", append(list, j.name))
		p.Config = p.Config.MadeBy(made.Generator, made.Command, syntax.Licence(text))
	}
	if j.p4info != "" || try {
		if err := p.Describe(); err != nil {
			return j.c.Diagnose(err)
		}
	}
	if j.entries != "" {
		if err := p.DescribeEntries(); err != nil {
			return j.c.Diagnose(err)
		}
	}
	if j.bfrt != "" {
		if err := p.DescribeBfRt(); err != nil {
			return j.c.Diagnose(err)
		}
	}
	if err := j.c.Warn(p.Warnings, j.strict); err != nil {
		return err
	}
	return j.write(p)
}

// write writes all outputs or none.
func (j *compileJob) write(p *p4.Program) error {
	var out cli.Outputs
	defer out.Discard()
	for _, f := range []struct {
		name string
		data func() []byte
	}{{j.json, p.JSON}, {j.p4info, p.P4InfoText}, {j.entries, p.EntriesText}, {j.bfrt, func() []byte { return p.Schema.JSON() }}} {
		if f.name == "" {
			continue
		}
		if sameFile(f.name, j.name) {
			return fmt.Errorf("writing %s: this is the program itself: want another name", f.name)
		}
		if err := out.Stage(f.name, f.data()); err != nil {
			return err
		}
	}
	return j.c.Finish(&out)
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
