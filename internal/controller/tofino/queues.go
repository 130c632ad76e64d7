package tofino

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// queues accesses ports, and the rates and lengths of their first queues in the
// traffic manager.
type queues struct{ s *session }

var _ target.Queues = (*queues)(nil)

// speeds lists the speeds of ports in bits per second.
var speeds = []struct {
	bits uint64
	name string
}{
	{1e9, "BF_SPEED_1G"}, {10e9, "BF_SPEED_10G"}, {25e9, "BF_SPEED_25G"}, {40e9, "BF_SPEED_40G"}, {50e9, "BF_SPEED_50G"},
	{100e9, "BF_SPEED_100G"}, {200e9, "BF_SPEED_200G"}, {400e9, "BF_SPEED_400G"},
}

// speed returns the lowest speed that is at least a rate.
func speed(bits uint64) string {
	for _, s := range speeds {
		if bits <= s.bits {
			return s.name
		}
	}
	return speeds[len(speeds)-1].name
}

// The words of $PORT for FEC and auto-negotiation. Some servers return older names for FEC.
var (
	fecWords     = map[string][]string{"none": {"BF_FEC_TYP_NONE"}, "fc": {"BF_FEC_TYP_FIRECODE", "BF_FEC_TYP_FC"}, "rs": {"BF_FEC_TYP_REED_SOLOMON", "BF_FEC_TYP_RS"}}
	autoNegWords = map[string]string{"on": "PM_AN_FORCE_ENABLE", "off": "PM_AN_FORCE_DISABLE"}
)

// signalOf returns the configuration of a port.
func signalOf(p row) fabric.Signal {
	s := fabric.Signal{Lanes: int(p.number("$N_LANES"))}
	for name, words := range fecWords {
		if slices.Contains(words, p.text("$FEC")) {
			s.FEC = name
		}
	}
	for name, word := range autoNegWords {
		if p.text("$AUTO_NEGOTIATION") == word {
			s.AutoNeg = name
		}
	}
	return s
}

// portFields returns names and values of the fields of a new port.
func portFields(bits uint64, s fabric.Signal) []any {
	list := []any{"$SPEED", speed(bits), "$FEC", fecWords[cmp.Or(s.FEC, "none")][0]}
	if s.AutoNeg != "" {
		list = append(list, "$AUTO_NEGOTIATION", autoNegWords[s.AutoNeg])
	}
	if s.Lanes > 0 {
		list = append(list, "$N_LANES", uint64(s.Lanes))
	}
	return append(list, "$PORT_ENABLE", true)
}

// get reads an entry of a table of the chip. It returns nil if there is none.
func (s *session) get(ctx context.Context, to *wire.TargetDevice, name string, key ...uint64) (row, error) {
	t, err := s.chipNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	e, err := t.entry(key, "")
	if err != nil {
		return nil, err
	}
	e.TableFlags = &wire.TableFlags{}
	var r row
	err = s.read(ctx, to, []*wire.TableEntry{e}, func(e *wire.TableEntry) error {
		r = t.row(e.GetData())
		return nil
	})
	return r, err
}

// put writes an entry of a table of the chip.
func (s *session) put(ctx context.Context, to *wire.TargetDevice, kind wire.Update_Type, name string, key []uint64, action string, data ...any) error {
	t, err := s.chipNamed(ctx, name)
	if err != nil {
		return err
	}
	e, err := t.entry(key, action, data...)
	if err != nil {
		return err
	}
	return s.set(ctx, to, update(kind, e))
}

// The tables of the traffic manager, without the name of the chip.
const (
	portConfig  = "tm.port.cfg"
	queueMap    = "tm.queue.map"
	queueSched  = "tm.queue.sched_cfg"
	queueShape  = "tm.queue.sched_shaping"
	queueBuffer = "tm.queue.buffer"
)

// queueOf returns the key of a port's first queue: its group and its number in the
// group. It checks that the chip maps the key back to the port.
func (s *session) queueOf(ctx context.Context, port int) (key []uint64, err error) {
	at := s.place()
	r, err := s.get(ctx, at.everywhere(), portConfig, uint64(port))
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, status.Errorf(codes.NotFound, "the traffic manager has no port %d", port)
	}
	key = []uint64{r.number("pg_id"), r.number("pg_port_nr") * r.number("port_queues_count")}
	m, err := s.get(ctx, at.in(port), queueMap, key...)
	if err != nil {
		return nil, err
	}
	if int(m.number("dev_port")) != port || m.number("queue_nr") != 0 {
		return nil, fmt.Errorf("queue %d of port group %d is queue %d of port %d, not the first of port %d", key[1], key[0], m.number("queue_nr"), m.number("dev_port"), port)
	}
	return key, nil
}

