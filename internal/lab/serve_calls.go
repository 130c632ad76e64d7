//go:build !js

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/server/p4rt"
	"github.com/p4lb/p4lb/internal/server/thrift"
	"github.com/p4lb/p4lb/internal/sim"
)

// A served network has a P4Runtime server for each switch, and for v1model also a
// Thrift server. With BfRt, each switch has only a BfRt server. p4lb deploys the
// plan. From the first moment on, only the controllers change the switches.
//
// Virtual time stops while open is set. Calls are processed only then, so their
// effects have a well-defined virtual time. Packet-outs take effect at the end of
// the moment.
type served struct {
	o      *Serve
	r      *running
	target *embedded.Target
	at     []servedSwitch
	nodes  map[string]*servedNode
	listen []net.Listener // listener of the page, then of P4Runtime or BfRt, then of Thrift

	programs map[string]servedProgram // by role
	thrift   []*thrift.Server
	page     *http.Server
	ready    bool // the plan is deployed
	work     sync.WaitGroup
	now      atomic.Int64 // virtual time of the moment
	began    time.Time    // real time at which virtual time started

	loading  sync.Mutex // switches start their programs one at a time
	mu       sync.Mutex
	changed  chan struct{} // closed at each change of the fields below
	open     bool
	opened   time.Time // real time at which the moment began
	moments  int
	stood    int      // the last moment that was reported as long
	notices  []func() // functions that send due notifications when virtual time stops
	ended    bool
	active   map[*servedCall]bool
	heard    time.Time // when a controller was last active
	called   time.Time // when the last call ended
	queued   int       // calls that wait for virtual time to stop
	callers  map[string]*caller
	sessions map[string]bool // open streams, by client and switch
	frames   []servedFrame
	waiting  int // bytes of frames
	refused  int
	calls    int
	first    string // the first rejected request
	logged   int
}

// A servedSwitch describes a switch for controllers.
type servedSwitch struct {
	Name    string `json:"name"`
	Role    string `json:"role"`
	Address string `json:"address,omitempty"` // address of the P4Runtime server
	BfRt    string `json:"bfrt,omitempty"`
	Thrift  string `json:"thrift,omitempty"`
	Device  uint64 `json:"device_id"`
	CPUPort int    `json:"cpu_port"`
	P4Info  string `json:"p4info"`
	Program string `json:"program"`
	Schema  string `json:"bfrt_info,omitempty"`
	P4Name  string `json:"p4_name,omitempty"`
	plan    *plan.Switch
}

// A servedProgram is a program that the page offers.
type servedProgram struct {
	config, schema []byte
	name           string // name on the switch, for BfRt
}

// A servedNode is the simulator of one switch.
type servedNode struct {
	*served
	plan   *plan.Switch
	sw     *sim.Switch
	chance *chance
	up     atomic.Int64 // age of the switch at virtual time 0

	due   func(now time.Duration) ([]dataplane.Generated, time.Duration, bool) // of the packet generator; nil: none
	polls int                                                                  // of the generator: only the event of the last one counts
}

// A servedCall is a call in progress.
type servedCall struct {
	p4rt.SimCall
	sw    string
	began time.Time
}

type servedFrame struct {
	sw    *sim.Switch
	frame []byte
}

// A caller is a controller that calls /next.
type caller struct {
	waits bool // it waits for the next moment
	left  bool // it has called /done
	gone  bool // its connection was lost while it waited
}

