package dataplane

import (
	"fmt"
	"maps"
	"slices"
)

// A MirrorSession is the destination of the clones of a session: a port, a
// multicast group, or both.
type MirrorSession struct {
	Port    uint32
	HasPort bool
	Group   uint32 // 0: none
	// Priority is the queue of the clones; 0 uses the program's priority.
	Priority int
	// Length is the number of bytes of the packet that a clone keeps; 0 keeps
	// all.
	Length int
}

// maxSession is the largest session number.
const maxSession = 1<<15 - 1

// mirrors maps session numbers to sessions.
type mirrors struct {
	sessions []MirrorSession
	used     []bool
}

func (m *mirrors) get(id uint16) (MirrorSession, bool) {
	if id &= maxSession; int(id) < len(m.used) && m.used[id] {
		return m.sessions[id], true
	}
	return MirrorSession{}, false
}

// cloneTo returns the session of a clone of p and charges p a round for it. It
// returns false if there is no session or no round left.
func (s *Switch) cloneTo(p *Packet, id uint16) (MirrorSession, bool) {
	id &= maxSession
	session, ok := s.mirrors.get(id)
	if !ok || !s.turns(p, turn{EventClone, uint32(id)}) {
		return session, false
	}
	if s.opts.Trace != nil {
		s.prog.Trace(&p.st, Event{Kind: EventClone, Value: int64(id)})
	}
	return session, true
}

// InheritTarget copies the clone sessions, multicast groups and LAGs of old, which
// belong to the target and not to the program.
func (s *Switch) InheritTarget(old *Switch) {
	old.mu.Lock()
	sessions, pre := mirrors{slices.Clone(old.mirrors.sessions), slices.Clone(old.mirrors.used)}, old.pre.clone()
	old.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mirrors, s.pre = sessions, pre
}

// Mirrors sets mirror sessions.
type Mirrors struct{ s *Switch }

// Mirrors returns the mirror sessions of the switch.
func (s *Switch) Mirrors() Mirrors { return Mirrors{s} }

// Set creates or changes a clone session.
func (ms Mirrors) Set(id uint32, m MirrorSession) error {
	if id > maxSession {
		return fmt.Errorf("clone session %d is outside 0..%d", id, maxSession)
	}
	if m.Priority < 0 || m.Priority >= ms.s.opts.Priorities || m.Length < 0 {
		return fmt.Errorf("clone session %d: priority %d is outside 0..%d or the length %d negative", id, m.Priority, ms.s.opts.Priorities-1, m.Length)
	}
	if m.Priority > 0 && !ms.s.arch.hasPriority(m.Priority) {
		return fmt.Errorf("clone session %d: priority %d does not fit the program's priority field", id, m.Priority)
	}
	ms.s.mu.Lock()
	defer ms.s.mu.Unlock()
	for int(id) >= len(ms.s.mirrors.used) {
		ms.s.mirrors.used = append(ms.s.mirrors.used, false)
		ms.s.mirrors.sessions = append(ms.s.mirrors.sessions, MirrorSession{})
	}
	ms.s.mirrors.used[id], ms.s.mirrors.sessions[id] = true, m
	return nil
}

// Delete removes a clone session.
func (ms Mirrors) Delete(id uint32) error {
	ms.s.mu.Lock()
	defer ms.s.mu.Unlock()
	if int(id) >= len(ms.s.mirrors.used) || !ms.s.mirrors.used[id] {
		return fmt.Errorf("unknown clone session %d", id)
	}
	ms.s.mirrors.used[id] = false
	return nil
}

// mirrorSessions returns all clone sessions by number.
func (s *Switch) mirrorSessions() map[uint32]MirrorSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := map[uint32]MirrorSession{}
	for id, used := range s.mirrors.used {
		if used {
			list[uint32(id)] = s.mirrors.sessions[id]
		}
	}
	return list
}

// Get returns a clone session.
func (ms Mirrors) Get(id uint32) (MirrorSession, bool) {
	m, ok := ms.s.mirrorSessions()[id]
	return m, ok
}

// IDs lists the numbers of the clone sessions.
func (ms Mirrors) IDs() []uint32 { return slices.Sorted(maps.Keys(ms.s.mirrorSessions())) }
