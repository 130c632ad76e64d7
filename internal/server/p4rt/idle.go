package p4rt

import (
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"
)

// IdleScan is the interval at which entries are checked for their idle timeout.
const IdleScan = 50 * time.Millisecond

// An IdleWatch reports idle entries while any table has a timeout.
type IdleWatch struct{ wake chan struct{} }

// NewIdleWatch returns a watch for Run.
func NewIdleWatch() IdleWatch { return IdleWatch{make(chan struct{}, 1)} }

// Wake starts the reports: a table may have a timeout now.
func (w IdleWatch) Wake() {
	select {
	case w.wake <- struct{}{}:
	default: // Run is already about to start
	}
}

// Run waits for Wake, calls report every IdleScan until it returns false, and waits
// again, until stop is closed.
func (w IdleWatch) Run(stop <-chan struct{}, report func() (again bool)) {
	tick := time.NewTicker(IdleScan)
	defer tick.Stop()
	for {
		tick.Stop()
		select {
		case <-w.wake:
		case <-stop:
			return
		}
		tick.Reset(IdleScan)
		for again := true; again; {
			select {
			case <-tick.C:
				again = report()
			case <-stop:
				return
			}
		}
	}
}

// Idle entries are reported in messages small enough for any client, and in
// batches per table, so one table does not delay the others.
const (
	idleAtOnce  = 1 << 14
	idleMessage = 256 << 10 // in bytes
)

// reportIdle sends the primaries the entries with an elapsed idle timeout,
// and restarts their timers. It reports whether any table has a timeout.
func (s *Server) reportIdle() (again bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.running == nil {
		return false
	}
	for id, t := range s.running.tables {
		if !t.timesOut() {
			continue
		}
		again = true
		for list := s.running.idleEntries(t); len(list) > 0; {
			n, size := 0, 0
			for n < len(list) && (n == 0 || size < idleMessage) {
				size += proto.Size(list[n])
				n++
			}
			m := &p4v1.IdleTimeoutNotification{TableEntry: list[:n], Timestamp: time.Now().UnixNano()}
			list = list[n:]
			s.arb.broadcast(
				&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_IdleTimeoutNotification{IdleTimeoutNotification: m}},
				func(sc *scope) bool { return sc.allows(id) },
			)
		}
	}
	return again
}

func (p *pipeline) idleEntries(t *tableState) []*p4v1.TableEntry {
	now := p.clock()
	idle, next, err := p.sw.Tables().IdleEntries(t.info.name, now, t.idleFrom, idleAtOnce)
	p.must(err)
	t.idleFrom = next
	var list []*p4v1.TableEntry
	for _, x := range idle {
		e := t.byHandle[x.Handle]
		if e == nil {
			continue
		}
		list = append(list, e.text.message())
		p.must(p.sw.Tables().SetIdleTimeout(t.info.name, x.Handle, x.IdleTimeout, now))
	}
	return list
}
