package p4rt

import (
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// idleScan is how often entries are looked at for their idle timeout.
const idleScan = 50 * time.Millisecond

// watchIdle reports idle entries until the server stops.
func (s *Server) watchIdle() {
	tick := time.NewTicker(idleScan)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.reportIdle()
		case <-s.stop:
			return
		}
	}
}

// reportIdle sends the primaries the entries that have not been hit for their
// timeout, and starts their timers again.
func (s *Server) reportIdle() {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.running == nil {
		return
	}
	for id, t := range s.running.tables {
		list := s.running.idleEntries(t)
		if len(list) == 0 {
			continue
		}
		m := &p4v1.IdleTimeoutNotification{TableEntry: list, Timestamp: time.Now().UnixNano()}
		s.arb.broadcast(
			&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_IdleTimeoutNotification{IdleTimeoutNotification: m}},
			func(sc *scope) bool { return sc.allows(id) },
		)
	}
}

func (p *pipeline) idleEntries(t *tableState) []*p4v1.TableEntry {
	if !t.timesOut() {
		return nil
	}
	now := p.clock()
	idle, err := p.sw.IdleEntries(t.info.name, now)
	p.must(err)
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
