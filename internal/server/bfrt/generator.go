package server

import (
	"slices"
	"sync"
	"time"

	"github.com/p4lb/p4lb/internal/dataplane"
)

// A generator is the packet generator of a chip. Each pipe has a buffer and some
// applications. An application is triggered by a timer or by a port that goes down, and
// makes batches of packets from a part of the buffer.
//
// The generator has no clock of its own: due returns the packets to send by a time and
// the time of the next one. In real time, Server.generate calls it; in virtual time, the
// simulator does.
type generator struct {
	second bool
	wake   chan struct{} // a configuration has changed

	mu    sync.Mutex
	pipes []generatorPipe
}

// Limits of the generator. They bound the work that a client can cause.
const (
	generatorRate = 100_000                // packets per second of all applications of a chip
	generatorGap  = time.Second / 100_000  // between packets of an application
	triggerLimit  = 1 << 16                // packets of a trigger
	dueLimit      = 256                    // packets that due returns at once
	bufferSize    = 16 << 10               // bytes of a pipe's buffer
	lineSize      = 16                     // alignment of packets in the buffer
	latest        = 100 * time.Millisecond // a later timer starts again from now
)

type generatorPipe struct {
	buffer [bufferSize]byte
	apps   []application
	on     map[uint32]bool // local ports on which the generator may send
	// armed are the ports that trigger applications when they go down. A port triggers
	// once, until a client clears its state.
	armed map[uint32]bool
}

type trigger int

const (
	untriggered trigger = iota
	oneShot
	periodic
	portDown
)

// An appConfig is the configuration of an application. Counts are at least 1.
type appConfig struct {
	on              bool
	trigger         trigger
	period          time.Duration
	length, offset  int
	batches, perOne int
	batchGap, gap   time.Duration
	port            uint32 // local port at which the packets arrive
	increment       bool   // each packet of a batch arrives at the next port
	channel         uint32 // Tofino 2: the port that must be on
}

// perTrigger returns the number of packets of a trigger and the time until the next
// trigger may start.
func (c *appConfig) perTrigger() (packets int, takes time.Duration) {
	batch := time.Duration(c.perOne) * c.gap
	return c.batches * c.perOne, time.Duration(c.batches-1)*max(c.batchGap, batch) + batch
}

// rate returns the mean number of packets per second.
func (c *appConfig) rate() float64 {
	if !c.on || c.trigger != periodic {
		return 0
	}
	n, _ := c.perTrigger()
	return float64(n) / c.period.Seconds()
}

// An application is the state of an application in a pipe.
type application struct {
	appConfig
	started bool          // the timer runs
	fires   time.Duration // time of the next trigger, if it is armed
	armed   bool
	ports   []uint32 // ports that went down and wait for their packets

	// The packets that the last trigger has still to make.
	left                int
	batch               int // number of the batch, or the port that went down
	number              int // of the next packet in the batch
	began               time.Duration
	next                time.Duration
	trigged, made, sent uint64
}

func newPipes(count, apps int) []generatorPipe {
	list := make([]generatorPipe, count)
	for i := range list {
		list[i] = generatorPipe{apps: make([]application, apps), on: map[uint32]bool{}, armed: map[uint32]bool{}}
	}
	return list
}

// clear ends all applications. The caller of due then turns to the generator of the next
// program.
func (g *generator) clear() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pipes = newPipes(len(g.pipes), len(g.pipes[0].apps))
	g.changed()
}

// changed makes the caller of due call it again.
func (g *generator) changed() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// configure changes an application. An application that is enabled, or enabled with
// another configuration, starts again.
func (g *generator) configure(pipe, app int, c appConfig) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := &g.pipes[pipe].apps[app]
	if a.appConfig == c {
		return
	}
	a.appConfig, a.started, a.armed, a.left, a.ports = c, false, false, 0, nil
	g.changed()
}

