package server

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/server/p4rt"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// portTables are the tables of the chip's ports. The ports of the switch exist from
// the start.
type portTables struct {
	s        *Server
	config   *recordTable
	stat     *recordTable
	notify   bool
	interval uint32
	up       map[uint32]bool // the states of the last notification
	seen     map[uint32]bool // ports that have been put into the table
	held     map[uint32]p4rt.PortState
}

func newPortTables(s *Server, named map[string]*recordTable) *portTables {
	p := &portTables{s: s, config: named["PortConfigure"], stat: named["PortStat"], interval: 1000, up: map[uint32]bool{}, seen: map[uint32]bool{}}
	t := p.config
	t.lenient, t.prepare = true, p.start
	exists := func(row *record) error {
		port, err := p.number(t, row)
		if err == nil && (port>>7 >= uint32(s.opts.Pipes) || port&0x7f >= usable) {
			err = invalidf("there is no port %d", port)
		}
		return err
	}
	t.accept, p.stat.accept = exists, exists
	t.apply = func(r *request, before, after *record) error {
		row := cmp.Or(after, before)
		port, err := p.number(t, row)
		if err != nil {
			return err
		}
		on := after != nil && after.flag(t.table, "$PORT_ENABLE")
		if err := s.fixed(); err != nil && !on {
			return err
		}
		r.moving(func() { s.dev.SetPort(port, on) })
		if before != nil && before.flag(t.table, "$PORT_ENABLE") && !on {
			r.moving(func() { s.chip.generator.portDown(port) })
		}
		return nil
	}
	t.refresh = func(_ *request, row *record) {
		port, err := p.number(t, row)
		if err != nil {
			return
		}
		state, there := p.states()[port]
		row.set(t.field("$PORT_UP").flag(there && state.Up && row.flag(t.table, "$PORT_ENABLE")))
		row.set(t.field("$PORT_NAME").text(nameOf(port)))
		row.set(t.field("$CONN_ID").number(uint64(port/4 + 1)))
		row.set(t.field("$CHNL_ID").number(uint64(port % 4)))
	}
	p.stat.constant = true
	p.stat.all = func(*request) (list []*wire.TableKey) {
		exist := map[uint32]bool{}
		for port := range p.states() {
			exist[port] = true
		}
		for _, row := range t.rows {
			if port, err := p.number(t, row); err == nil {
				exist[port] = true
			}
		}
		return lists.Map(slices.Sorted(maps.Keys(exist)), func(port uint32) *wire.TableKey { return p.stat.keyAt(uint64(port)) })
	}
	base := map[uint32]map[string]uint64{} // values set by clients minus the counts at that time
	count := func(row *record) map[string]uint64 {
		port, _ := p.number(p.stat, row)
		c := p.states()[port]
		return map[string]uint64{
			"$FramesReceivedOK": c.ReceivedPackets, "$FramesReceivedAll": c.ReceivedPackets,
			"$OctetsReceived": c.ReceivedBytes, "$OctetsReceivedinGoodFrames": c.ReceivedBytes,
			"$FramesTransmittedOK": c.SentPackets, "$FramesTransmittedAll": c.SentPackets,
			"$OctetsTransmittedTotal": c.SentBytes, "$OctetsTransmittedwithouterror": c.SentBytes,
		}
	}
	p.stat.apply = func(_ *request, _, after *record) error {
		if after == nil {
			return nil
		}
		port, err := p.number(p.stat, after)
		if err != nil {
			return err
		}
		base[port] = map[string]uint64{}
		for name, n := range count(after) {
			base[port][name] = after.number(p.stat.table, name) - n
		}
		return nil
	}
	p.stat.refresh = func(_ *request, row *record) {
		port, _ := p.number(p.stat, row)
		for name, n := range count(row) {
			row.set(p.stat.field(name).number(base[port][name] + n))
		}
	}
	p.named(named["PortStrInfo"], named["PortHdlInfo"])
	return p
}

