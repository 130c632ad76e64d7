package p4rt

import (
	"math"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// The limits of simple_switch's replication engine. Groups from firstSession on
// hold the copies of clone sessions.
const (
	maxPort      = 1<<9 - 1
	maxInstance  = 1<<16 - 1
	maxMulticast = 1<<15 - 1
	maxSession   = 1<<15 - 1
	firstSession = 1 << 15
)

// parsePort parses a port number.
func parsePort(b []byte) (uint32, error) {
	b, err := unsigned(b, 32)
	if err != nil {
		return 0, err
	}
	return uint32(num.Uint64(b)), nil
}

func (p *pipeline) writeReplication(j *journal, typ p4v1.Update_Type, m *p4v1.PacketReplicationEngineEntry) error {
	switch x := m.GetType().(type) {
	case *p4v1.PacketReplicationEngineEntry_MulticastGroupEntry:
		return p.writeMulticast(j, typ, x.MulticastGroupEntry)
	case *p4v1.PacketReplicationEngineEntry_CloneSessionEntry:
		return p.writeClone(j, typ, x.CloneSessionEntry)
	}
	return failf(codes.InvalidArgument, "the replication entry is neither a multicast group nor a clone session")
}

// existence checks that the object to insert does not exist, or that the one to
// modify or delete does.
func existence(typ p4v1.Update_Type, there bool, what string, id uint32) error {
	switch {
	case typ == p4v1.Update_INSERT && there:
		return failf(codes.AlreadyExists, "there is a %s %d already", what, id)
	case typ != p4v1.Update_INSERT && !there:
		return failf(codes.NotFound, "there is no %s %d", what, id)
	}
	return nil
}

func (p *pipeline) writeMulticast(j *journal, typ p4v1.Update_Type, m *p4v1.MulticastGroupEntry) error {
	id := m.GetMulticastGroupId()
	if id == 0 || id > maxMulticast {
		return failf(codes.InvalidArgument, "multicast group %d is outside 1..%d", id, maxMulticast)
	}
	before, _ := p.multicast.get(id)
	if err := existence(typ, before != nil, "multicast group", id); err != nil {
		return err
	}
	if typ == p4v1.Update_DELETE {
		m = nil
	} else if _, err := parseReplicas(m.GetReplicas()); err != nil {
		return prefixed(err, "multicast group %d", id)
	}
	p.setMulticast(id, m)
	j.add(func() { p.setMulticast(id, before) })
	return nil
}

// setMulticast sets a group from a checked message; nil removes it.
func (p *pipeline) setMulticast(id uint32, m *p4v1.MulticastGroupEntry) {
	p.setReplicas(id, m.GetReplicas(), m != nil)
	put(&p.multicast, id, m)
}

func (p *pipeline) setReplicas(group uint32, list []*p4v1.Replica, there bool) {
	if !there {
		p.must(p.sw.Replication().SetGroup(group, nil))
		p.must(p.sw.Replication().DeleteGroup(group))
		return
	}
	replicas, err := parseReplicas(list)
	p.must(err)
	p.must(p.sw.Replication().SetGroup(group, replicas))
}

// parseReplicas checks the replicas of a group.
func parseReplicas(list []*p4v1.Replica) ([]dataplane.Replica, error) {
	seen := map[dataplane.Replica]bool{}
	var replicas []dataplane.Replica
	for _, r := range list {
		x := dataplane.Replica{Instance: r.GetInstance()}
		if len(r.GetBackupReplicas()) > 0 {
			return nil, failf(codes.Unimplemented, "this target has no backup replicas")
		}
		var err error
		if x.Port, err = replicaPort(r); err != nil {
			return nil, err
		}
		switch {
		case x.Instance > maxInstance:
			return nil, failf(codes.InvalidArgument, "instance %d is above %d", x.Instance, maxInstance)
		case seen[x]:
			return nil, failf(codes.InvalidArgument, "port %d with instance %d occurs twice", x.Port, x.Instance)
		}
		seen[x] = true
		replicas = append(replicas, x)
	}
	return replicas, nil
}

// replicaPort returns the port of a replica, given as a byte string or in the
// deprecated form. The port need not have an interface: packets sent to it can
// be counted or recirculated.
func replicaPort(r *p4v1.Replica) (uint32, error) {
	var port uint32
	switch x := r.GetPortKind().(type) {
	case *p4v1.Replica_Port:
		b, err := canonize(&x.Port, 32)
		if err != nil {
			return 0, recode(prefixed(err, "port"), codes.InvalidArgument)
		}
		port = uint32(num.Uint64(b))
	case *p4v1.Replica_EgressPort:
		//lint:ignore SA1019 clients that predate port use egress_port
		port = x.EgressPort
	default:
		return 0, failf(codes.InvalidArgument, "a replica has no port")
	}
	if port > maxPort {
		return 0, failf(codes.InvalidArgument, "port %d is above %d", port, maxPort)
	}
	return port, nil
}

func (p *pipeline) writeClone(j *journal, typ p4v1.Update_Type, m *p4v1.CloneSessionEntry) error {
	id := m.GetSessionId()
	if id == 0 || id > maxSession {
		return failf(codes.InvalidArgument, "clone session %d is outside 1..%d", id, maxSession)
	}
	before, _ := p.clones.get(id)
	if err := existence(typ, before != nil, "clone session", id); err != nil {
		return err
	}
	if typ == p4v1.Update_DELETE {
		m = nil
	} else if err := checkClone(m); err != nil {
		return prefixed(err, "clone session %d", id)
	}
	if err := p.setClone(id, m); err != nil {
		return recode(err, codes.InvalidArgument)
	}
	j.add(func() { p.must(p.setClone(id, before)) })
	return nil
}

func checkClone(m *p4v1.CloneSessionEntry) error {
	switch {
	case m.GetClassOfService() > math.MaxInt32:
		return failf(codes.InvalidArgument, "there is no class of service %d", m.GetClassOfService())
	case m.GetPacketLengthBytes() < 0:
		return failf(codes.InvalidArgument, "packet_length_bytes is negative")
	}
	_, err := parseReplicas(m.GetReplicas())
	return err
}

// setClone sets a session from a checked message; nil removes it. The copies
// form a multicast group; the class of service is the priority of their queues.
func (p *pipeline) setClone(id uint32, m *p4v1.CloneSessionEntry) error {
	if m == nil {
		p.setReplicas(firstSession+id, nil, false)
		p.clones.delete(id)
		return p.sw.Mirrors().Delete(id)
	}
	err := p.sw.Mirrors().Set(id, dataplane.MirrorSession{
		Group: firstSession + id, Priority: int(m.GetClassOfService()), Length: int(m.GetPacketLengthBytes()),
	})
	if err != nil {
		return err
	}
	p.setReplicas(firstSession+id, m.GetReplicas(), true)
	p.clones.set(id, m)
	return nil
}

func multicastEntity(m *p4v1.MulticastGroupEntry) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: &p4v1.PacketReplicationEngineEntry{
		Type: &p4v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: m},
	}}}
}

func cloneEntity(m *p4v1.CloneSessionEntry) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: &p4v1.PacketReplicationEngineEntry{
		Type: &p4v1.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: m},
	}}}
}
