package network

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/controller/deployed"
	"github.com/p4lb/p4lb/internal/network/hosts"
)

// bringUp is how long a verb waits for a network that comes up.
const bringUp = 10 * time.Second

// errNoOwner is the error about a network without a process that runs it.
var errNoOwner = errors.New("no process runs the network")

// ask has the process that runs a network carry out this command line.
func ask(ctx context.Context, c *cli.Console, state string) error {
	var d *deployed.Note
	for begin := time.Now(); ; {
		pid, err := deployed.Owner(state)
		if err != nil {
			return err
		}
		if pid == 0 {
			return cli.Hinted(errNoOwner, "p4lb deploy does; p4lb ps lists networks")
		}
		d, _, err = deployed.Read(state)
		if err == nil {
			break
		}
		if !errors.Is(err, deployed.ErrNothing) {
			return err
		}
		if time.Since(begin) > bringUp {
			return &cli.Failure{Code: cli.ExitRefused, Err: fmt.Errorf("process %d has been bringing the network up for %v", pid, bringUp), Hint: "p4lb down ends it"}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	if d.Control == "" {
		return cli.Hinted(errors.New("a process runs the network already, and takes no requests on this system"), "p4lb down ends it")
	}
	if err := c.Out.Flush(); err != nil {
		return err
	}
	switch code, err := hosts.Ask(ctx, d.Control, c.Args()); {
	case err != nil:
		return &cli.Failure{Code: cli.ExitRefused, Err: err}
	case code != 0:
		return &cli.Failure{Code: code}
	}
	return nil
}
