package dataplane

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestTrace(t *testing.T) {
	var lines []string
	s := load(t, "feedback", Options{Trace: func(e Event) {
		line := fmt.Sprintf("%d %v %s %d", e.Packet, e.Kind, e.Name, e.Value)
		if e.Source != nil {
			line += fmt.Sprintf(" %s:%d", e.Source.Filename, e.Source.Line)
		}
		lines = append(lines, line)
	}})
	e := NewEngine(s)
	_, err := s.Tables().Add("I.routes", Entry{Match: []Match{{}}, Target: act("I.group", be(1, 2))})
	must(t, err)
	must(t, s.Mirrors().Set(7, MirrorSession{Port: 100, HasPort: true}))
	e.Process(0, udp(60, 1, 2, 3, 4), time.Second)
	want := []string{
		"1 parse state start 0", "1 parse state ethernet 0", "1 parse state ip 0",
		"1 table hit I.routes 0", "1 action I.group 0 feedback.p4:49",
		"1 enqueue  2", "1 clone  7", "1 transmit  2", "2 enqueue  100",
		"2 recirculate  0", "3 parse state start 0", "3 parse state report 0", "3 drop ingress 0",
	}
	// Ignore the tables that the compiler creates for statements.
	var main []string
	for _, l := range lines {
		if slices.Contains(want, l) {
			main = append(main, l)
		}
	}
	if !slices.Equal(main, want) {
		t.Errorf("events:\n%q\nwant\n%q", lines, want)
	}
}

// The caller may own the queues, as package sim does.
func TestStepsByHand(t *testing.T) {
	e := feedback(t)
	s := e.Switch()
	p := s.Receive(4, udp(100, 1, 0x0a000001, 3, 4), time.Millisecond)
	out := s.Ingress(p, time.Millisecond, nil)
	if len(out) != 1 || out[0].Kind != ToQueue || out[0].Packet.Len() != 100 || out[0].Packet.ingressPort != 4 {
		t.Fatalf("ingress: %+v", out)
	}
	s.Enqueued(out[0].Packet, 12, 2*time.Millisecond)
	out = s.Egress(out[0].Packet, 3, 5*time.Millisecond, nil)
	if len(out) != 2 || out[0].Kind != ToQueue || out[0].Port != 100 || out[1].Kind != ToPort || len(out[1].Packet.Bytes()) != 100 {
		t.Fatalf("egress: %+v", out)
	}
	s.Free(out[1].Packet)
	s.Enqueued(out[0].Packet, 0, 5*time.Millisecond)
	out = s.Egress(out[0].Packet, 0, 5*time.Millisecond, nil)
	if len(out) != 1 || out[0].Kind != ToIngress {
		t.Fatalf("egress of the clone: %+v", out)
	}
	if out = s.Ingress(out[0].Packet, 6*time.Millisecond, nil); len(out) != 0 {
		t.Fatalf("the report was forwarded: %+v", out)
	}
	levels, err := s.Registers().Cells("I.level", nil)
	must(t, err)
	if levels[1]+levels[2] != 12<<2 {
		t.Errorf("levels %v, want a report of %d", levels[:3], 12<<2)
	}
}

// A new program keeps groups, sessions and queue settings, and loses packets in
// queues.
func TestSwap(t *testing.T) {
	e := feedback(t)
	must(t, e.Switch().Replication().SetGroup(1, []Replica{{1, 1}}))
	e.Queues(func(q *Queues) {
		q.SetAllRates(1)
		q.SetAllDepths(2)
	})
	for range 8 {
		e.Process(0, udp(60, 1, 0x0a000001, 3, 4), time.Second)
	}
	e.Swap(load(t, "reflector", Options{}))
	if out := e.Run(time.Hour); len(out) != 0 {
		t.Errorf("%d packets of the old program left", len(out))
	}
	s := e.Switch()
	if _, ok := s.Mirrors().Get(7); !ok || len(s.Replication().Groups()) != 1 {
		t.Error("sessions or groups are gone")
	}
	sent := 0
	for range 8 {
		sent += len(e.Process(1, udp(60, 1, 2, 3, 4), 2*time.Hour))
	}
	if sent != 1 || e.Drops() < 5 {
		t.Errorf("%d packets left at once and %d were dropped: the queue settings are gone", sent, e.Drops())
	}
}