// cellBytes returns the size of the packet buffer's cells.
func (s *session) cellBytes(ctx context.Context) (int, error) {
	t, err := s.chipNamed(ctx, queueBuffer)
	if err != nil {
		return 0, err
	}
	if len(t.Name) > 3 && t.Name[:3] == "tf1" {
		return 80, nil
	}
	return 176, nil
}

// Queue returns the rate and the depth of a port's queue, in packets of the plan's
// MTU. It returns false if the port, the rate or the depth is not set.
func (q *queues) Queue(ctx context.Context, port int) (plan.Queue, bool, error) {
	at := q.s.place()
	have := plan.Queue{Port: port}
	p, err := q.s.get(ctx, at.everywhere(), "$PORT", uint64(port))
	if err != nil || !p.flag("$PORT_ENABLE") {
		return have, false, err
	}
	key, err := q.s.queueOf(ctx, port)
	if err != nil {
		return have, false, err
	}
	cell, err := q.s.cellBytes(ctx)
	if err != nil {
		return have, false, err
	}
	to := at.in(port)
	sched, err := q.s.get(ctx, to, queueSched, key...)
	if err != nil || !sched.flag("max_rate_enable") {
		return have, false, err
	}
	shape, err := q.s.get(ctx, to, queueShape, key...)
	if err != nil || shape.text("unit") == "PPS" {
		return have, false, err
	}
	buffer, err := q.s.get(ctx, to, queueBuffer, key...)
	if err != nil {
		return have, false, err
	}
	have.Rate = shape.number("max_rate") * 1000 / uint64(8*at.mtu)
	have.Signal = signalOf(p)
	have.Depth = int(buffer.number("pool_max_cells")) * cell / at.mtu
	return have, true, nil
}

// SetQueue adds the port if necessary and configures its queue. It sets the rate in bits per
// second, so that small packets are not delayed. The queue uses none of the shared buffer pool.
func (q *queues) SetQueue(ctx context.Context, set plan.Queue) error {
	at := q.s.place()
	bits := set.Rate * uint64(8*at.mtu)
	p, err := q.s.get(ctx, at.everywhere(), "$PORT", uint64(set.Port))
	if err == nil && p != nil && !signalOf(p).Has(set.Signal) {
		// The SDE sets FEC and lanes only when a port is added.
		p, err = nil, q.s.put(ctx, at.everywhere(), wire.Update_DELETE, "$PORT", []uint64{uint64(set.Port)}, "")
	}
	switch {
	case err != nil:
		return err
	case p == nil:
		err = q.s.put(ctx, at.everywhere(), wire.Update_INSERT, "$PORT", []uint64{uint64(set.Port)}, "", portFields(bits, set.Signal)...)
	case !p.flag("$PORT_ENABLE"):
		err = q.s.put(ctx, at.everywhere(), wire.Update_MODIFY, "$PORT", []uint64{uint64(set.Port)}, "", "$PORT_ENABLE", true)
	}
	if err != nil {
		return err
	}
	key, err := q.s.queueOf(ctx, set.Port)
	if err != nil {
		return err
	}
	cell, err := q.s.cellBytes(ctx)
	if err != nil {
		return err
	}
	to := at.in(set.Port)
	cells := (set.Depth*at.mtu + cell - 1) / cell
	if err := q.s.put(ctx, to, wire.Update_MODIFY, queueBuffer, key, "shared_pool", "pool_id", "EG_APP_POOL_0", "pool_max_cells", uint64(cells), "dynamic_baf", "DISABLE"); err != nil {
		return err
	}
	if err := q.s.put(ctx, to, wire.Update_MODIFY, queueShape, key, "", "unit", "BPS", "provisioning", "UPPER", "max_rate", (bits+999)/1000); err != nil {
		return err
	}
	return q.s.put(ctx, to, wire.Update_MODIFY, queueSched, key, "", "max_rate_enable", true)
}
