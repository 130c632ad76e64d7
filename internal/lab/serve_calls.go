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

// A served network has for each switch a P4Runtime server and, for v1model, a Thrift
// server, or a BfRt server alone. p4lb deploys the plan; from the first moment on the
// switches belong to the controllers.
//
// The clock stands while open is set. Calls are processed only then, so that their
// effects have a definite virtual time; packet-outs take effect at the end of the moment.
type served struct {
	o      *Serve
	r      *running
	target *embedded.Target
	at     []servedSwitch
	nodes  map[string]*servedNode
	listen []net.Listener // of the page, then of P4Runtime or BfRt, then of Thrift

	programs map[string]servedProgram // by role
	thrift   []*thrift.Server
	page     *http.Server
	ready    bool // the plan is deployed
	work     sync.WaitGroup
	now      atomic.Int64 // virtual time of the moment
	began    time.Time    // of real time, when virtual time began

	loading  sync.Mutex // switches start programs one after the other
	mu       sync.Mutex
	changed  chan struct{} // is closed at each change of the fields below
	open     bool
	opened   time.Time // the begin of the moment
	moments  int
	notices  []func() // send due notifications when the clock stops
	ended    bool
	active   map[*servedCall]bool
	heard    time.Time // the last sign of life of a controller
	called   time.Time // the end of the last call
	queued   int       // calls that wait for the clock to stand
	callers  map[string]*caller
	sessions map[string]bool // streams, by client and switch
	frames   []servedFrame
	refused  int
	calls    int
	first    string // refusal
	logged   int
}

// A servedSwitch describes a switch to controllers.
type servedSwitch struct {
	Name    string `json:"name"`
	Role    string `json:"role"`
	Address string `json:"address,omitempty"` // of P4Runtime
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

// A servedProgram is a program as the page offers it.
type servedProgram struct {
	config, schema []byte
	name           string // on the switch, for BfRt
}

// A servedNode is the simulator of one switch.
type servedNode struct {
	*served
	plan   *plan.Switch
	sw     *sim.Switch
	chance *chance
	up     atomic.Int64 // how long the switch has run at time 0
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
	waits bool // for the next moment
	left  bool // it has called /done
	gone  bool // its connection broke while it waited
}

// notify wakes all waiters. The caller holds d.mu.
func (d *served) notify() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// wait blocks until a condition is true, or returns the reason why it cannot become
// true. The caller holds d.mu.
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

// log passes the first lines on.
func (d *served) log(format string, args ...any) {
	const most = 20
	if d.logged++; d.logged <= most {
		d.o.Log(fmt.Sprintf(format, args...))
	}
}

// errEnded is the answer to calls after the end of a run.
var errEnded = errors.New("the run has ended")

var _ p4rt.Simulator = (*servedNode)(nil)

// Now returns the time of the switch at the last moment.
func (n *servedNode) Now() time.Duration { return time.Duration(n.now.Load() + n.up.Load()) }

// PortCounts returns the packets at each simulated port.
func (n *servedNode) PortCounts() []bmv2.PortCounts {
	list, _ := (&simRegisters{sw: n.sw}).PortCounts(context.Background()) // never fails
	return list
}

var errFixed = errors.New("the topology defines ports and queues in virtual time")

// Fixed returns an error when the plan is deployed.
func (n *servedNode) Fixed() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ready {
		return errFixed
	}
	return nil
}

// AtMoments registers a function that sends notifications.
func (n *servedNode) AtMoments(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notices = append(n.notices, f)
}

// Run makes the simulated switch run a program. The clock stands.
func (n *servedNode) Run(sw *dataplane.Switch) {
	n.loading.Lock()
	defer n.loading.Unlock()
	n.chance.seed(sw, sim.Random(n.r.Seed, n.sw.Name))
	n.r.load(n.plan, sw)
	n.up.Store(int64(n.sw.Clock() - n.r.net.Now()))
}

// PacketOut keeps a frame until the end of the moment.
func (n *servedNode) PacketOut(frame []byte) {
	const most = 1 << 14
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.frames) < most {
		n.frames = append(n.frames, servedFrame{n.sw, slices.Clone(frame)})
	}
	n.heard = time.Now()
}

// Turn waits for the clock to stand.
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

// reject notes a rejected request. The result leaves out the client, whose port differs
// from run to run. The caller holds n.mu.
func (n *servedNode) reject(what, client string, err error) {
	text := fmt.Sprintf("to %s at %v: %v", n.sw.Name, time.Duration(n.now.Load()), err)
	if n.refused++; n.refused == 1 {
		n.first = what + " " + text
	}
	n.log("rejected: %s of %s %s", what, client, text)
}

// Refused notes a rejected message.
func (n *servedNode) Refused(client string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reject("message", client, err)
}

// Session notes that a controller has come or gone.
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
