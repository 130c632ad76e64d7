package server

import (
	"cmp"
	"time"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// The tables of Tofino 2's packet generator that the switch does not have.
const (
	portMaskTable = 0xff030004
	replayTable   = 0xff030005
)

// newGenerator sets up the packet generator with its tables.
func newGenerator(s *Server, named map[string]*recordTable, tables map[uint32]object) *generator {
	apps := named["PktgenAppCfg"]
	g := &generator{second: s.second(), wake: make(chan struct{}, 1), pipes: newPipes(s.opts.Pipes, int(apps.schema.Size))}
	g.ports(s, named["PktgenPortCfg"])
	list := &pipeTables{}
	for pipe := range s.opts.Pipes {
		t := newRecords(apps.table)
		g.apps(s, t, pipe)
		list.pipes = append(list.pipes, t)
	}
	list.recordTable = list.pipes[0]
	tables[apps.schema.ID] = list
	buffer := named["PktgenPktBufferCfg"]
	tables[buffer.schema.ID] = &packetBuffer{buffer.table, g}
	return g
}

// pipeTables have rows of their own for each pipe. A read of all pipes returns the rows
// of the first one.
type pipeTables struct {
	*recordTable
	pipes []*recordTable
}

func (t *pipeTables) of(r *request) ([]*recordTable, error) {
	if r.all() {
		return t.pipes, nil
	}
	if id := int(r.target.GetPipeId()); id < len(t.pipes) {
		return t.pipes[id : id+1], nil
	}
	return nil, invalidf("there is no pipe %d", r.target.GetPipeId())
}

func (t *pipeTables) write(r *request, kind wire.Update_Type, e *wire.TableEntry) error {
	list, err := t.of(r)
	if err != nil {
		return err
	}
	for _, p := range list {
		if err = p.write(r, kind, e); err != nil && err != errModified {
			return err
		}
	}
	return err
}

func (t *pipeTables) read(r *request, e *wire.TableEntry) error {
	list, err := t.of(r)
	if err != nil {
		return err
	}
	return list[0].read(r, e)
}

// ports sets up the table of the ports on which the generator sends.
func (g *generator) ports(s *Server, t *recordTable) {
	first, count := uint64(68), uint64(4)
	if g.second {
		first, count = 0, 8
	}
	t.constant = true
	t.all = func(*request) (list []*wire.TableKey) {
		for pipe := range uint64(len(g.pipes)) {
			for i := range count {
				list = append(list, t.keyAt(pipe<<7|first+i))
			}
		}
		return list
	}
	t.accept = func(row *record) error {
		port, err := s.chip.ports.number(t, row)
		local := uint64(port & 0x7f)
		switch {
		case err != nil:
			return err
		case int(port>>7) >= len(g.pipes) || local >= usable:
			return invalidf("there is no port %d", port)
		case row.flag(t.table, "pattern_matching_enable"):
			return failf(unimplemented, "pattern_matching_enable: recirculated packets do not trigger the packet generator")
		case row.flag(t.table, "recirculation_enable"):
			return failf(unimplemented, "recirculation_enable: the switch option --loop-pipes sets the ports that recirculate")
		case row.flag(t.table, "pktgen_enable") && (local < first || local >= first+count):
			return invalidf("port %d has no packet generator: want %d to %d of a pipe", port, first, first+count-1)
		}
		return nil
	}
	t.apply = func(_ *request, before, after *record) error {
		port, err := s.chip.ports.number(t, cmp.Or(after, before))
		if err != nil {
			return err
		}
		g.portOn(port, after != nil && after.flag(t.table, "pktgen_enable"))
		if after != nil && after.flag(t.table, "clear_port_down_enable") {
			g.arm(port)
			after.set(t.field("clear_port_down_enable").flag(false))
		}
		return nil
	}
}

// apps sets up the table of the applications of a pipe.
func (g *generator) apps(s *Server, t *recordTable, pipe int) {
	t.constant = true
	number := func(row *record) int {
		b, _ := t.keys[0].exact(row.key) // accepted
		return int(uintOf(b))
	}
	t.accept = func(row *record) error {
		c, err := g.config(s, t, row)
		if err != nil || !c.on {
			return err
		}
		if g.load(pipe, number(row), c) > generatorRate {
			return failf(noSpace, "the applications of all pipes would make more than %d packets per second", generatorRate)
		}
		return nil
	}
	counters := func(a *application) map[string]*uint64 {
		return map[string]*uint64{"trigger_counter": &a.trigged, "batch_counter": &a.made, "pkt_counter": &a.sent}
	}
	t.apply = func(_ *request, before, after *record) error {
		row := cmp.Or(after, before)
		var c appConfig
		if after != nil {
			var err error
			if c, err = g.config(s, t, after); err != nil {
				return err
			}
		}
		g.configure(pipe, number(row), c)
		g.mu.Lock()
		defer g.mu.Unlock()
		for name, n := range counters(&g.pipes[pipe].apps[number(row)]) {
			id := t.field(name).id
			switch {
			case after == nil:
				*n = 0
			case after.fields[id] != nil && (before == nil || after.fields[id] != before.fields[id]): // this update has it
				*n = uintOf(after.fields[id].GetStream())
			}
		}
		return nil
	}
	t.refresh = func(r *request, row *record) {
		g.mu.Lock()
		defer g.mu.Unlock()
		sum := map[string]uint64{}
		for i := range g.pipes {
			if !r.all() && i != pipe {
				continue
			}
			for name, n := range counters(&g.pipes[i].apps[number(row)]) {
				sum[name] += *n
			}
		}
		for name, n := range sum {
			row.set(t.field(name).number(n))
		}
	}
}

// config parses the configuration of an application and checks it if it is enabled.
func (g *generator) config(s *Server, t *recordTable, row *record) (appConfig, error) {
	number := func(name string) int { return int(row.number(t.table, name)) }
	gap := func(name string) time.Duration { return time.Duration(row.number(t.table, name)) }
	c := appConfig{
		on: row.flag(t.table, "app_enable"), length: number("pkt_len"), offset: number("pkt_buffer_offset"),
		batches: number("batch_count_cfg") + 1, perOne: number("packets_per_batch_cfg") + 1,
		batchGap: gap("ibg"), gap: max(gap("ipg"), generatorGap),
		increment: row.flag(t.table, "increment_source_port"),
	}
	action := ""
	if a := t.actions[row.action]; a != nil {
		action = a.name
		for _, p := range a.params {
			if v := row.fields[p.id]; p.name == "timer_nanosec" && v != nil {
				c.period = time.Duration(uintOf(v.GetStream()))
			}
		}
	}
	c.port = ifElse[uint32](g.second, 6, 68)
	if g.second {
		c.channel = uint32(number("assigned_chnl_id"))
		c.port = c.channel
	}
	if f := row.fields[t.field("pipe_local_source_port").id]; f != nil {
		c.port = uint32(uintOf(f.GetStream()))
	}
	switch action {
	case "trigger_timer_one_shot":
		c.trigger = oneShot
	case "trigger_timer_periodic":
		c.trigger = periodic
	case "trigger_port_down":
		c.trigger = portDown
		if g.second {
			return c, failf(unimplemented, "trigger_port_down is not served for Tofino 2: it needs the table pktgen.port_mask")
		}
		if s.dev.Simulator() != nil {
			return c, failf(unimplemented, "trigger_port_down is not served in virtual time")
		}
	case "":
	default:
		return c, failf(unimplemented, "%s is not served: want trigger_timer_one_shot, trigger_timer_periodic or trigger_port_down", action)
	}
	if !c.on {
		return c, nil
	}
	return c, c.check(g, t, row)
}

// check returns an error if an enabled application has an impossible configuration.
func (c *appConfig) check(g *generator, t *recordTable, row *record) error {
	for _, name := range []string{"ibg_jitter", "ipg_jitter", "source_port_wrap_max"} {
		if t.field(name) != nil && row.number(t.table, name) != 0 {
			return failf(unimplemented, "%s is not served: want 0", name)
		}
	}
	if t.field("offset_len_from_recir_pkt_enable") != nil && row.flag(t.table, "offset_len_from_recir_pkt_enable") {
		return failf(unimplemented, "offset_len_from_recir_pkt_enable is not served")
	}
	packets, takes := c.perTrigger()
	switch {
	case c.trigger == untriggered:
		return invalidf("the application has no trigger: want an action, such as trigger_timer_periodic")
	case c.trigger != portDown && c.period == 0:
		return invalidf("timer_nanosec is 0: want a positive time")
	case c.length == 0 || c.offset+c.length > bufferSize:
		return invalidf("the packet has %d bytes at offset %d: want a part of the %d bytes of the buffer", c.length, c.offset, bufferSize)
	case c.offset%lineSize != 0:
		return invalidf("pkt_buffer_offset %d: want a multiple of %d", c.offset, lineSize)
	case c.port >= usable:
		return invalidf("pipe_local_source_port %d: want 0 to %d", c.port, usable-1)
	case g.second && row.fields[t.field("assigned_chnl_id").id] == nil:
		return invalidf("the application has no assigned_chnl_id: want a port from 0 to 7")
	case g.second && c.channel > 7:
		return invalidf("assigned_chnl_id %d: want 0 to 7", c.channel)
	case packets > triggerLimit:
		return failf(noSpace, "a trigger would make %d packets: want at most %d", packets, triggerLimit)
	case c.trigger == periodic && takes > c.period:
		return failf(noSpace, "the application would make %d packets every %v, at least %v apart: want a period of at least %v", packets, c.period, c.gap, takes)
	}
	return nil
}

// A packetBuffer is the table of the buffers from which applications make packets. Its
// rows are parts of the buffers.
type packetBuffer struct {
	*table
	g *generator
}

// part returns the part of the buffer that a key names.
func (t *packetBuffer) part(e *wire.TableEntry) (from, to int, err error) {
	if err := known(t.keys, e.GetKey()); err != nil {
		return 0, 0, err
	}
	var n [2]uint64
	for i := range t.keys {
		b, err := t.keys[i].exact(e.GetKey())
		if err != nil {
			return 0, 0, err
		}
		if b == nil {
			return 0, 0, invalidf("the key lacks %s", t.keys[i].name)
		}
		n[i] = uintOf(b)
	}
	switch {
	case n[0]%lineSize != 0:
		return 0, 0, invalidf("pkt_buffer_offset %d: want a multiple of %d", n[0], lineSize)
	case n[1] == 0 || n[0]+n[1] > bufferSize:
		return 0, 0, invalidf("%d bytes at offset %d: want a part of the %d bytes of the buffer", n[1], n[0], bufferSize)
	}
	return int(n[0]), int(n[0] + n[1]), nil
}

func (t *packetBuffer) pipesOf(r *request) (list []int, err error) {
	for i := range t.g.pipes {
		if r.all() || int(r.target.GetPipeId()) == i {
			list = append(list, i)
		}
	}
	if list == nil {
		err = invalidf("there is no pipe %d", r.target.GetPipeId())
	}
	return list, err
}

func (t *packetBuffer) write(r *request, kind wire.Update_Type, e *wire.TableEntry) error {
	pipes, err := t.pipesOf(r)
	if err != nil {
		return err
	}
	var from, to int
	var data []byte
	switch {
	case e.GetValue() == nil && (kind == wire.Update_DELETE || kind == wire.Update_RESET):
		to, data = bufferSize, make([]byte, bufferSize)
	case kind == wire.Update_DELETE || kind == wire.Update_RESET:
		if from, to, err = t.part(e); err != nil {
			return err
		}
		data = make([]byte, to-from)
	default:
		if from, to, err = t.part(e); err != nil {
			return err
		}
		if data, err = t.data(e.GetData()); err != nil {
			return err
		}
	}
	if len(data) != to-from {
		return invalidf("field buffer has %d bytes, and pkt_buffer_size is %d", len(data), to-from)
	}
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	for _, i := range pipes {
		part := t.g.pipes[i].buffer[from:to]
		before := append([]byte(nil), part...)
		copy(part, data)
		r.done(func() {
			t.g.mu.Lock()
			defer t.g.mu.Unlock()
			copy(part, before)
		})
	}
	return nil
}

// data returns the bytes of an update: a string of bytes or an array of numbers.
func (t *packetBuffer) data(d *wire.TableData) (data []byte, err error) {
	for _, f := range d.GetFields() {
		if f.GetFieldId() != t.field("buffer").id {
			return nil, failf(notFound, "there is no field %d", f.GetFieldId())
		}
		data = append(data, f.GetStream()...)
		for _, n := range f.GetIntArrVal().GetVal() {
			if n > 0xff {
				return nil, invalidf("field buffer: %d has more than 8 bits", n)
			}
			data = append(data, byte(n))
		}
	}
	return data, nil
}

func (t *packetBuffer) read(r *request, e *wire.TableEntry) error {
	pipes, err := t.pipesOf(r)
	if err != nil || e.GetValue() == nil {
		return err // without a key there is no row
	}
	from, to, err := t.part(e)
	if err != nil {
		return err
	}
	t.g.mu.Lock()
	list := make([]uint32, 0, to-from)
	for _, b := range t.g.pipes[pipes[0]].buffer[from:to] {
		list = append(list, uint32(b))
	}
	t.g.mu.Unlock()
	x := &wire.TableEntry{TableId: t.schema.ID, TableFlags: r.flags, Value: &wire.TableEntry_Key{Key: e.GetKey()}}
	x.Data = &wire.TableData{Fields: []*wire.DataField{t.field("buffer").numbers(list)}}
	return r.out(&wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: x}})
}
