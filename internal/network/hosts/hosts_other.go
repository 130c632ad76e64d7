//go:build !linux

package hosts

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/p4lb/p4lb/internal/device/ports"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

var errLinux = fmt.Errorf("%w: they are network namespaces, which Linux alone has", ErrNotHere)

// A Network is the hosts of a topology.
type Network struct{}

// A Door lets other processes run commands on the hosts.
type Door struct{ Address string }

// ErrGone is wrapped by the error about a network that no longer answers.
var ErrGone = errLinux

// NotStarted is the exit code of a command that could not be started.
const NotStarted = 127

// Open fails.
func Open(*fabric.Topology, Options) (*Network, error) { return nil, errLinux }

// Capable reports that there can be no hosts.
func Capable() bool { return false }

// Possible reports that there can be no hosts.
func Possible() error { return errLinux }

// AsRoot fails.
func AsRoot() (int, error) { return 0, errLinux }

// IsDetached reports that nothing runs in the background.
func IsDetached() bool { return false }

// Detach fails.
func Detach() (begun bool, code int, err error) { return false, 0, errLinux }

// Begun does nothing.
func Begun(*os.File) error { return nil }

// Port fails.
func (*Network) Port(string) (ports.Port, error) { return nil, errLinux }

// Socket fails.
func (*Network) Socket(string) (int, error) { return 0, errLinux }

// In fails.
func (*Network) In(string, func() error) error { return errLinux }

// Run fails.
func (*Network) Run(string, *exec.Cmd, func(error)) error { return errLinux }

// Serve fails.
func Serve(*Network, Answer) (*Door, error) { return nil, errLinux }

// Ask fails.
func Ask(context.Context, string, []string) (int, error) { return 0, errLinux }

// Close does nothing.
func (*Network) Close() error { return nil }

// Close does nothing.
func (*Door) Close() error { return nil }

// Exec fails.
func Exec(context.Context, string, string, []string) (int, error) { return 0, errLinux }

// Sockets is not available on this system.
type Sockets struct{}

// Knock fails.
func Knock(string) (*Sockets, error) { return nil, errLinux }

// Socket fails.
func (*Sockets) Socket(string) (int, error) { return 0, errLinux }

// Datagrams fails.
func (*Sockets) Datagrams(string) (int, error) { return 0, errLinux }

// Close does nothing.
func (*Sockets) Close() error { return nil }