// notify wakes all waiters. The caller holds d.mu.
func (d *served) notify() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// wait blocks until the function until reports true. It returns an error if that
// cannot happen any more. The caller holds d.mu.
func (d *served) wait(ctx context.Context, now time.Duration, until func(now time.Duration) (ok bool, again time.Duration, err error)) error {
	for {
		ok, again, err := until(now)
		if ok || err != nil {
			return err
		}
		changed := d.changed
		d.mu.Unlock()
		timer := time.NewTimer(again)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		d.mu.Lock()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// log logs a line; after a limit, it drops further lines.
func (d *served) log(format string, args ...any) {
	const most = 20
	switch d.logged++; {
	case d.logged <= most:
		d.o.Log(fmt.Sprintf(format, args...))
	case d.logged == most+1:
		d.o.Log("further lines about controllers are left out; the report counts rejected requests")
	}
}

// errEnded is the answer to calls after the end of a run.
var errEnded = errors.New("the run has ended")

var _ p4rt.Simulator = (*servedNode)(nil)

// Now returns the time of the switch at the last moment.
func (n *servedNode) Now() time.Duration { return time.Duration(n.now.Load() + n.up.Load()) }

// PortCounts returns the packets at each simulated port.
func (n *servedNode) PortCounts() []bmv2.PortCounts {
	list, _ := (&simRegisters{sw: n.sw}).PortCounts(context.Background()) // cannot fail
	return list
}

var errFixed = errors.New("the topology defines ports and queues in virtual time")

// Fixed returns an error once the plan is deployed.
func (n *servedNode) Fixed() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ready {
		return errFixed
	}
	return nil
}

// AtMoments registers a function that sends due notifications.
func (n *servedNode) AtMoments(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notices = append(n.notices, f)
}

// Generator registers the packet generator.
func (n *servedNode) Generator(due func(now time.Duration) ([]dataplane.Generated, time.Duration, bool)) {
	n.due = due
}

// poll sends the packets of the packet generator that are due, and schedules the next one.
func (n *servedNode) poll() {
	n.polls++
	for {
		list, next, more := n.due(n.sw.Clock())
		for _, g := range list {
			n.sw.GeneratePacket(g)
		}
		if more && next <= n.sw.Clock() {
			continue
		}
		if more {
			poll := n.polls
			n.r.net.At(n.r.net.Now()+next-n.sw.Clock(), func() {
				if n.polls == poll {
					n.poll()
				}
			})
		}
		return
	}
}

// Run starts a program on the simulated switch while virtual time is stopped.
func (n *servedNode) Run(sw *dataplane.Switch) {
	n.loading.Lock()
	defer n.loading.Unlock()
	n.chance.seed(sw, sim.Random(n.r.Seed, n.sw.Name))
	n.r.load(n.plan, sw)
	n.up.Store(int64(n.sw.Clock() - n.r.net.Now()))
}

// The limits of the packet-outs of all switches in one moment.
const (
	maxFrames     = 1 << 14
	maxFrameBytes = 64 << 20
)

// PacketOut stores a frame until the end of the moment.
func (n *servedNode) PacketOut(frame []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.heard = time.Now()
	if len(n.frames) == maxFrames || n.waiting+len(frame) > maxFrameBytes {
		n.reject("packet-out", "a controller", fmt.Errorf("want at most %d packets and %d MiB between two moments", maxFrames, maxFrameBytes>>20))
		return
	}
	n.frames = append(n.frames, servedFrame{n.sw, slices.Clone(frame)})
	n.waiting += len(frame)
}

// Turn waits until virtual time stops.
func (n *servedNode) Turn(ctx context.Context, c p4rt.SimCall) (func(error), error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queued++
	defer func() { n.queued-- }()
	for !n.open && !n.ended {
		changed := n.changed
		n.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		n.mu.Lock()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if n.ended {
		return nil, errEnded
	}
	call := &servedCall{c, n.sw.Name, time.Now()}
	n.active[call] = true
	n.heard = call.began
	return func(err error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.active, call)
		n.heard, n.called = time.Now(), time.Now()
		if n.ready {
			n.calls++
			if err != nil {
				n.reject(c.Method, c.Client, err)
			}
		}
		n.notify()
	}, nil
}

// reject records a rejected request. The record omits the client's address, because
// its port differs between runs. The caller holds n.mu.
func (n *servedNode) reject(what, client string, err error) {
	text := fmt.Sprintf("to %s at %v: %v", n.sw.Name, time.Duration(n.now.Load()), err)
	if n.refused++; n.refused == 1 {
		n.first = what + " " + text
	}
	n.log("rejected: %s of %s %s", what, client, text)
}

// Refused records a rejected message on a stream.
func (n *servedNode) Refused(client string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reject("message", client, err)
}

// Session records that a controller has connected or disconnected.
func (n *servedNode) Session(client string, open bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := client + " " + n.sw.Name
	switch {
	case open:
		n.sessions[key] = true
		n.heard = time.Now()
	case n.sessions[key]:
		if delete(n.sessions, key); n.ready && !n.ended && n.o.Wait == 0 && len(n.sessions) == 0 {
			n.log("no controller is left at %v: the one at %s has closed its stream to %s", time.Duration(n.now.Load()), client, n.sw.Name)
		}
	}
	n.notify()
}
