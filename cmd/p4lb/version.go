package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/provenance"
)

func newVersion(c *cli.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and the commit of the build",
		Args:  cli.WantArgs(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(c.Out, "p4lb %v %s %s/%s\n", provenance.This(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
