package main

import (
	"fmt"
	"runtime"

	"github.com/p4lb/p4lb/cmd/p4lb/cli"
	"github.com/spf13/cobra"
)

func newVersion(c *cli.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cli.WantArgs(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(c.Out, "p4lb %s %s %s/%s\n", cli.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
