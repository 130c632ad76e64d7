package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/plain"
)

//go:generate go test . -run ^TestGoldens -update

func newGen(c *cli.Console) *cobra.Command {
	j := &genJob{c: c}
	cmd := &cobra.Command{
		SuggestFor: []string{"generate", "build", "make"},
		Use:        "gen --scheme SCHEME | --all | --granularity G --choice C [-o DIR]",
		Short:      "Generate the P4_16 program of a load balancer",
		Long: `Gen writes the program of a scheme for the v1model architecture (S.p4), the
compiled program (S.json, S.p4info.txtpb), and a manifest (S.manifest.json), which
describes the registers and tables and the work of the controller.

A scheme is a row of the catalogue, see p4lb schemes, with an optional guard
(drill+rlb), or a new composition of blocks:

  p4lb gen --granularity flowlet --signal queue --choice grid --guard rlb

p4lb schemes SCHEME lists the parameters of a scheme, p4lb schemes --blocks the
blocks.

A file of parameters (-f) is YAML with the names of the flags:

  scheme: qall-poly3
  ports: 8
  set: {tb: 500us, tau: 5ms}

For Tofino (--arch tna) and Tofino 2 (--arch t2na), S.json runs in the embedded
switch (p4lb switch --load). The hardware loads the output of p4c for S.p4. The
manifest then also quantifies deviations of the program from the paper, and
S.bf-rt.json is the BfRt schema that p4c writes for Intel's SDE.

With --ipv6 the program also forwards IPv6: it has a second table of routes, by
prefixes of 128 bits, and hashes the 5-tuples of both versions of IP.

Flags override values in the file. After an error no file is written.`,
		Example: `  p4lb gen --scheme qall-poly3 -o build
  p4lb gen --scheme letflow --set gap=100us --ports 8 -o build
  p4lb gen --scheme qall-poly5 --coeffs model.json -o build
  p4lb gen --scheme drill --arch tna -o build
  p4lb gen --scheme conga --ipv6 -o build
  p4lb gen --all -o build`,
		Args: cli.WantArgs(0, 0, "no arguments, the scheme is given by --scheme"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := j.request.Complete(cmd, c); err != nil {
				return err
			}
			if ext := filepath.Ext(j.dir); ext == ".p4" || ext == ".json" {
				return cli.UsageError(cmd, "-o %s: want a folder, as gen writes several files", j.dir)
			}
			return j.run(cmd.Context())
		},
	}
	j.request.AddFlags(cmd)
	cmd.Flags().StringVarP(&j.dir, "output", "o", ".", "write into the folder `DIR`, and create it if missing")
	return cmd
}

// A genJob is one run of the gen verb.
type genJob struct {
	c       *cli.Console
	request cli.Request
	dir     string
}

func (j *genJob) run(ctx context.Context) error {
	schemes, err := j.request.Schemes()
	if err != nil {
		return err
	}
	params, err := j.request.Params(j.c)
	if err != nil {
		return err
	}
	list, err := scheme.MakeAll(ctx, schemes, params)
	if err != nil {
		return err
	}
	if err := j.request.CheckStatePath(&list[0].Manifest); err != nil {
		return err
	}
	return j.write(list)
}

// write writes all files or none.
func (j *genJob) write(list []*scheme.Program) error {
	if err := os.MkdirAll(j.dir, 0o777); err != nil {
		return fmt.Errorf("creating the folder %s: %w", j.dir, plain.Bare(err))
	}
	var out cli.Outputs
	defer out.Discard()
	for _, g := range list {
		files, err := scheme.Files(g)
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := out.Stage(filepath.Join(j.dir, f.Name), f.Data); err != nil {
				return err
			}
		}
		j.c.Log.Debug("generated", "scheme", g.Name, "lines", lineCount(files[0].Data))
	}
	if err := j.c.Finish(&out); err != nil {
		return err
	}
	if j.request.IPv6 && list[0].Manifest.Arch.Hardware() {
		j.c.Say("--ipv6 --arch %s: no compiler for Tofino has compiled these programs yet; they need more stages and containers than those for IPv4", list[0].Manifest.Arch)
	}
	for _, g := range list {
		if m := g.Manifest; m.Choice == "ordered" && m.StatePath == "recirc" && !m.Arch.Hardware() {
			j.c.Say("%s: queue lengths reach ingress at most once in tb, where the paper knows them at once: --state-path shared does, on software switches", m.Scheme)
		}
		for _, t := range g.Manifest.Tables {
			if t.Purpose != manifest.Polynomial {
				continue
			}
			names := 0
			for _, a := range t.Actions {
				names += len(a.Params)
			}
			j.c.Say("%s: the paper prints no polynomial of this degree, so the %d coefficients of %s are missing. Fit them (p4lb fit -o MODEL.json); then gen --coeffs MODEL.json compiles them into the program, or deploy --coeffs MODEL.json writes them to the table", g.Manifest.Scheme, names, t.Name)
		}
	}
	return nil
}

func lineCount(text []byte) int { return bytes.Count(text, []byte("\n")) }
