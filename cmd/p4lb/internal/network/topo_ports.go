package network

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/controller/tofino"
)

// NewTopoPorts returns the verb that reads the names of ports from a switch.
func NewTopoPorts(c *cli.Console) *cobra.Command {
	var tls clientTLS
	var bfrt, file string
	timeout := 10 * time.Second
	cmd := &cobra.Command{
		Use:   "ports --bfrt ADDR [-o FILE]",
		Short: "Read the front-panel names of ports from a Tofino switch",
		Long: `Ports reads which device port each front-panel port such as 1/0 is, from a switch
that serves BfRt and runs a program. Copy the line that it prints into the topology,
below defaults or below a switch. Links may then name front-panel ports, as in l1:1/0.
deploy compares the names with the switch again.`,
		Example: `  p4lb topo ports --bfrt 192.0.2.1:50052`,
		Args:    cli.WantArgs(0, 0, "no arguments: --bfrt names the switch"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if bfrt == "" {
				return cli.UsageError(cmd, "topo ports requires --bfrt ADDR")
			}
			config, err := tls.config(c)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			front, err := tofino.FrontPanel(ctx, bfrt, config)
			if err != nil {
				return cli.Refused("reading ports of "+bfrt, err)
			}
			return c.WriteResult(file, fmt.Appendf(nil, "front-panel: %v\n", front))
		},
	}
	f := cmd.Flags()
	f.StringVar(&bfrt, "bfrt", "", "read from the BfRt server at `ADDR`")
	f.DurationVar(&timeout, "timeout", timeout, "wait for the switch at most `TIME`")
	tls.addFlags(cmd)
	cli.AddResultFlag(cmd, &file)
	return cmd
}
