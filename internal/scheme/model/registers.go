package model

// Cells returns the state that a program stores in a register, in the program's
// format, or nil if the scheme has no such register. Tests compare models and programs
// with it, and observers of native runs use it.
func (s *Switch) Cells(register string) []uint64 {
	if s.tofino() {
		if cells := s.hardwareCells(register); cells != nil {
			return cells
		}
	}
	for _, block := range []any{s.grain, s.signal, s.choice, s.guard, s} {
		if k, ok := block.(keeper); ok {
			if cells := k.cells(register); cells != nil {
				return cells
			}
		}
	}
	return nil
}

// cells returns the cells of a register that belongs to no single block.
func (s *Switch) cells(register string) []uint64 {
	switch register {
	case "qd_S":
		return []uint64{uint64(s.controlled.threshold)}
	case "pd_gran":
		return numbers(s.controlled.granularity)
	case "nrc":
		return []uint64{uint64(s.controlled.rounds)}
	case "faulty":
		return flags(s.controlled.faulty[:])
	case "fb_tag":
		return numbers(s.feedback)
	case "rtt":
		return pathRegister(s.paths, func(k pathState) uint64 { return uint64(k.rtt) })
	case "rtt_ts":
		return pathRegister(s.paths, func(k pathState) uint64 { return s.cfg.Hardware.Count(k.at) })
	case "ecn":
		return pathRegister(s.paths, func(k pathState) uint64 { return uint64(k.marks) })
	}
	return nil
}

// pathRegister returns the cells of a register indexed by group*16 + slot.
func pathRegister[T any](groups byGroup[[MaxPaths]T], f func(T) uint64) []uint64 {
	cells := []uint64{}
	for _, paths := range groups {
		cells = append(cells, collect(paths[:], f)...)
	}
	return cells
}

// A keeper is a block with state.
type keeper interface {
	cells(register string) []uint64
}

// valid marks a 16-bit cell as valid.
const valid = 1 << 15

func pathCells(list []path) []uint64 {
	return collect(list, func(p path) uint64 {
		if p == 0 {
			return 0
		}
		return valid | uint64(p-1)
	})
}

func collect[T any](list []T, f func(T) uint64) []uint64 {
	cells := make([]uint64, len(list))
	for i, x := range list {
		cells[i] = f(x)
	}
	return cells
}

// flags returns cells of one bit.
func flags(list []bool) []uint64 {
	return collect(list, func(f bool) uint64 {
		if f {
			return 1
		}
		return 0
	})
}

func numbers[T ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int](list []T) []uint64 {
	return collect(list, func(x T) uint64 { return uint64(x) })
}

func (g *perFlow) cells(register string) []uint64 {
	if register == "fl_port" {
		return pathCells(g.paths[:])
	}
	return nil
}

func (g *flowlet) cells(register string) []uint64 {
	switch register {
	case "fl_ts":
		return g.times(g.last[:])
	case "fl_port":
		return pathCells(g.paths[:])
	}
	return nil
}

func (g *flowcell) cells(register string) []uint64 {
	switch register {
	case "fc_bytes":
		return numbers(g.bytes[:])
	case "fc_slot":
		return pathCells(g.paths[:])
	}
	return nil
}

func (c *inTurn) cells(register string) []uint64 {
	if register != "rr_slot" {
		return nil
	}
	return numbers(c.next)
}

func (c *sampled) cells(register string) []uint64 {
	if register != "dr_mem" {
		return nil
	}
	cells := []uint64{}
	for _, memory := range c.best {
		cells = append(cells, pathCells(memory[:c.cfg.M])...)
	}
	return cells
}

func (q *queue) cells(register string) []uint64 {
	switch register {
	case "q_len":
		return numbers(q.len[:])
	case "qe_clone":
		return q.times(q.last[:])
	}
	return nil
}

func (o *occupancy) cells(register string) []uint64 {
	if register == "q_paused" {
		return flags(o.paused[:])
	}
	return o.queue.cells(register)
}

