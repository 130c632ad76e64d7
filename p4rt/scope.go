package p4rt

import (
	"fmt"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/anypb"
)

// A scope is what a role may touch. The specification leaves the scheme open;
// here a role's config is a P4Info, the part of the program's that belongs to
// the role. Without a config, and this is a nil scope, a role has it all. The
// replication engine is in no P4Info: it belongs to roles without config.
type scope struct {
	ids                 map[uint32]bool
	packetIn, packetOut bool
}

func newScope(config *anypb.Any) (*scope, error) {
	if config == nil {
		return nil, nil
	}
	var info configv1.P4Info
	if err := config.UnmarshalTo(&info); err != nil {
		return nil, failf(codes.InvalidArgument, "role config: want a p4.config.v1.P4Info with the role's objects: %v", err)
	}
	s := &scope{ids: map[uint32]bool{}}
	for _, p := range preambles(&info) {
		s.ids[p.GetId()] = true
	}
	for _, m := range info.GetControllerPacketMetadata() {
		s.packetIn = s.packetIn || m.GetPreamble().GetName() == packetInName
		s.packetOut = s.packetOut || m.GetPreamble().GetName() == packetOutName
	}
	return s, nil
}

// allows reports whether the object of an id belongs to the role.
func (s *scope) allows(id uint32) bool { return s == nil || s.ids[id] }

func (s *scope) replicates() bool { return s == nil }

func (s *scope) sendsPackets() bool { return s == nil || s.packetOut }

func (s *scope) receivesPackets() bool { return s == nil || s.packetIn }

// preambles are those of all objects of info that an entity can name.
func preambles(info *configv1.P4Info) []*configv1.Preamble {
	var list []*configv1.Preamble
	list = appendPreambles(list, info.GetTables())
	list = appendPreambles(list, info.GetActions())
	list = appendPreambles(list, info.GetActionProfiles())
	list = appendPreambles(list, info.GetCounters())
	list = appendPreambles(list, info.GetDirectCounters())
	list = appendPreambles(list, info.GetMeters())
	list = appendPreambles(list, info.GetDirectMeters())
	list = appendPreambles(list, info.GetValueSets())
	list = appendPreambles(list, info.GetRegisters())
	return appendPreambles(list, info.GetDigests())
}

func appendPreambles[T interface{ GetPreamble() *configv1.Preamble }](list []*configv1.Preamble, objects []T) []*configv1.Preamble {
	for _, o := range objects {
		list = append(list, o.GetPreamble())
	}
	return list
}

// show128 writes an election id for messages.
func show128(id *p4v1.Uint128) string {
	switch {
	case id == nil:
		return "(none)"
	case id.GetHigh() == 0:
		return fmt.Sprint(id.GetLow())
	}
	return fmt.Sprintf("%#x%016x", id.GetHigh(), id.GetLow())
}
