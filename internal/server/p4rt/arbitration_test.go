package p4rt

import (
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/p4lb/p4lb/internal/server/gate"
)

func TestHighestElectionIDWins(t *testing.T) {
	r := newRig(t, Options{})
	a, b := r.open(), r.open()
	a.claim(arbitration(5))
	a.wantArbitration(codes.OK, uint128(5))
	b.claim(arbitration(3))
	b.wantArbitration(codes.AlreadyExists, uint128(5))

	// high takes precedence over low.
	big := &p4v1.Uint128{High: 1}
	b.claim(&p4v1.MasterArbitrationUpdate{DeviceId: testDevice, ElectionId: big})
	a.wantArbitration(codes.AlreadyExists, big)
	b.wantArbitration(codes.OK, big)
}

// TestNoSuccession: when the primary leaves, the highest backup does not
// replace it. A backup has to claim an id at least as high as any before.
func TestNoSuccession(t *testing.T) {
	r := newRig(t, Options{})
	a, b := r.open(), r.open()
	a.claim(arbitration(5))
	a.wantArbitration(codes.OK, uint128(5))
	b.claim(arbitration(3))
	b.wantArbitration(codes.AlreadyExists, uint128(5))

	a.cancel()
	b.wantArbitration(codes.NotFound, uint128(5))
	b.claim(arbitration(4))
	b.wantArbitration(codes.NotFound, uint128(5))
	b.claim(arbitration(5))
	b.wantArbitration(codes.OK, uint128(5))
}

func TestPrimaryStepsDown(t *testing.T) {
	r := newRig(t, Options{})
	a, b := r.open(), r.open()
	a.claim(arbitration(5))
	a.wantArbitration(codes.OK, uint128(5))
	b.claim(&p4v1.MasterArbitrationUpdate{DeviceId: testDevice})
	b.wantArbitration(codes.AlreadyExists, uint128(5))
	a.claim(arbitration(2))
	a.wantArbitration(codes.NotFound, uint128(5))
	b.wantArbitration(codes.NotFound, uint128(5))
}

// TestNoOpClaim: a primary that claims again is treated as newly elected, so
// the other controllers are notified too.
func TestNoOpClaim(t *testing.T) {
	r := newRig(t, Options{})
	a, b := r.open(), r.open()
	a.claim(arbitration(5))
	a.wantArbitration(codes.OK, uint128(5))
	b.claim(arbitration(1))
	b.wantArbitration(codes.AlreadyExists, uint128(5))
	a.claim(arbitration(5))
	a.wantArbitration(codes.OK, uint128(5))
	b.wantArbitration(codes.AlreadyExists, uint128(5))
}

func TestStandbyWithoutElectionID(t *testing.T) {
	r := newRig(t, Options{})
	a := r.open()
	a.claim(&p4v1.MasterArbitrationUpdate{DeviceId: testDevice})
	a.wantArbitration(codes.NotFound, nil)
	// Zero is a valid id, different from no id.
	a.claim(&p4v1.MasterArbitrationUpdate{DeviceId: testDevice, ElectionId: &p4v1.Uint128{}})
	a.wantArbitration(codes.OK, &p4v1.Uint128{})
}

func TestBadClaims(t *testing.T) {
	r := newRig(t, Options{Limits: gate.Limits{MaxControllers: 2}})
	first := r.open()
	first.claim(arbitration(5))
	first.wantArbitration(codes.OK, uint128(5))

	for _, c := range []struct {
		name string
		u    *p4v1.MasterArbitrationUpdate
		code codes.Code
	}{
		{"device", &p4v1.MasterArbitrationUpdate{DeviceId: 1, ElectionId: uint128(9)}, codes.NotFound},
		{"id in use", arbitration(5), codes.InvalidArgument},
		{"role config", &p4v1.MasterArbitrationUpdate{
			DeviceId: testDevice, ElectionId: uint128(9),
			Role: &p4v1.Role{Name: "r", Config: pack(t, &p4v1.Uint128{})},
		}, codes.InvalidArgument},
	} {
		s := r.open()
		s.claim(c.u)
		if s.wantEnd(c.code); t.Failed() {
			t.Fatal(c.name)
		}
	}

	backup := r.open()
	backup.claim(arbitration(1))
	backup.wantArbitration(codes.AlreadyExists, uint128(5))
	many := r.open()
	many.claim(arbitration(2))
	many.wantEnd(codes.ResourceExhausted)

	backup.claim(arbitration(5))
	backup.wantEnd(codes.InvalidArgument)
}

