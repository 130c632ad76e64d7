//go:build !js

package lab

import (
	"context"
	"errors"
	"fmt"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/server/p4rt"
	"github.com/p4lb/p4lb/internal/server/thrift"
)

// A thriftNode is the target of a Thrift server. The simulator has the queues and counts
// the packets of ports.
type thriftNode struct {
	*p4rt.Device
	node *servedNode
}

var errQueue = errors.New("the topology defines the rates and depths of queues in virtual time")

// SetQueueDepth fails: the topology defines queues.
func (*thriftNode) SetQueueDepth(int, int, int) error { return errQueue }

// SetQueueRate fails: the topology defines queues.
func (*thriftNode) SetQueueRate(int, int, uint64) error { return errQueue }

// PortCounts returns the packets at each simulated port.
func (t *thriftNode) PortCounts() []bmv2.PortCounts { return t.node.PortCounts() }

// Ports lists the ports with the names that p4-utils gives them.
func (t *thriftNode) Ports() (list []thrift.PortInfo) {
	for _, p := range t.node.sw.Ports() {
		list = append(list, thrift.PortInfo{Number: uint32(p.Number), Name: fmt.Sprintf("%s-eth%d", t.node.sw.Name, p.Number), Up: !p.Link().Down()})
	}
	return list
}

// Connect fails: the topology defines ports.
func (*thriftNode) Connect(uint32, string) error { return errPorts }

// Disconnect fails: the topology defines ports.
func (*thriftNode) Disconnect(uint32) error { return errPorts }

var errPorts = errors.New("the topology defines ports")

// thriftTurns lets a Thrift server wait for the clock to stand.
type thriftTurns struct{ *servedNode }

// Turn waits for the clock to stand.
func (n thriftTurns) Turn(ctx context.Context, client, method string) (func(error), error) {
	return n.servedNode.Turn(ctx, p4rt.SimCall{Client: client, Method: method})
}
