package server

import (
	"cmp"
	"slices"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/dataplane"
)

// A replicator holds the tables of the replication engine: groups of nodes, and nodes
// of ports.
type replicator struct {
	s                      *Server
	group, node, ecmp, lag *recordTable
	prune, port            *recordTable
	config                 *wire.PreDeviceConfig
	slots                  map[string]*slots // by set of nodes
}

// slots hold the nodes of a set at the positions that hash values select. An
// element is the node's number plus 1, or 0 if the position is empty.
type slots [32]uint64

// hold puts new nodes into the first free places. The other nodes keep theirs.
func (s *slots) hold(ids []uint32) {
	for i, n := range s {
		if n > 0 && !slices.Contains(ids, uint32(n-1)) {
			s[i] = 0
		}
	}
	for _, id := range ids {
		if free := slices.Index(s[:], 0); free >= 0 && !slices.Contains(s[:], uint64(id)+1) {
			s[free] = uint64(id) + 1
		}
	}
}

func newReplicator(s *Server, named map[string]*recordTable) *replicator {
	p := &replicator{
		s: s, group: named["PreMgid"], node: named["PreNode"], ecmp: named["PreEcmp"], lag: named["PreLag"], prune: named["PrePrune"], port: named["PrePort"],
		config: &wire.PreDeviceConfig{
			PreGlobalRid: &wire.PreGlobalRid{}, PrePortProtection: &wire.PrePortProtection{}, PreFastFailover: &wire.PreFastFailover{},
			PreMaxNodesBeforeYield: &wire.PreMaxNodesBeforeYield{Count: 16}, PreMaxNodeThreshold: &wire.PreMaxNodeThreshold{},
		},
		slots: map[string]*slots{},
	}
	p.group.accept = func(row *record) error {
		if uintOf(row.key.GetFields()[0].GetExact().GetValue()) == 0 {
			return invalidf("group 0 is reserved: it means no group")
		}
		ids, err := p.nodesOf(row, p.group.table)
		if err != nil {
			return err
		}
		if n := len(row.flags(p.group.table, "$MULTICAST_NODE_L1_XID_VALID")); n != len(ids) {
			return invalidf("the lists of nodes and of exclusion flags differ in length: %d and %d", len(ids), n)
		}
		if n := len(row.numbers(p.group.table, "$MULTICAST_NODE_L1_XID")); n != len(ids) {
			return invalidf("the lists of nodes and of exclusions differ in length: %d and %d", len(ids), n)
		}
		for _, id := range row.numbers(p.group.table, "$MULTICAST_ECMP_ID") {
			if p.ecmp.rows[p.id(p.ecmp, id)] == nil {
				return failf(notFound, "there is no set of nodes %d", id)
			}
		}
		return nil
	}
	p.node.accept = func(row *record) error {
		for _, port := range row.numbers(p.node.table, "$DEV_PORT") {
			if port > 511 {
				return invalidf("there is no port %d", port)
			}
		}
		return nil
	}
	p.ecmp.accept = func(row *record) error {
		ids, err := p.nodesOf(row, p.ecmp.table)
		if n := len(slots{}); err == nil && len(ids) > n {
			return failf(noSpace, "a set has %d nodes at most", n)
		}
		return err
	}
	p.group.less = func(row, change *record) {
		for _, kind := range []string{"$MULTICAST_NODE", "$MULTICAST_ECMP"} {
			for _, n := range change.numbers(p.group.table, kind+"_ID") {
				p.leave(row, kind, n)
			}
		}
	}
	p.lag.constant, p.prune.constant, p.port.constant = true, true, true
	p.port.schema.Size, p.lag.schema.Size = 1<<9, 1<<8
	for _, t := range []*recordTable{p.group, p.node, p.ecmp, p.lag, p.prune, p.port} {
		t.refresh = func(_ *request, row *record) { t.withLists(row) }
		t.apply = func(r *request, before, after *record) error {
			row := after
			if row == nil {
				row = before
				if t == p.node {
					p.part(r, row)
				}
			}
			if id, _ := t.key(row.key); t == p.ecmp {
				if p.slots[id] == nil {
					p.slots[id] = new(slots)
				}
				var ids []uint32
				if after != nil {
					ids = after.numbers(p.ecmp.table, "$MULTICAST_NODE_ID")
				}
				p.slots[id].hold(ids)
			}
			r.settle(p.renew)
			return nil
		}
	}
	return p
}

