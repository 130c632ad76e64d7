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

// bringUp is the time for which a verb waits for a network that is starting.
const bringUp = 10 * time.Second

// errNoOwner is the error about a folder without a running network.
var errNoOwner = errors.New("no network is running that was deployed from this folder")

// ask passes this command line to the process that runs the network.
func ask(ctx context.Context, c *cli.Console, state string) error {
	var d *deployed.Note
	for begin := time.Now(); ; {
		pid, err := deployed.Owner(state)
		if err != nil {
			return err
		}
		if pid == 0 {
			return cli.Hinted(errNoOwner, "p4lb deploy starts one; p4lb ps lists the networks of other folders")
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
		return cli.Hinted(errors.New("a process already runs the network, and cannot receive requests on this system"), "p4lb down ends it")
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
