package p4rt

import (
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"
)

// IdleScan is how often entries are looked at for their idle timeout.
const IdleScan = 50 * time.Millisecond

// WatchIdle has idle entries reported every IdleScan until a server stops.
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

// Entries that time out together are reported in messages that any client can
// receive, and no more of a table at a time than leave others their turn.
const (
	idleAtOnce  = 1 << 14
	idleMessage = 256 << 10 // bytes
)

// reportIdle sends the primaries the entries that have not been hit for their
// timeout, and starts their timers again.
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