// nodesOf returns the nodes of a group or a set, or an error if one is missing.
func (p *replicator) nodesOf(row *record, t *table) ([]uint32, error) {
	ids := row.numbers(t, "$MULTICAST_NODE_ID")
	for _, id := range ids {
		if p.node.rows[p.id(p.node, id)] == nil {
			return nil, failf(notFound, "there is no node %d", id)
		}
	}
	return ids, nil
}

// withLists adds empty lists to a row, because the SDE returns those too.
func (t *recordTable) withLists(row *record) {
	for _, f := range t.order {
		switch {
		case !f.repeated || row.fields[f.id] != nil:
		case f.kind == "bool":
			row.set(f.flags(nil))
		default:
			row.set(f.numbers(nil))
		}
	}
}

func (p *replicator) id(t *recordTable, n uint32) string {
	id, _ := t.key(t.keyAt(uint64(n)))
	return id
}

// part removes a deleted node from its groups.
func (p *replicator) part(r *request, row *record) {
	n := uint32(uintOf(row.key.GetFields()[0].GetExact().GetValue()))
	for id, g := range p.group.rows {
		for i := slices.Index(g.numbers(p.group.table, "$MULTICAST_NODE_ID"), n); i >= 0; i = -1 {
			next := g.clone()
			p.leave(next, "$MULTICAST_NODE", n)
			p.group.rows[id] = next
			r.done(func() { p.group.rows[id] = g })
		}
	}
}

// leave removes a node or a set of nodes from a group, with the associated elements.
func (p *replicator) leave(g *record, kind string, n uint32) {
	t := p.group.table
	ids := slices.Clone(g.numbers(t, kind+"_ID"))
	i := slices.Index(ids, n)
	if i < 0 {
		return
	}
	g.set(t.field(kind + "_ID").numbers(slices.Delete(ids, i, i+1)))
	if xids := slices.Clone(g.numbers(t, kind+"_L1_XID")); i < len(xids) {
		g.set(t.field(kind + "_L1_XID").numbers(slices.Delete(xids, i, i+1)))
	}
	if valid := slices.Clone(g.flags(t, kind+"_L1_XID_VALID")); i < len(valid) {
		g.set(t.field(kind + "_L1_XID_VALID").flags(slices.Delete(valid, i, i+1)))
	}
}

func (p *replicator) configure(c *wire.PreDeviceConfig) error {
	if x := c.GetPreGlobalRid(); x != nil {
		if x.GlobalRid > 0xffff {
			return invalidf("the RID %#x has more than 16 bits", x.GlobalRid)
		}
		p.config.PreGlobalRid = x
	}
	p.config.PrePortProtection = cmp.Or(c.GetPrePortProtection(), p.config.PrePortProtection)
	p.config.PreFastFailover = cmp.Or(c.GetPreFastFailover(), p.config.PreFastFailover)
	p.config.PreMaxNodesBeforeYield = cmp.Or(c.GetPreMaxNodesBeforeYield(), p.config.PreMaxNodesBeforeYield)
	p.config.PreMaxNodeThreshold = cmp.Or(c.GetPreMaxNodeThreshold(), p.config.PreMaxNodeThreshold)
	p.renew()
	return nil
}

