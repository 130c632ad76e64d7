package server

import (
	"cmp"
	"slices"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
)

// A manager describes the queues of a chip. The ports of a group share its queues.
type manager struct {
	group  uint32 // ports per group
	queues uint32 // queues per group
}

func (s *Server) second() bool { return s.opts.Arch == bmv2.T2NA }

func (s *Server) manager() manager {
	if s.second() {
		return manager{group: 8, queues: 128}
	}
	return manager{group: 4, queues: 32}
}

// perPort returns the number of queues per port.
func (m manager) perPort() uint32 { return m.queues / m.group }

func newFixed(s *Server) *fixed {
	schema := bfrt.ChipSchema(s.second())
	c := &fixed{s: s, info: schema.JSON(), tables: map[uint32]object{}}
	named := map[string]*recordTable{}
	for _, t := range schema.Tables {
		rt := newRecords(newTable(s, nil, t))
		named[t.Type], c.tables[t.ID] = rt, rt
	}
	c.device(named["DevConfigure"])
	c.ports = newPortTables(s, named)
	c.pre = newReplicator(s, named)
	c.mirrors(named["MirrorCfg"])
	c.managers(named)
	c.generator = newGenerator(s, named, c.tables)
	return c
}

// device sets up the table of the chip's properties.
func (c *fixed) device(t *recordTable) {
	t.refresh = func(_ *request, row *record) {
		s := c.s
		set := func(name string, n uint64) { row.set(t.field(name).number(n)) }
		list := func(name string, l []uint32) { row.set(t.field(name).numbers(l)) }
		set("num_pipes", uint64(len(s.pipes)))
		set("num_stages", ifElse[uint64](s.second(), 20, 12))
		set("num_max_ports", uint64(len(s.pipes))*usable)
		set("num_front_ports", uint64(len(s.pipes))*front)
		set("pcie_cpu_port", ifElse[uint64](s.second(), 0, 320))
		eth := []uint32{64, 65, 66, 67}
		if s.second() {
			eth = []uint32{2, 3, 4, 5}
		}
		list("eth_cpu_port_list", eth)
		loops := slices.DeleteFunc(dataplane.Loopback(s.opts.Arch), func(p uint32) bool { return int(p>>7) >= len(s.pipes) })
		list("recirc_port_list", loops)
		list("internal_port_list", nil)
		var outside []uint32
		for pipe := range uint32(len(s.pipes)) {
			for i := range uint32(front) {
				outside = append(outside, pipe<<7|i)
			}
		}
		list("external_port_list", outside)
		row.set(t.field("intr_based_link_monitoring").flag(true))
		row.set(t.field("sku").text("UNKNOWN"))
	}
}

// mirrors sets up the table of mirror sessions.
func (c *fixed) mirrors(t *recordTable) {
	normal := func(row *record) error {
		if a := t.actions[row.action]; a == nil || a.name != "$normal" {
			return failf(unimplemented, "a session that coalesces packets")
		}
		return nil
	}
	t.accept = func(row *record) error {
		id, err := t.keys[0].exact(row.key)
		if err != nil {
			return err
		}
		if n := uintOf(id); n >= uint64(t.schema.Size) {
			return invalidf("session %d is outside 0..%d", n, t.schema.Size-1)
		}
		if row.flag(t.table, "$ucast_egress_port_valid") {
			if port := row.number(t.table, "$ucast_egress_port"); port > 511 {
				return invalidf("there is no port %d", port)
			}
		}
		return normal(row)
	}
	t.apply = func(_ *request, before, after *record) error {
		row := cmp.Or(after, before)
		b, _ := t.keys[0].exact(row.key)
		id := uint32(uintOf(b))
		for _, sw := range c.s.pipes {
			if after == nil || !after.flag(t.table, "$session_enable") {
				sw.Mirrors().Delete(id)
				continue
			}
			m := dataplane.MirrorSession{
				Port: uint32(after.number(t.table, "$ucast_egress_port")), HasPort: after.flag(t.table, "$ucast_egress_port_valid"),
				Length: int(after.number(t.table, "$max_pkt_len")),
			}
			if after.flag(t.table, "$mcast_grp_a_valid") {
				m.Group = uint32(after.number(t.table, "$mcast_grp_a"))
			} else if after.flag(t.table, "$mcast_grp_b_valid") {
				m.Group = uint32(after.number(t.table, "$mcast_grp_b"))
			}
			if err := sw.Mirrors().Set(id, m); err != nil {
				return err
			}
		}
		return nil
	}
}