// named sets up the tables that find a port by another name.
func (p *portTables) named(byName, byHandle *recordTable) {
	byName.constant, byHandle.constant = true, true
	numbers := map[string]uint64{}
	var names, handles []*wire.TableKey
	for port := range uint32(p.s.opts.Pipes) << 7 {
		numbers[nameOf(port)] = uint64(port)
		if port&0x7f < front {
			names = append(names, &wire.TableKey{Fields: []*wire.KeyField{byName.keys[0].bytes([]byte(nameOf(port)))}})
			handles = append(handles, &wire.TableKey{Fields: []*wire.KeyField{byHandle.keys[0].value(uint64(port/4 + 1)), byHandle.keys[1].value(uint64(port % 4))}})
		}
	}
	byName.all = func(*request) []*wire.TableKey { return names }
	byHandle.all = func(*request) []*wire.TableKey { return handles }
	byName.refresh = func(_ *request, row *record) {
		b, _ := byName.keys[0].exact(row.key)
		if n, ok := numbers[string(b)]; ok {
			row.set(byName.field("$DEV_PORT").number(n))
		}
	}
	byHandle.refresh = func(_ *request, row *record) {
		conn, _ := byHandle.keys[0].exact(row.key)
		channel, _ := byHandle.keys[1].exact(row.key)
		if n := uintOf(conn); n > 0 {
			row.set(byHandle.field("$DEV_PORT").number((n-1)*4 + uintOf(channel)))
		}
	}
}

func (p *portTables) number(t *recordTable, row *record) (uint32, error) {
	b, err := t.keys[0].exact(row.key)
	return uint32(uintOf(b)), err
}

// states returns the states of the ports. While packets are stopped, it returns the
// previous states.
func (p *portTables) states() map[uint32]p4rt.PortState {
	if p.held != nil {
		return p.held
	}
	return p.s.dev.PortStates()
}

// hold runs f, which needs the states of ports, while no packet moves.
func (p *portTables) hold(f func()) {
	p.held = p.s.dev.PortStates()
	p.start()
	p.s.dev.Exclusively(f)
	p.held = nil
}

// start adds new ports to the table. A port that a client has removed is not added
// again.
func (p *portTables) start() {
	t := p.config
	for port := range p.states() {
		key := t.keyAt(uint64(port))
		id, err := t.key(key)
		if err != nil || p.seen[port] {
			continue
		}
		if p.seen[port] = true; t.rows[id] != nil {
			continue
		}
		row := &record{key: key, fields: map[uint32]*wire.DataField{}}
		row.set(t.field("$SPEED").text("BF_SPEED_100G"))
		row.set(t.field("$FEC").text("BF_FEC_TYP_NONE"))
		row.set(t.field("$PORT_ENABLE").flag(true))
		t.next++
		row.handle = t.next
		t.rows[id], t.handles[row.handle] = row, id
		p.up[port] = true // tell reports a port that is down
		p.s.dev.SetPort(port, true)
	}
}

// tell records new ports and reports changed states.
func (p *portTables) tell() {
	p.start()
	for port, state := range p.states() {
		if p.up[port] == state.Up {
			continue
		}
		p.up[port] = state.Up
		if !state.Up {
			p.s.chip.generator.portDown(port)
		}
		if !p.notify {
			continue
		}
		p.s.clients.tell((*wire.Subscribe_Notifications).GetEnablePortStatusChangeNotifications, nil, &wire.StreamMessageResponse{
			Update: &wire.StreamMessageResponse_PortStatusChangeNotification{PortStatusChangeNotification: &wire.PortStatusChgNotification{
				TableEntry: &wire.TableEntry{TableId: p.config.schema.ID, Value: &wire.TableEntry_Key{Key: p.config.keyAt(uint64(port))}},
				PortUp:     state.Up,
			}},
		})
	}
}

// fixed returns the reason why clients cannot change ports and queues, or nil.
func (s *Server) fixed() error {
	if sim := s.dev.Simulator(); sim != nil {
		if err := sim.Fixed(); err != nil {
			return failf(unimplemented, "%v", err)
		}
	}
	return nil
}

func nameOf(port uint32) string { return fmt.Sprintf("%d/%d", port/4+1, port%4) }