// renew writes the groups of the tables into the data planes.
func (p *replicator) renew() {
	numberOf := func(row *record) uint64 { return uintOf(row.key.GetFields()[0].GetExact().GetValue()) }
	t := dataplane.Trees{
		Groups: map[uint32]dataplane.Tree{}, Prune: map[uint16][]uint32{}, Global: uint16(p.config.GetPreGlobalRid().GetGlobalRid()),
		Down: map[uint32]bool{}, Backup: map[uint32]uint32{}, WithRID: p.s.second(),
	}
	for _, id := range p.group.sorted() {
		t.Groups[uint32(numberOf(p.group.rows[id]))] = p.tree(p.group.rows[id])
	}
	for _, row := range p.prune.rows {
		t.Prune[uint16(numberOf(row))] = row.numbers(p.prune.table, "$DEV_PORT")
	}
	for _, row := range p.port.rows {
		port := uint32(numberOf(row))
		if state, ok := row.fields[p.port.field("$MULTICAST_FORWARD_STATE").id]; ok && !state.GetBoolVal() {
			t.Down[port] = true
		}
		if _, ok := row.fields[p.port.field("$MULTICAST_BACKUP_PORT").id]; ok && p.config.GetPrePortProtection().GetEnable() {
			t.Backup[port] = uint32(row.number(p.port.table, "$MULTICAST_BACKUP_PORT"))
		}
	}
	for _, sw := range p.s.pipes {
		sw.Replication().SetTrees(t)
	}
	for _, row := range p.port.rows {
		if row.flag(p.port.table, "$COPY_TO_CPU_PORT_ENABLE") && p.s.cpu != nil {
			*p.s.cpu = uint32(uintOf(row.key.GetFields()[0].GetExact().GetValue()))
		}
	}
}

func (p *replicator) tree(row *record) dataplane.Tree {
	var t dataplane.Tree
	add := func(nodes, xids []uint32, valid []bool, of func(uint32) []dataplane.TreeNode) {
		for i, id := range nodes {
			b := dataplane.Branch{Nodes: of(id)}
			if i < len(valid) && i < len(xids) && valid[i] {
				b.Excludes, b.XID = true, uint16(xids[i])
			}
			t.Branches = append(t.Branches, b)
		}
	}
	g := p.group.table
	add(row.numbers(g, "$MULTICAST_NODE_ID"), row.numbers(g, "$MULTICAST_NODE_L1_XID"), row.flags(g, "$MULTICAST_NODE_L1_XID_VALID"),
		func(id uint32) []dataplane.TreeNode { return []dataplane.TreeNode{p.treeNode(true, id)} })
	add(row.numbers(g, "$MULTICAST_ECMP_ID"), row.numbers(g, "$MULTICAST_ECMP_L1_XID"), row.flags(g, "$MULTICAST_ECMP_L1_XID_VALID"),
		func(id uint32) []dataplane.TreeNode {
			var list []dataplane.TreeNode
			if e := p.slots[p.id(p.ecmp, id)]; e != nil && *e != (slots{}) {
				for _, n := range e {
					list = append(list, p.treeNode(n > 0, uint32(n-1)))
				}
			}
			return list
		})
	return t
}

// treeNode returns a node by number, if it exists.
func (p *replicator) treeNode(is bool, id uint32) dataplane.TreeNode {
	row := p.node.rows[p.id(p.node, id)]
	if !is || row == nil {
		return dataplane.TreeNode{Empty: true}
	}
	n := dataplane.TreeNode{RID: uint16(row.number(p.node.table, "$MULTICAST_RID")), Ports: row.numbers(p.node.table, "$DEV_PORT")}
	for _, lag := range row.numbers(p.node.table, "$MULTICAST_LAG_ID") {
		if l := p.lag.rows[p.id(p.lag, lag)]; l != nil {
			ports := slices.Sorted(slices.Values(l.numbers(p.lag.table, "$DEV_PORT")))
			n.Lags = append(n.Lags, dataplane.Lag{Ports: ports, Before: l.number(p.lag.table, "$MULTICAST_LAG_REMOTE_LSB_COUNT"), Behind: l.number(p.lag.table, "$MULTICAST_LAG_REMOTE_MSB_COUNT")})
		}
	}
	return n
}
