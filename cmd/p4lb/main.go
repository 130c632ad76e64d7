// Command p4lb generates, runs, deploys and measures load balancers in P4_16.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/p4lb/p4lb/controller/hosts"
)

func main() {
	hosts.BeFirst()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