// load returns the packets per second of all applications, with c as one of them.
func (g *generator) load(pipe, app int, c appConfig) float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	sum := c.rate()
	for i := range g.pipes {
		for k := range g.pipes[i].apps {
			if i != pipe || k != app {
				sum += g.pipes[i].apps[k].rate()
			}
		}
	}
	return sum
}

// portDown triggers the applications for a port that has gone down.
func (g *generator) portDown(port uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	pipe, local := int(port>>7), port&0x7f
	if pipe >= len(g.pipes) || !g.pipes[pipe].armed[local] {
		return
	}
	delete(g.pipes[pipe].armed, local)
	for i := range g.pipes[pipe].apps {
		if a := &g.pipes[pipe].apps[i]; a.on && a.trigger == portDown {
			a.ports = append(a.ports, port)
		}
	}
	g.changed()
}

// arm lets a port trigger applications when it goes down next.
func (g *generator) arm(port uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pipes[port>>7].armed[port&0x7f] = true
}

func (g *generator) portOn(port uint32, on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if on {
		g.pipes[port>>7].on[port&0x7f] = true
	} else {
		delete(g.pipes[port>>7].on, port&0x7f)
	}
}

// due returns the packets to send by now, at most dueLimit, and the time of the next one.
func (g *generator) due(now time.Duration) (list []dataplane.Generated, next time.Duration, more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for {
		var first *application
		var pipe, app int
		more = false
		for i := range g.pipes {
			for k := range g.pipes[i].apps {
				a := &g.pipes[i].apps[k]
				at, ok := a.at(now)
				if ok && (!more || at < next) {
					first, pipe, app, next, more = a, i, k, at, true
				}
			}
		}
		if !more || next > now || len(list) == dueLimit {
			return list, next, more
		}
		if first.left == 0 {
			first.fire(now, g.sends(pipe, first))
			continue
		}
		list = append(list, g.packet(pipe, app, first))
	}
}

// sends reports whether the generator may send the packets of an application.
func (g *generator) sends(pipe int, a *application) bool {
	if g.second {
		return g.pipes[pipe].on[a.channel]
	}
	return len(g.pipes[pipe].on) > 0
}

// at returns the time of the application's next step: a packet or a trigger.
func (a *application) at(now time.Duration) (time.Duration, bool) {
	switch {
	case !a.on:
		return 0, false
	case a.left > 0:
		return a.next, true
	case a.trigger == portDown:
		return now, len(a.ports) > 0
	case !a.started:
		a.started, a.armed, a.fires = true, true, now+a.period
	}
	return a.fires, a.armed
}

// fire starts the packets of a trigger, unless the generator must not send them.
func (a *application) fire(now time.Duration, send bool) {
	at := now
	a.batch = 0
	switch a.trigger {
	case portDown:
		a.batch, a.ports = int(a.ports[0]), a.ports[1:]
	case oneShot:
		at, a.armed = a.fires, false
	default:
		at = a.fires
		a.fires += a.period
		if a.fires < now-latest {
			a.fires = now
		}
	}
	if !send {
		return
	}
	a.left, _ = a.perTrigger()
	a.number, a.began, a.next = 0, at, at
	a.trigged++
}

// packet makes the next packet of a trigger.
func (g *generator) packet(pipe, app int, a *application) dataplane.Generated {
	local := a.port
	if a.increment {
		local = (local + uint32(a.number)) & 0x7f
	}
	p := dataplane.Generated{
		Port: uint32(pipe)<<7 | local, App: app, Batch: a.batch, Number: a.number,
		Data: slices.Clone(g.pipes[pipe].buffer[a.offset : a.offset+a.length]),
	}
	a.left--
	a.sent++
	a.number++
	a.next += a.gap
	if a.number == a.perOne {
		a.number = 0
		a.made++
		if a.trigger != portDown {
			a.batch++
		}
		a.began = max(a.began+a.batchGap, a.next)
		a.next = a.began
	}
	return p
}
