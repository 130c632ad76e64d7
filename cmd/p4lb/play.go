package main

import (
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/ui/play"
)

// defaultPlay is the address to which the links of report.html lead.
const defaultPlay = "127.0.0.1:9465"

func newPlay(c *cli.Console) *cobra.Command {
	var listen string
	var open bool
	cmd := &cobra.Command{
		SuggestFor: []string{"playground", "web", "editor"},
		Use:        "play [--listen ADDR] [--open]",
		Short:      "Serve the playground: write programs, follow packets, run networks in a browser",
		Long: `Play serves the playground on this machine, with p4lb itself as the engine:

  Write     edit a P4 program, generated or your own; errors are underlined
  Packets   follow packets through parser, tables and registers, step by step,
            forwards and backwards, and copy the packet test
  Network   run an experiment, and see links and queues over virtual time
  Learn     load balancing in ten minutes, with four live figures

The same page runs without p4lb in the documentation (make site), with the engine as
WebAssembly in the browser. Nothing leaves the browser there.

The address must be on this machine. It has a token, which the browser keeps in a
cookie; other pages and other users cannot use the engine without it. The engine
reads no files.`,
		Example: `  p4lb play --open
  p4lb play --listen 127.0.0.1:8080`,
		Args: cli.WantArgs(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			addr, err := netip.ParseAddrPort(listen)
			if err != nil || !addr.Addr().IsLoopback() {
				return cli.UsageError(cmd, "--listen %s: want an address of this machine alone, such as %s", listen, defaultPlay)
			}
			token := rand.Text()
			s, err := play.New(token)
			if err != nil {
				return err
			}
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return cli.Hinted(fmt.Errorf("serving at %s: the address is in use or not permitted", listen), "choose a free port: --listen 127.0.0.1:0")
			}
			url := fmt.Sprintf("http://%s/?token=%s", l.Addr(), token)
			fmt.Fprintf(c.Out, "%s\n", url)
			if err := c.Out.Flush(); err != nil {
				return err
			}
			if open {
				if err := openBrowser(url); err != nil {
					c.Warning("--open: %v: open the address yourself", err)
				}
			}
			return s.Serve(cmd.Context(), l)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", defaultPlay, "serve at `ADDR`, a loopback address with a port; port 0 is a free one")
	cmd.Flags().BoolVar(&open, "open", false, "open the page in the browser")
	return cmd
}

// openBrowser opens an address in the user's browser.
func openBrowser(url string) error {
	name, args := "xdg-open", []string{url}
	if runtime.GOOS == "darwin" {
		name = "open"
	}
	return exec.Command(name, args...).Start()
}
