// Command p4lb generates, runs, deploys and measures load balancers in P4_16.
package main

import (
	"os"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
)

func main() {
	cli.LimitMemory()
	cli.CollectLater()
	os.Exit(run(cli.UntilSignal(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
