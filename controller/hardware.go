package controller

import (
	"slices"

	"github.com/p4lb/p4lb/fabric"
)

// portQueues is how many queues a port of p4lb's own switch has by the numbers
// that the ghost thread is told (dataplane.QueueNumber).
const portQueues = 4

// queueNumber is the number of the first queue of a port, which is the one that
// programs use.
func queueNumber(port int) uint64 { return uint64(port) * portQueues }

// DevicePorts returns a topology whose switches have the ports of a Tofino: what
// the port is that the nth front port of a topology is. Where the topology has
// none of those that the hardware keeps for itself it stays as it is: then its
// ports may well be device ports already.
func DevicePorts(t *fabric.Topology, arch string) *fabric.Topology {
	kept := map[string][]int{"tna": {0, 64, 65, 66, 67, 68, 69, 70, 71}, "t2na": {0, 1, 2, 3, 4, 5, 6, 7}}[arch]
	inPipe := func(port int) bool { return slices.Contains(kept, port%pipePorts) }
	for _, s := range t.Switches {
		if slices.ContainsFunc(t.Ports(s.Name), func(p fabric.Port) bool { return inPipe(p.Number) }) {
			return t.Renumber(func(port int) int {
				free := pipePorts - len(kept)
				pipe, n := (port-1)/free, (port-1)%free
				for _, k := range kept {
					if k <= n {
						n++
					}
				}
				return pipe*pipePorts + n
			})
		}
	}
	return t
}

// pipePorts is how many ports the number of a pipe stands for.
const pipePorts = 128
