// Package testbed is the target for BMv2. It runs a simple_switch_grpc for each switch of a
// topology on this machine, with links and hosts provided by the kernel. It requires Linux, root,
// and the program on PATH.
//
// Every node has its own network namespace, named after the deployment:
//
//	namespace p4lb-NAME-h1          namespace p4lb-NAME-l1
//	  eth0: the host's address  ===   port1 ... port5  ===  port1 of s1 ...
//	                                  mgmt
//	                                    ║
//	                                  p4lb07-0, in the namespace of p4lb
//
// Data links are veth pairs. A switch has an additional one, mgmt, with an address from
// 198.18.0.0/15, a range reserved for testing devices. Its P4Runtime and Thrift servers listen
// there on fixed ports, reachable only from this machine.
//
// The state of a deployment is in the kernel and in RunDir. A process that ends
// with Keep leaves it for the next process with the same deployment name. If a
// process crashes, the next deployment of that name removes its remains.
package testbed

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/netspace"
)

// Program is the default switch program.
const Program = "simple_switch_grpc"

// RunDir is the folder with notes about running deployments.
const RunDir = "/run/p4lb"

// ErrBusy is wrapped by the error about a deployment that another process is using.
var ErrBusy = errors.New("another process holds it")

// Options configure the switches. The zero value works.
type Options struct {
	// Name distinguishes deployments; "": the name of the topology.
	Name string
	// Program is the switch program; "": the constant Program.
	Program string
	// Keep: Close leaves everything running for a later process.
	Keep bool
	// Known is the hosts' initial knowledge of other hosts.
	Known netspace.Known
	// Priorities is the number of queues of each port; 0: 1.
	Priorities int
	// ClockStep offsets the clocks of switches: the first start waits this long
	// between switches, and starts the last one first.
	ClockStep time.Duration
	// Log receives events; nil discards them.
	Log *slog.Logger

	silent bool // the switch program does not support notifications
}

// nameOf returns the name of a deployment for use in names of namespaces. It contains no hyphen,
// so no name is a prefix of another.
func nameOf(name string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '_'
	}, name)
	return clean[:min(len(clean), 32)]
}

// namespace returns the name of a node's namespace.
func namespace(deployment, node string) string {
	return prefix(deployment) + node
}

func prefix(deployment string) string { return "p4lb-" + deployment + "-" }

// Shell returns the prefix that runs a command on a host or a switch of a deployment.
func Shell(deployment, node string) []string {
	return []string{"ip", "netns", "exec", namespace(nameOf(deployment), node)}
}

// hostsFile returns the file that commands on the hosts of a deployment see as /etc/hosts.
func hostsFile(name string) string { return filepath.Join(RunDir, name, "hosts") }

// Exec runs a command on a host or a switch of a deployment, with the standard
// streams of this process, and returns its exit code.
func Exec(deployment, node string, args []string) (code int, err error) {
	// ip gives the command its own mount namespace. Names of hosts resolve if the system has
	// mount.
	line := append(Shell(deployment, node), "sh", "-c", `mount --bind "$0" /etc/hosts 2>/dev/null; exec "$@"`, hostsFile(nameOf(deployment)))
	line = append(line, args...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "P4LB_HOST="+node)
	err = cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		err = nil
	}
	return cmd.ProcessState.ExitCode(), err
}

// Sockets is the name of a deployment that another process keeps, for creating sockets on its
// hosts.
type Sockets string

// blockSwitches is the number of switches that a block of addresses has room
// for.
const blockSwitches = 256

// bare returns a topology with all links up as text: the part that never changes
// during a deployment.
func bare(t *fabric.Topology) string {
	var down []int
	for i, l := range t.Links {
		if l.Down {
			down = append(down, i)
		}
	}
	return string(t.Restore(down...).YAML())
}
