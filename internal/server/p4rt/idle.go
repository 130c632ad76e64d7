package p4rt

import (
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"
)

// IdleScan is the interval at which entries are checked for their idle timeout.
const IdleScan = 50 * time.Millisecond

// WatchIdle calls report every IdleScan until stop is closed.
func WatchIdle(stop <-chan struct{}, report func()) {
	tick := time.NewTicker(IdleScan)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			report()
		case <-stop:
			return
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
// and restarts their timers.
func (s *Server) reportIdle() {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.running == nil {
		return
	}
	for id, t := range s.running.tables {
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
}

func (p *pipeline) idleEntries(t *tableState) []*p4v1.TableEntry {
	if !t.timesOut() {
		return nil
	}
	now := p.clock()
	idle, next, err := p.sw.IdleEntries(t.info.name, now, t.idleFrom, idleAtOnce)
	p.must(err)
	t.idleFrom = next
	var list []*p4v1.TableEntry
	for _, x := range idle {
		e := t.byHandle[x.Handle]
		if e == nil {
			continue
		}
		list = append(list, e.msg)
		p.must(p.sw.SetIdleTimeout(t.info.name, x.Handle, x.IdleTimeout, now))
	}
	return list
}
