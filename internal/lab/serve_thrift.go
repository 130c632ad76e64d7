//go:build !js

package lab

import (
	"context"
	"fmt"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/server/p4rt"
	"github.com/p4lb/p4lb/internal/server/thrift"
)

// A thriftNode is the target of a Thrift server. The simulator provides queues and
// port counts.
type thriftNode struct {
	*p4rt.Device
	node *servedNode
}

// SetQueueDepth fails, because the topology defines the queues.
func (*thriftNode) SetQueueDepth(int, int, int) error { return errFixed }

// SetQueueRate fails, because the topology defines the queues.
func (*thriftNode) SetQueueRate(int, int, uint64) error { return errFixed }

// PortCounts returns the packets at each simulated port.
func (t *thriftNode) PortCounts() []bmv2.PortCounts { return t.node.PortCounts() }

// Ports lists the ports with their names in p4-utils.
func (t *thriftNode) Ports() (list []thrift.PortInfo) {
	for _, p := range t.node.sw.Ports() {
		list = append(list, thrift.PortInfo{Number: uint32(p.Number), Name: fmt.Sprintf("%s-eth%d", t.node.sw.Name, p.Number), Up: !p.Link().Down()})
	}
	return list
}

// Connect fails, because the topology defines the ports.
func (*thriftNode) Connect(uint32, string) error { return errFixed }

// Disconnect fails, because the topology defines the ports.
func (*thriftNode) Disconnect(uint32) error { return errFixed }

// A thriftTurns makes a Thrift server process calls only while virtual time is
// stopped.
type thriftTurns struct{ *servedNode }

// Turn waits until virtual time stops.
func (n thriftTurns) Turn(ctx context.Context, client, method string) (func(error), error) {
	return n.servedNode.Turn(ctx, p4rt.SimCall{Client: client, Method: method})
}
