// Package target defines where a plan is deployed: how switches are started or found, and how to
// access each one. It contains the targets for running P4Runtime servers (servers.go) and for
// BMv2 with Thrift (bmv2*.go). Targets that start switches have their own packages, such as
// controller/embedded.
package target

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// A Target is a set of switches to which a plan can be deployed. It starts the switches or knows
// their addresses.
type Target interface {
	// Name is the target's name in messages, such as embedded or bmv2.
	Name() string
	// Start starts the switches of a plan, or checks that they are running if the
	// target does not start them. A later call with another plan for the same
	// switches leaves running switches alone.
	Start(ctx context.Context, p *plan.Plan) error
	// Endpoint returns the addresses of the named switch. It is called before
	// every connection attempt.
	Endpoint(name string) (Endpoint, error)
	// Close stops everything that Start started.
	Close() error
}

// A Linker is a target that controls the links of the topology.
type Linker interface {
	// LinkDown reports whether a link is down.
	LinkDown(l fabric.Link) (bool, error)
	// SetLink sets state, rate and delay of a link to the values of l, and makes it lose and
	// delay packets at random.
	SetLink(l fabric.Link, r Random) error
}

// Random describes random effects of a link on packets.
type Random struct {
	Loss   float64       // probability of losing a packet, in each direction
	Jitter time.Duration // largest deviation from the delay in either direction
}

// A Restarter is a target that can restart its switches.
type Restarter interface {
	// Restart restarts the named switch, without a program.
	Restart(ctx context.Context, name string) error
}

// An Endpoint describes how to access a switch. Only Address is required.
type Endpoint struct {
	Address string // host:port of its P4Runtime server
	Device  uint64 // device id at that server
	Thrift  string // host:port of its Thrift server, for other programs; "": none
	// Dial connects to the server; nil: TCP to Address.
	Dial func(ctx context.Context) (net.Conn, error)
	// TLS is the configuration of TLS; nil: no TLS.
	TLS *tls.Config
	// Registers accesses its registers; nil: by P4Runtime.
	Registers registers.Access
	// Queues accesses its queues; nil: not possible.
	Queues Queues
	// Filters accesses its filters; nil: not possible.
	Filters Filters
	// Local is the switch's server if it is in this process, so that entries need not be encoded
	// and decoded; nil: use the connection.
	Local Local
	// Speak opens a session in another protocol on a connection; nil: P4Runtime.
	Speak func(grpc.ClientConnInterface) Session
	// Limits describe missing features of the P4Runtime server.
	Limits Limits
}

// A Local server exchanges messages without copying them: neither side may change a message that
// it has passed on or received.
type Local interface {
	Write(req *p4v1.WriteRequest) error
	Entities(req *p4v1.ReadRequest) ([]*p4v1.Entity, error) // returns the entities that Read would send
}

// A Session gives access to a switch with another protocol. It translates P4Runtime's
// messages, and offers the additional interfaces of an Endpoint.
type Session struct {
	Client    p4v1.P4RuntimeClient
	Registers registers.Access
	Queues    Queues
	Filters   Filters
}

// Open returns the client for a connection. A session in another protocol also sets the accesses
// to registers, queues and filters.
func (e *Endpoint) Open(conn grpc.ClientConnInterface) p4v1.P4RuntimeClient {
	if e.Speak == nil {
		return p4v1.NewP4RuntimeClient(conn)
	}
	s := e.Speak(conn)
	e.Registers, e.Queues, e.Filters = s.Registers, s.Queues, s.Filters
	return s.Client
}

// Limits describe missing features and deviations of a P4Runtime server.
type Limits struct {
	// KeepsReplication: clone sessions and multicast groups outlive the program. They are deleted
	// before a new program is pushed, because inserting them again would duplicate the copies.
	KeepsReplication bool
	// NoRegisters: the server does not implement RegisterEntry.
	NoRegisters bool
	// NoReplication: the server has no clone sessions and multicast groups. Plans that need them
	// are rejected.
	NoReplication bool
	// Batch is the largest number of updates in a request; 0: 1000.
	Batch int
}

// Queues configures the queues of one switch and reports their configuration.
type Queues interface {
	// Queue returns the configuration of a port's queue, or false if it is
	// unknown: it was never set, or cannot be read back.
	Queue(ctx context.Context, port int) (plan.Queue, bool, error)
	// SetQueue sets the rate and the depth.
	SetQueue(ctx context.Context, q plan.Queue) error
}

// Filters lists and sets the low-pass filters of one switch for Tofino.
type Filters interface {
	// List returns the filters of the running program with their configuration.
	List(ctx context.Context) ([]plan.Filter, error)
	// SetFilter sets all cells of a filter.
	SetFilter(ctx context.Context, f plan.Filter) error
}

// Reasons why a switch does not hold its plan.
var (
	// ErrUnreachable: there is no server at the address, or the connection was lost.
	ErrUnreachable = errors.New("cannot be reached")
	// ErrNotPrimary: another controller is primary.
	ErrNotPrimary = errors.New("another controller is primary")
	// ErrRefused: the switch has rejected a request.
	ErrRefused = errors.New("refused")
	// ErrOtherProgram: the switch does not run the program that it was given.
	ErrOtherProgram = errors.New("another program")
)