func (b *behaviour) cells(register string) []uint64 {
	cells := make([]uint64, len(b.egressSide))
	for i := range cells {
		e, in := &b.egressSide[i], &b.ingressSide[i]
		switch register {
		case "qe_last":
			cells[i] = b.cfg.Hardware.Count(e.sent)
		case "qe_L":
			cells[i] = uint64(e.l)
		case "qe_V":
			cells[i] = uint64(e.v)
		case "qe_clone":
			cells[i] = b.cfg.Hardware.Count(b.last[i])
		case "q_L":
			cells[i] = uint64(in.L)
		case "q_T":
			cells[i] = uint64(in.T)
		case "q_V":
			cells[i] = uint64(in.V)
		case "q_upd":
			cells[i] = uint64(in.at)
		case "q_C":
			cells[i] = uint64(in.congestion)
		default:
			return nil
		}
	}
	return cells
}

func (l *load) cells(register string) []uint64 {
	bytes := func(e estimate) uint64 { return uint64(e.bytes) }
	at := func(e estimate) uint64 { return uint64(e.at) }
	switch register {
	case "u", "dre":
		return collect(l.egressSide[:], bytes)
	case "u_ts", "dre_ts":
		return collect(l.egressSide[:], at)
	case "u_in", "dre_in":
		return collect(l.ingressSide[:], bytes)
	case "u_in_ts", "dre_in_ts":
		return collect(l.ingressSide[:], at)
	case "qe_clone":
		return l.times(l.last[:])
	}
	return nil
}

func (u *utilisation) cells(register string) []uint64 {
	switch register {
	case "best_hop":
		return collect(u.best, func(b bestHop) uint64 { return pathCells([]path{b.hop})[0] })
	case "min_util":
		return collect(u.best, func(b bestHop) uint64 { return uint64(b.util) })
	case "upd":
		return collect(u.best, func(b bestHop) uint64 { return u.cfg.Hardware.Count(b.at) })
	}
	return u.load.cells(register)
}

func (d *degree) cells(register string) []uint64 {
	switch register {
	case "deg":
		return pathRegister(d.degrees, func(k pathDegree) uint64 { return uint64(k.degree) })
	case "deg_seq":
		return pathRegister(d.degrees, func(k pathDegree) uint64 { return uint64(k.seq) })
	case "deg_newest":
		return collect(d.newest, func(seq uint16) uint64 { return uint64(seq) })
	case "deg_ts":
		return pathRegister(d.degrees, func(k pathDegree) uint64 { return uint64(k.at) })
	}
	return d.load.cells(register)
}

func (g *piggyback) cells(register string) []uint64 {
	switch register {
	case "to_leaf":
		return pathRegister(g.toLeaf, func(k pathDegree) uint64 { return uint64(k.degree) })
	case "to_leaf_ts":
		return pathRegister(g.toLeaf, func(k pathDegree) uint64 { return uint64(k.at) })
	case "from_leaf":
		return pathRegister(g.fromLeaf, func(ce uint8) uint64 { return uint64(ce) })
	}
	return g.load.cells(register)
}

func (o *oneWay) cells(register string) []uint64 {
	time := func(t Time) uint64 { return uint64(t) }
	switch register {
	case "owd":
		return pathRegister(o.to, time)
	case "owd_from":
		return pathRegister(o.from, time)
	}
	return o.queue.cells(register)
}

func (g *adaptive) cells(register string) []uint64 {
	switch register {
	case "fc_cnt":
		return numbers(g.count[:])
	case "fc_port":
		return pathCells(g.paths[:])
	}
	return nil
}

func (c *qdaps) cells(register string) []uint64 {
	switch register {
	case "fl_D":
		cells := make([]uint64, len(c.flows))
		for i := range cells {
			cells[i] = uint64(c.flows[i].expected)
		}
		return cells
	case "fl_port":
		cells := make([]uint64, len(c.flows))
		for i := range cells {
			cells[i] = pathCells([]path{c.flows[i].path})[0]
		}
		return cells
	}
	return nil
}