func TestChangedClaims(t *testing.T) {
	for name, u := range map[string]*p4v1.MasterArbitrationUpdate{
		"device": {DeviceId: 1, ElectionId: uint128(5)},
		"role":   {DeviceId: testDevice, ElectionId: uint128(5), Role: &p4v1.Role{Name: "other"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRig(t, Options{}).primary()
			s.claim(u)
			s.wantEnd(codes.FailedPrecondition)
		})
	}
}

func pack(t testing.TB, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestRoles: each role has its own primary. A role with a config may access
// only the listed objects.
func TestRoles(t *testing.T) {
	all := configured(t)
	part := &configv1.P4Info{Tables: testInfo(t).proto.Tables[:1]}
	role := &p4v1.Role{Name: "part", Config: pack(t, part)}
	s := all.rig.open()
	s.claim(&p4v1.MasterArbitrationUpdate{DeviceId: testDevice, ElectionId: uint128(1), Role: role})
	u := s.wantArbitration(codes.OK, uint128(1))
	if u.GetRole().GetName() != "part" || u.GetRole().GetConfig() == nil {
		t.Errorf("role in the answer: %v", u.GetRole())
	}

	s.wantWrite(codes.OK, insert(t, exactEntry(t, "AllIngress.sources", "NoAction", nil, "\x01")))
	s.wantWrite(codes.PermissionDenied, insert(t, exactEntry(t, "AllIngress.macs", "AllIngress.forward", []string{"\x01"}, "\x01", "\x02")))
	s.wantWrite(codes.PermissionDenied, &p4v1.Update{Type: p4v1.Update_INSERT, Entity: multicastEntity(&p4v1.MulticastGroupEntry{MulticastGroupId: 1})})
	if err := s.configure(p4v1.SetForwardingPipelineConfigRequest_VERIFY, testConfig(t)); codeOfRPC(err) != codes.PermissionDenied {
		t.Errorf("a partial role replaces the program: %v", err)
	}
	all.wantWrite(codes.OK, insert(t, exactEntry(t, "AllIngress.macs", "AllIngress.forward", []string{"\x01"}, "\x01", "\x02")))

	everything := entityOf(&p4v1.TableEntry{})
	s.mustRead(1, everything)
	all.mustRead(4, everything) // two entries belong to the program
	stranger := &session{t: t, rig: all.rig, role: "nobody"}
	if _, err := stranger.read(everything); codeOfRPC(err) != codes.NotFound {
		t.Errorf("an unknown role reads: %v", err)
	}
}

func TestWritersChecked(t *testing.T) {
	r := newRig(t, Options{})
	nobody := &session{t: t, rig: r, id: uint128(1)}
	u := insert(t, exactEntry(t, "AllIngress.sources", "NoAction", nil, "\x01"))
	if err := nobody.write(u); codeOfRPC(err) != codes.PermissionDenied {
		t.Errorf("a write without any primary: %v", err)
	}
	p := r.primary()
	if err := p.write(u); codeOfRPC(err) != codes.FailedPrecondition {
		t.Errorf("a write before any config: %v", err)
	}
	if _, err := p.read(entityOf(&p4v1.TableEntry{})); codeOfRPC(err) != codes.FailedPrecondition {
		t.Errorf("a read before any config: %v", err)
	}
	backup := &session{t: t, rig: r, id: uint128(0)}
	if err := backup.write(u); codeOfRPC(err) != codes.PermissionDenied {
		t.Errorf("a write with a lower election id: %v", err)
	}
	none := &session{t: t, rig: r}
	if err := none.write(u); codeOfRPC(err) != codes.PermissionDenied {
		t.Errorf("a write without election id: %v", err)
	}
	stranger := &session{t: t, rig: r, id: uint128(1), role: "nobody"}
	if err := stranger.write(u); codeOfRPC(err) != codes.NotFound {
		t.Errorf("a write of an unknown role: %v", err)
	}
	_, err := r.client.Write(r.context(), &p4v1.WriteRequest{DeviceId: 1, ElectionId: uint128(1), Updates: []*p4v1.Update{u}})
	if codeOfRPC(err) != codes.NotFound {
		t.Errorf("a write for an unknown device: %v", err)
	}
}
