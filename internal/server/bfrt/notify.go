package server

import (
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// newLearner returns the learner of a learn filter's field list.
func (s *Server) newLearner(p *program, f *bfrt.LearnFilter) (*learner, error) {
	name := p.short(f.Name)
	for _, l := range p.config.LearnLists {
		if l.Name != name && l.Name != f.Name {
			continue
		}
		fields := lists.Map(f.Fields, func(f *bfrt.Field) *datum { return newDatum(f, true) })
		return &learner{id: f.ID, list: l.Name, fields: fields}, nil
	}
	return nil, failf(notFound, "the program has no digest %s", f.Name)
}

// learnFor is the time for which records of a digest are collected.
const learnFor = time.Millisecond

// maxRecords is the number of records per notification.
const maxRecords = 1024

// learn takes a record. The data plane calls it while it processes a packet.
func (p *program) learn(pipe int, d dataplane.Digest) {
	l := p.learners[d.List]
	if l == nil {
		return
	}
	m := l.record(d.Data)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending[pipe]) >= maxRecords {
		return
	}
	l.pending[pipe] = append(l.pending[pipe], m)
	if l.timer == nil && p.s.dev.Simulator() == nil {
		l.timer = time.AfterFunc(learnFor, func() { p.tellLearned(l) })
	}
}

// record splits the bytes of a record into fields of whole bytes.
func (l *learner) record(data []byte) *wire.TableData {
	m := &wire.TableData{}
	for _, f := range l.fields {
		n := min((f.width+7)/8, len(data))
		m.Fields = append(m.Fields, &wire.DataField{FieldId: f.id, Value: &wire.DataField_Stream{Stream: append([]byte(nil), data[:n]...)}})
		data = data[n:]
	}
	return m
}

func (p *program) tellLearned(l *learner) {
	l.mu.Lock()
	pending := l.pending
	l.pending, l.timer = [maxPipes][]*wire.TableData{}, nil
	first := l.next
	if !slices.ContainsFunc(pending[:], func(list []*wire.TableData) bool { return len(list) > 0 }) {
		l.mu.Unlock()
		return
	}
	l.next += maxPipes
	l.mu.Unlock()
	for pipe, list := range pending {
		if len(list) == 0 {
			continue
		}
		to := p.s.everywhere()
		to.PipeId = uint32(pipe)
		p.s.clients.tell((*wire.Subscribe_Notifications).GetEnableLearnNotifications, p, &wire.StreamMessageResponse{
			Update: &wire.StreamMessageResponse_Digest{Digest: &wire.DigestList{DigestId: l.id, ListId: first + uint32(pipe), Data: list, Target: to}},
		})
	}
}

// everywhere returns the target of the whole chip.
func (s *Server) everywhere() *wire.TargetDevice {
	return &wire.TargetDevice{DeviceId: s.opts.Device, PipeId: wire.AllPipes, Direction: wire.AllDirections, PrsrId: wire.AllParsers}
}

// portsChanged notifies clients of changed port states.
func (s *Server) portsChanged() { go s.tellPorts() }

func (s *Server) tellPorts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chip.ports.tell()
}
