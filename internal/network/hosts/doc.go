// Package hosts provides the hosts of a topology for switches in this process: a
// network namespace for each host, connected to its switch by a pair of interfaces,
// and a way for other processes to run commands on a host.
//
// The namespaces have no names. They exist as long as the process that created them. When it
// ends, the kernel also ends the commands on the hosts, so nothing is left behind.
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

// Options configure the connection of hosts to their switches.
type Options struct {
	MTU   int  // MTU of the hosts; 0: 1500
	Rates bool // a host sends no faster than its link is
	Known netspace.Known
	ByMAC bool // switches forward by the MACs of hosts
	// Virtual holds the programs' virtual addresses with their MAC addresses; a zero MAC address
	// stands for the switch's.
	Virtual map[netip.Addr]fabric.MAC
	Log     *slog.Logger
}

// ErrNotHere is wrapped by the error about a machine or user for which hosts are not possible.
var ErrNotHere = errors.New("hosts are not possible here")

// A Call is a request of another process to this one: arguments, the folder that they are
// relative to, and its standard streams.
type Call struct {
	Args         []string
	Dir          string
	In, Out, Err *os.File
}

// An Answer answers calls, several at once, and returns the exit code. ctx ends
// with the caller.
type Answer func(ctx context.Context, c Call) (exit int)
