//go:build !js

package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/server/p4rt"
	"github.com/p4lb/p4lb/internal/sim"
)

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

// errEnded is the answer to calls after the end of a run.
var errEnded = errors.New("the run has ended")

// A servedNode is the simulator of one switch.
type servedNode struct {
	*served
	plan   *plan.Switch
	sw     *sim.Switch
	chance *chance
}

var _ p4rt.Simulator = (*servedNode)(nil)

// Now returns the time of the last moment.
func (n *servedNode) Now() time.Duration { return time.Duration(n.now.Load()) }

// Run makes the simulated switch run a program. The clock stands.
func (n *servedNode) Run(sw *dataplane.Switch) {
	n.loading.Lock()
	defer n.loading.Unlock()
	n.chance.seed(sw, sim.Random(n.r.Seed, n.sw.Name))
	n.r.load(n.plan, sw)
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
				n.reject(fmt.Sprintf("%s of %s to %s", c.Method, c.Client, n.sw.Name), err)
			}
		}
		n.notify()
	}, nil
}

// reject notes a rejected request. The caller holds n.mu.
func (n *servedNode) reject(what string, err error) {
	text := fmt.Sprintf("%s at %v: %v", what, n.Now(), err)
	if n.refused++; n.refused == 1 {
		n.first = text
	}
	n.log("rejected: %s", text)
}

// Refused notes a rejected message.
func (n *servedNode) Refused(client string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reject(fmt.Sprintf("message of %s to %s", client, n.sw.Name), err)
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
			n.log("no controller is left at %v: the one at %s has closed its stream to %s", n.Now(), client, n.sw.Name)
		}
	}
	n.notify()
}