// managers sets up the tables of the traffic manager: the queues of ports, their
// rates and their lengths.
func (c *fixed) managers(named map[string]*recordTable) {
	m, s := c.s.manager(), c.s
	port := func(t *recordTable, row *record) (uint32, error) {
		b, err := t.keys[0].exact(row.key)
		if err != nil {
			return 0, err
		}
		n := uint32(uintOf(b))
		if n>>7 >= uint32(len(s.pipes)) && len(s.pipes) > 0 || n&0x7f >= usable {
			return 0, invalidf("there is no port %d", n)
		}
		return n, nil
	}
	all := func(t *recordTable) func(*request) []*wire.TableKey {
		return func(*request) (list []*wire.TableKey) {
			for pipe := range uint64(len(s.pipes)) {
				for i := range uint64(usable) {
					list = append(list, t.keyAt(pipe<<7|i))
				}
			}
			return list
		}
	}
	cfg := named["TmPortCfg"]
	cfg.constant, cfg.all = true, all(cfg)
	cfg.accept = func(*record) error { return failf(unimplemented, "the table is read only") }
	cfg.refresh = func(_ *request, row *record) {
		n, err := port(cfg, row)
		if err != nil {
			return
		}
		local := n & 0x7f
		row.set(cfg.field("pg_id").number(uint64(local / m.group)))
		row.set(cfg.field("pg_port_nr").number(uint64(local % m.group)))
		row.set(cfg.field("port_queues_count").number(uint64(m.perPort())))
		var qids []uint32
		for i := range m.perPort() {
			qids = append(qids, i)
		}
		row.set(cfg.field("ingress_qid_map").numbers(qids))
		row.set(cfg.field("egress_qid_queues").numbers(qids))
	}
	// queue returns the port and the queue of a group's queue number.
	queue := func(t *recordTable, r *request, row *record) (uint32, int, error) {
		g, err := t.keys[0].exact(row.key)
		if err != nil {
			return 0, 0, err
		}
		q, err := t.keys[1].exact(row.key)
		if err != nil {
			return 0, 0, err
		}
		group, number := uint32(uintOf(g)), uint32(uintOf(q))
		if group >= usable/m.group || number >= m.queues {
			return 0, 0, invalidf("there is no queue %d of port group %d", number, group)
		}
		pipe := r.target.GetPipeId()
		if pipe == wire.AllPipes {
			pipe = 0
		}
		return pipe<<7 | (group*m.group + number/m.perPort()), int(number % m.perPort()), nil
	}
	mapping := named["TmQueueMap"]
	mapping.constant = true
	mapping.refresh = func(r *request, row *record) {
		if p, q, err := queue(mapping, r, row); err == nil {
			row.set(mapping.field("dev_port").number(uint64(p)))
			row.set(mapping.field("queue_nr").number(uint64(q)))
		}
	}
	for _, kind := range []string{"TmPortSchedCfg", "TmPortSchedShaping"} {
		t := named[kind]
		t.constant, t.all = true, all(t)
		t.accept = func(row *record) error { _, err := port(t, row); return err }
		t.apply = func(r *request, before, after *record) error {
			if err := s.fixed(); err != nil {
				return err
			}
			r.moving(func() { c.shapePort(named, cmp.Or(after, before)) })
			return nil
		}
	}
	for _, kind := range []string{"TmQueueSchedCfg", "TmQueueSchedShaping", "TmQueueBuffer"} {
		t := named[kind]
		t.constant = true
		t.apply = func(r *request, before, after *record) error {
			row := cmp.Or(after, before)
			p, q, err := queue(t, r, row)
			if err == nil {
				err = s.fixed()
			}
			if err != nil {
				return err
			}
			if kind == "TmQueueBuffer" && after != nil {
				// The queues beyond the last one of the switch share its settings.
				cells := after.number(t.table, "guaranteed_cells") + poolCells(t, after)
				if cells > 0 {
					r.moving(func() { s.dev.SetQueueDepth(int(p), q, int(cells)) })
				}
				return nil
			}
			r.moving(func() { c.shapeQueue(named, row.key, p, q) })
			return nil
		}
	}
}

func poolCells(t *recordTable, row *record) uint64 {
	if a := t.actions[row.action]; a != nil {
		for _, p := range a.params {
			if v := row.fields[p.id]; p.name == "pool_max_cells" && v != nil {
				return uintOf(v.GetStream())
			}
		}
	}
	return 0
}

// shapePort sets the rate of a port from the two tables that define it.
func (c *fixed) shapePort(named map[string]*recordTable, row *record) {
	cfg, shape := named["TmPortSchedCfg"], named["TmPortSchedShaping"]
	id, err := cfg.key(row.key)
	if err != nil {
		return
	}
	b, _ := cfg.keys[0].exact(row.key)
	bits := uint64(0)
	if on, rate := cfg.rows[id], shape.rows[id]; on != nil && rate != nil && on.flag(cfg.table, "max_rate_enable") && rate.text(shape.table, "unit") == "BPS" {
		bits = rate.number(shape.table, "max_rate") * 1000
	}
	c.s.dev.SetPortRate(uint32(uintOf(b)), bits)
}

// shapeQueue sets the rate of a queue from the two tables that define it.
func (c *fixed) shapeQueue(named map[string]*recordTable, key *wire.TableKey, port uint32, q int) {
	cfg, shape := named["TmQueueSchedCfg"], named["TmQueueSchedShaping"]
	id, err := cfg.key(key)
	if err != nil {
		return
	}
	pps := uint64(0)
	if on, rate := cfg.rows[id], shape.rows[id]; on != nil && rate != nil && on.flag(cfg.table, "max_rate_enable") {
		pps = rate.number(shape.table, "max_rate")
		if rate.text(shape.table, "unit") == "BPS" {
			pps = pps * 1000 / 8 / 1500
		}
	}
	c.s.dev.SetQueueRate(int(port), q, pps)
}
