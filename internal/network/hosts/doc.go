// Package hosts provides the hosts of a topology for switches in this process: a
// network namespace for each host, connected to its switch by a pair of interfaces,
// and a way for other processes to run commands on a host.
//
// The namespaces have no names. They exist as long as the process that created them
// and the commands on the hosts, which the kernel ends with it. So nothing is left,
// however the process ends.
package hosts

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/netspace"
)

// Options are how hosts are joined to their switches.
type Options struct {
	MTU   int  // of the hosts; 0: 1500
	Rates bool // a host sends no faster than its link is
	Known netspace.Known
	ByMAC bool // switches forward by the MACs of hosts
	// Virtual are addresses of programs with their MACs; zero: the MAC of the switch.
	Virtual map[netip.Addr]fabric.MAC
	Log     *slog.Logger
}

// ErrNotHere is wrapped by the error about a machine, or a user of it, that can
// have no hosts.
var ErrNotHere = errors.New("hosts are not possible here")

// A Call is what another process asks of this one: arguments, the folder that
// they are relative to, and its standard streams.
type Call struct {
	Args         []string
	Dir          string
	In, Out, Err *os.File
}

// An Answer answers calls, several at once, and returns the exit code. ctx ends
// with the caller.
type Answer func(ctx context.Context, c Call) (exit int)
