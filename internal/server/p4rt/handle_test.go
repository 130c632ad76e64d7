package p4rt

import (
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// TestSwitch: a device without program has no data plane; otherwise Switch
// returns the program's.
func TestSwitch(t *testing.T) {
	r := newRig(t, Options{})
	if r.dev.Switch() != nil {
		t.Error("there is a data plane without program")
	}
	s := configured(t)
	sw := s.rig.dev.Switch()
	if sw == nil {
		t.Fatal("there is no data plane")
	}
	s.must(s.configure(p4v1.SetForwardingPipelineConfigRequest_VERIFY, testConfig(t)))
	if s.rig.dev.Switch() != sw {
		t.Error("verifying a program replaces the data plane")
	}
}

// TestQueue: Queue returns the settings of one port's queues, across programs.
// Settings of all ports do not count.
func TestQueue(t *testing.T) {
	s := configured(t)
	d := s.rig.dev
	if err := d.SetQueueDepth(-1, -1, 9); err != nil {
		t.Fatal(err)
	}
	if err := d.SetQueueRate(3, -1, 100); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := d.Queue(3); ok {
		t.Error("the queue of port 3 is known without its depth")
	}
	if err := d.SetQueueDepth(3, -1, 7); err != nil {
		t.Fatal(err)
	}
	s.must(s.configure(p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, testConfig(t)))
	if rate, depth, ok := d.Queue(3); !ok || rate != 100 || depth != 7 {
		t.Errorf("the queue of port 3 is %d packets/s, %d packets (%v)", rate, depth, ok)
	}
	if _, _, ok := d.Queue(4); ok {
		t.Error("the queue of port 4 is known")
	}
	if err := d.SetQueueDepth(-1, -1, 5); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := d.Queue(3); ok {
		t.Error("the depth of port 3 is known although all have been set since")
	}
}
