package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/own"
)

func newManifestInit(c *cli.Console) *cobra.Command {
	var file string
	var force bool
	var options p4.Options
	cmd := &cobra.Command{
		Use:   "init PROGRAM.p4 [-I DIR] [-D NAME=VALUE] [-o FILE]",
		Short: "Write a first manifest for a program",
		Long: `Init derives a first manifest from a P4_16 program: the action parameters for the
egress port and the MAC of the next hop, the group that a hash selects from, the
content of registers. Each conclusion is marked as a guess, with the reason. A
table without a conclusion stays empty until the manifest lists its entries; a
comment shows their form.

A program with a manifest beside it is a scheme:

  p4lb manifest init mine.p4 -o mine.manifest.yaml
  p4lb lab --scheme ./mine.p4 --vs ecmp,drill`,
		Example: `  p4lb manifest init mine.p4
  p4lb manifest init mine.p4 -o mine.manifest.yaml
  p4lb manifest init -I include -D PORTS=8 mine.p4 -o mine.manifest.yaml`,
		Args: cli.WantArgs(1, 1, "a program"),
		RunE: func(_ *cobra.Command, args []string) error {
			program := args[0]
			if filepath.Ext(program) != ".p4" {
				return fmt.Errorf("%s: want a P4_16 program, FILE.p4", program)
			}
			text, err := own.Init(own.InitRequest{
				Program: program, Shown: program, File: file, Includes: options.IncludeDirs, Defines: options.Defines,
			})
			if err != nil {
				return c.Diagnose(err)
			}
			if file == "" {
				_, err := c.Out.Write(text)
				return err
			}
			if _, err := os.Lstat(file); err == nil && !force {
				return cli.Hinted(fmt.Errorf("%s exists already", file), "overwrite it with --force")
			}
			return c.WriteFile(file, text)
		},
	}
	cli.AddSourceFlags(cmd, &options)
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to `FILE` instead of standard output")
	cmd.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	return cmd
}
