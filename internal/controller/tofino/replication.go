package tofino

import (
	"context"
	"maps"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// The chip's tables for copies of packets.
const (
	mirrorTable = "$mirror.cfg"
	nodeTable   = "$pre.node"
	groupTable  = "$pre.mgid"
)

// wholePacket is the largest length of a mirror session. It truncates no packet.
const wholePacket = 1<<14 - 1

func portOf(r *p4v1.Replica) uint32 {
	if b := r.GetPort(); len(b) > 0 {
		return uint32(numberOf(b))
	}
	//lint:ignore SA1019 the controller writes the form of before version 1.4
	return r.GetEgressPort()
}

// replica returns a replica in the form that the controller writes.
func replica(port, instance uint32) *p4v1.Replica {
	//lint:ignore SA1019 the form of before version 1.4, as the controller writes it
	return &p4v1.Replica{PortKind: &p4v1.Replica_EgressPort{EgressPort: port}, Instance: instance}
}

// mirror translates a clone session to one for both gresses.
func (s *session) mirror(ctx context.Context, kind wire.Update_Type, m *p4v1.CloneSessionEntry) ([]*wire.Update, error) {
	t, err := s.chipNamed(ctx, mirrorTable)
	if err != nil {
		return nil, err
	}
	id := []uint64{uint64(m.GetSessionId())}
	if kind == wire.Update_DELETE {
		e, err := t.entry(id, "")
		return []*wire.Update{update(kind, e)}, err
	}
	if n := len(m.GetReplicas()); n != 1 {
		return nil, status.Errorf(codes.Unimplemented, "a mirror session leads to one port, not to %d", n)
	}
	length := uint64(m.GetPacketLengthBytes())
	if length == 0 || length > wholePacket {
		length = wholePacket
	}
	e, err := t.entry(id, "$normal",
		"$session_enable", true, "$direction", "BOTH",
		"$ucast_egress_port", uint64(portOf(m.GetReplicas()[0])), "$ucast_egress_port_valid", true, "$max_pkt_len", length)
	return []*wire.Update{update(kind, e)}, err
}

func (s *session) mirrors(ctx context.Context, a *answer) error {
	t, err := s.chipNamed(ctx, mirrorTable)
	if err != nil {
		return err
	}
	ask := &wire.TableEntry{TableId: t.ID, TableFlags: &wire.TableFlags{}}
	return s.read(ctx, s.place().everywhere(), []*wire.TableEntry{ask}, func(e *wire.TableEntry) error {
		r := t.row(e.GetData())
		if !r.flag("$session_enable") {
			return nil
		}
		m := &p4v1.CloneSessionEntry{SessionId: uint32(keyNumber(e))}
		if r.flag("$ucast_egress_port_valid") {
			m.Replicas = append(m.Replicas, replica(uint32(r.number("$ucast_egress_port")), 1))
		}
		if n := r.number("$max_pkt_len"); n < wholePacket {
			m.PacketLengthBytes = int32(n)
		}
		a.add(&p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: m}})
		return nil
	})
}

func (a *answer) add(e *p4v1.PacketReplicationEngineEntry) {
	a.list = append(a.list, &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: e}})
}

// group translates a multicast group. Each instance becomes a node with its ports.
// The first node has the number of the group, and the others have numbers beyond
// the groups. If the nodes stay the same, only their ports change and no copy is
// lost.
func (s *session) group(ctx context.Context, kind wire.Update_Type, g *p4v1.MulticastGroupEntry) ([]*wire.Update, error) {
	nodes, err := s.chipNamed(ctx, nodeTable)
	if err != nil {
		return nil, err
	}
	groups, err := s.chipNamed(ctx, groupTable)
	if err != nil {
		return nil, err
	}
	id := g.GetMulticastGroupId()
	instances, ports := instancesOf(g)
	var made []uint32
	for i := range instances {
		made = append(made, id|uint32(i)<<16)
	}
	s.mu.Lock()
	old := s.nodes[id]
	if s.nodes[id] = made; kind == wire.Update_DELETE {
		delete(s.nodes, id)
	}
	s.mu.Unlock()

	b := &builder{}
	stay := kind == wire.Update_MODIFY && slices.Equal(old, made)
	if kind != wire.Update_INSERT && !stay {
		b.add(wire.Update_DELETE, groups, id, nil)
		for _, n := range old {
			b.add(wire.Update_DELETE, nodes, n, nil)
		}
	}
	if kind == wire.Update_DELETE {
		return b.list, b.err
	}
	nodeKind := wire.Update_INSERT
	if stay {
		nodeKind = wire.Update_MODIFY
	}
	for i, n := range made {
		b.add(nodeKind, nodes, n, []any{"$MULTICAST_RID", uint64(instances[i]), "$MULTICAST_LAG_ID", []uint32{}, "$DEV_PORT", ports[instances[i]]})
	}
	if !stay {
		b.add(wire.Update_INSERT, groups, id, []any{
			"$MULTICAST_NODE_ID", made, "$MULTICAST_NODE_L1_XID_VALID", make([]bool, len(made)), "$MULTICAST_NODE_L1_XID", make([]uint32, len(made)),
		})
	}
	return b.list, b.err
}

// instancesOf returns the ports of a group by instance.
func instancesOf(g *p4v1.MulticastGroupEntry) (order []uint32, ports map[uint32][]uint32) {
	ports = map[uint32][]uint32{}
	for _, r := range g.GetReplicas() {
		if ports[r.GetInstance()] == nil {
			order = append(order, r.GetInstance())
		}
		ports[r.GetInstance()] = append(ports[r.GetInstance()], portOf(r))
	}
	return order, ports
}

// A builder collects updates until the first error.
type builder struct {
	list []*wire.Update
	err  error
}

func (b *builder) add(kind wire.Update_Type, t chipTable, id uint32, data []any) {
	if b.err != nil {
		return
	}
	var e *wire.TableEntry
	if e, b.err = t.entry([]uint64{uint64(id)}, "", data...); b.err == nil {
		b.list = append(b.list, update(kind, e))
	}
}

func (s *session) groups(ctx context.Context, a *answer) error {
	nodes, err := s.chipNamed(ctx, nodeTable)
	if err != nil {
		return err
	}
	groups, err := s.chipNamed(ctx, groupTable)
	if err != nil {
		return err
	}
	ask := []*wire.TableEntry{{TableId: nodes.ID, TableFlags: &wire.TableFlags{}}, {TableId: groups.ID, TableFlags: &wire.TableFlags{}}}
	replicas := map[uint32][]*p4v1.Replica{}
	found := map[uint32][]uint32{}
	err = s.read(ctx, s.place().everywhere(), ask, func(e *wire.TableEntry) error {
		id := uint32(keyNumber(e))
		if e.GetTableId() == groups.ID {
			found[id] = groups.row(e.GetData())["$MULTICAST_NODE_ID"].GetIntArrVal().GetVal()
			return nil
		}
		r := nodes.row(e.GetData())
		for _, port := range r["$DEV_PORT"].GetIntArrVal().GetVal() {
			replicas[id] = append(replicas[id], replica(port, uint32(r.number("$MULTICAST_RID"))))
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.nodes = found
	s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(found)) {
		g := &p4v1.MulticastGroupEntry{MulticastGroupId: id}
		for _, n := range found[id] {
			g.Replicas = append(g.Replicas, replicas[n]...)
		}
		a.add(&p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: g}})
	}
	return nil
}
