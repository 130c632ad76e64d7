package p4rt

import (
	"slices"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// cloning returns the primary of a device with two priorities. Packets from
// port 1 to MAC address 2 are cloned to session 100, packets to address 3 go to
// port 4.
func cloning(t *testing.T) (s *session, in, out *testPort) {
	t.Helper()
	s = newRigOn(t, Options{}, DeviceOptions{Priorities: 2}).primary()
	s.must(s.configure(p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, testConfig(t)))
	in, out = newTestPort(), newTestPort()
	s.must(s.rig.dev.AddPort(1, in, nil))
	s.must(s.rig.dev.AddPort(4, out, nil))
	s.must(s.write(
		insert(t, exactEntry(t, "AllIngress.macs", "AllIngress.copy", []string{"\x64"}, "\x02", "\x01")),
		insert(t, exactEntry(t, "AllIngress.macs", "AllIngress.forward", []string{"\x04"}, "\x03", "\x01")),
	))
	return s, in, out
}

func cloneSession(class uint32, length int32) *p4v1.Entity {
	return cloneEntity(&p4v1.CloneSessionEntry{
		SessionId: 100, Replicas: []*p4v1.Replica{replica("\x04", 0)}, ClassOfService: class, PacketLengthBytes: length,
	})
}

func TestCloneLength(t *testing.T) {
	s, in, out := cloning(t)
	plain := frame(2, 9, "a longer payload")
	ip := slices.Concat(plain[:12], []byte{0x08, 0x00, 0x45}, make([]byte, 30))
	typ := ins
	for _, c := range []struct {
		packet []byte
		length int32
		want   int
	}{
		{plain, 0, len(plain)},
		{plain, int32(len(plain)), len(plain)},
		{plain, 1000, len(plain)},
		{plain, 16, 16},
		{plain, 1, 1},
		{ip, 40, 40},
		{ip, 20, 20}, // within the IPv4 header, so it cannot be parsed
	} {
		e := cloneSession(0, c.length)
		s.must(s.write(update(typ, e)))
		if got := s.mustRead(1, cloneEntity(&p4v1.CloneSessionEntry{}))[0]; !proto.Equal(got, e) {
			t.Errorf("read back %v, want %v", got, e)
		}
		in.in <- c.packet
		out.wantPacket(t, c.packet[:c.want])
		typ = mod
	}
	s.wantWrite(codes.InvalidArgument, update(mod, cloneSession(0, -1)))
	in.in <- ip
	out.wantPacket(t, ip[:20])
}

func TestCloneClassOfService(t *testing.T) {
	s, in, out := cloning(t)
	clone, other := frame(2, 9, "clone"), frame(3, 9, "other")
	s.must(s.write(update(ins, cloneSession(1, 0))))
	// Only the queue of the clones is closed.
	s.must(s.rig.dev.SetQueueDepth(4, 1, 0))
	in.in <- clone
	in.in <- other
	out.wantPacket(t, other)
	s.must(s.rig.dev.SetQueueDepth(4, 1, 8))
	in.in <- clone
	out.wantPacket(t, clone)

	// A class without a queue changes nothing.
	s.wantWrite(codes.InvalidArgument, update(mod, cloneSession(2, 0)))
	s.wantWrite(codes.InvalidArgument, update(mod, cloneSession(1<<31, 0)))
	if got := s.mustRead(1, cloneEntity(&p4v1.CloneSessionEntry{}))[0]; !proto.Equal(got, cloneSession(1, 0)) {
		t.Errorf("read back %v", got)
	}
	if err := s.writeAs(p4v1.WriteRequest_ROLLBACK_ON_ERROR, update(mod, cloneSession(0, 14)), update(mod, cloneSession(2, 0))); err == nil {
		t.Error("a batch with a class that is not there is done")
	}
	in.in <- clone
	out.wantPacket(t, clone)
}