func (c *hermes) cells(register string) []uint64 {
	switch register {
	case "path_rate":
		return pathRegister(c.used, func(e estimate) uint64 { return uint64(e.bytes) })
	case "path_ts":
		return pathRegister(c.used, func(e estimate) uint64 { return uint64(e.at) })
	case "fl_ts", "fl_port", "fl_sent", "fl_rate":
	default:
		return nil
	}
	cells := make([]uint64, len(c.flows))
	for i := range cells {
		f := &c.flows[i]
		switch register {
		case "fl_ts":
			cells[i] = uint64(f.last)
		case "fl_port":
			cells[i] = pathCells([]path{f.path})[0]
		case "fl_sent":
			cells[i] = uint64(f.sent)
		case "fl_rate":
			cells[i] = uint64(f.rate)
		}
	}
	return cells
}

func (c *rehash) cells(register string) []uint64 {
	flows := func(f func(echoes) uint64) []uint64 { return collect(c.flows[:], f) }
	switch register {
	case "fb_v":
		return flows(func(e echoes) uint64 { return uint64(e.v) })
	case "fb_acks":
		return flows(func(e echoes) uint64 { return uint64(e.acks) })
	case "fb_marks":
		return flows(func(e echoes) uint64 { return uint64(e.marks) })
	case "fb_t0":
		return flows(func(e echoes) uint64 { return uint64(e.began) })
	}
	return nil
}

func (g *rlb) cells(register string) []uint64 {
	if g == nil {
		return nil
	}
	queues := func(f func(ingressQueue) uint64) []uint64 { return collect(g.in[:], f) }
	switch register {
	case "ig_q":
		return queues(func(q ingressQueue) uint64 { return uint64(q.bytes) })
	case "ig_q0":
		return queues(func(q ingressQueue) uint64 { return uint64(q.before) })
	case "ig_t0":
		return queues(func(q ingressQueue) uint64 { return uint64(q.began) })
	case "warn_sent":
		return queues(func(q ingressQueue) uint64 { return g.cfg.Hardware.Count(q.warned) })
	case "warn_until":
		return numbers(g.until[:])
	case "feeder":
		return numbers(g.feeder[:])
	case "rc_q":
		return []uint64{uint64(g.waits)}
	case "t_rc":
		return []uint64{g.cfg.Hardware.Count(g.loop)}
	case "rc_cnt":
		return numbers(g.rounds[:])
	case "rc_sum":
		return []uint64{uint64(g.sum)}
	case "rc_pkts":
		return numbers(g.packets[:])
	}
	return nil
}

// SetCell writes a cell of a register that a controller may write, by the name that Cells
// accepts. It returns false if the model has no such register, or if controllers may not write
// it.
func (s *Switch) SetCell(register string, index int, v uint64) bool {
	if u, ok := s.signal.(*utilisation); ok && register == "best" && s.tofino() {
		u.best.of(index).hop = 0 // value 0 means no best path
		return true
	}
	if name, slot := copyOf(register); slot >= 0 {
		return s.setCopy(name, slot, index, v)
	}
	switch register {
	case "qd_S":
		s.SetThreshold(uint32(v))
	case "pd_gran":
		s.SetGranularity(index, uint16(v))
	case "nrc":
		s.SetRounds(uint16(v))
	case "faulty":
		s.SetFaulty(index, v&1 == 1)
	case "rtt":
		s.paths.of(index / MaxPaths)[index%MaxPaths].rtt = uint32(v)
	default:
		return s.guard != nil && s.guard.setCell(register, index, uint32(v))
	}
	return true
}

// setCell writes a counter of RLB, so that a controller can reset it.
func (g *rlb) setCell(register string, index int, v uint32) bool {
	switch register {
	case "ig_q":
		g.in[index].bytes = v
	case "rc_q":
		g.waits = v
	case "ig_in":
		g.in[index].arrived = v
	case "ig_out":
		g.in[index].left = v
	case "eg_out":
		g.left[index] = v
	case "rc_cnt":
		g.rounds[index] = v
	case "rc_sum":
		g.sum = v
	case "rc_pkts":
		g.packets[index] = v
	default:
		return false
	}
	return true
}
