// Package target is where a plan is deployed to: how switches are brought up or
// found, and how each is reached. P4Runtime servers that run already (servers.go)
// and BMv2 by Thrift (bmv2*.go) are here; what starts switches itself has a room
// of its own, such as controller/embedded.
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

// A Target is where a plan is deployed to. It brings switches up, or knows
// where they are.
type Target interface {
	// Name is the target's in messages, such as embedded or bmv2.
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
	// SetLink gives a link the state, rate and delay of l, and makes it lose and
	// delay packets at random.
	SetLink(l fabric.Link, r Random) error
}

// Random is what a link does to packets at random.
type Random struct {
	Loss   float64       // probability that it loses a packet, in each direction
	Jitter time.Duration // the largest deviation from its delay, either way
}

// A Restarter is a target that can restart its switches.
type Restarter interface {
	// Restart ends the named switch and starts it again, without a program.
	Restart(ctx context.Context, name string) error
}

// An Endpoint is how to reach a switch. Only Address must be set.
type Endpoint struct {
	Address string // host:port of its server for controllers
	Device  uint64 // its device id there
	Thrift  string // host:port of its Thrift server, "" for none; for others to use
	// Dial connects to it; nil stands for TCP to Address.
	Dial func(ctx context.Context) (net.Conn, error)
	// TLS is how to speak to it; nil is without.
	TLS *tls.Config
	// Access reaches its registers; nil stands for P4Runtime.
	Registers registers.Access
	// Queues reaches its queues; nil where the target has no way to.
	Queues Queues
	// Filters reaches its filters; nil where the target has no way to.
	Filters Filters
	// Local is the switch's server where it is in this process and entries need
	// not be encoded and decoded; nil stands for the connection.
	Local Local
	// Speak opens a session in another protocol than P4Runtime over a connection;
	// nil stands for P4Runtime.
	Speak func(grpc.ClientConnInterface) Session
	// Limits describe missing features of the P4Runtime server.
	Limits Limits
}

// A Local server takes and gives messages as they are: neither side may change
// one that the other has.
type Local interface {
	Write(req *p4v1.WriteRequest) error
	Entities(req *p4v1.ReadRequest) ([]*p4v1.Entity, error) // the entities that Read would send
}

// A Session gives access to a switch with another protocol. It translates P4Runtime's
// messages, and offers the additional interfaces of an Endpoint.
type Session struct {
	Client    p4v1.P4RuntimeClient
	Registers registers.Access
	Queues    Queues
	Filters   Filters
}

// Open makes the client for a connection; a session in another protocol brings the
// ways along by which it reaches registers, queues and filters.
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
	// KeepsReplication: clone sessions and multicast groups outlive the program.
	// They are deleted before a new one is pushed, since inserting them again
	// would double the copies.
	KeepsReplication bool
	// NoRegisters: RegisterEntry is UNIMPLEMENTED.
	NoRegisters bool
	// NoReplication: there are no clone sessions and multicast groups. A plan
	// that wants some is refused.
	NoReplication bool
	// Batch is the largest number of updates in a request; 0 stands for 1000.
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
	// List returns the filters of the program that runs, as they are set.
	List(ctx context.Context) ([]plan.Filter, error)
	// SetFilter sets all cells of a filter.
	SetFilter(ctx context.Context, f plan.Filter) error
}

// Reasons for which a switch does not hold the plan.
var (
	// ErrUnreachable: there is no server at the address, or it has vanished.
	ErrUnreachable = errors.New("cannot be reached")
	// ErrNotPrimary: another controller is primary.
	ErrNotPrimary = errors.New("another controller is primary")
	// ErrRefused: the switch has refused something.
	ErrRefused = errors.New("refused")
	// ErrOtherProgram: the switch answers with another program than it was given.
	ErrOtherProgram = errors.New("another program")
)
