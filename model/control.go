package model

// controlled is what the controller writes.
type controlled struct {
	threshold   uint32          // QDAPS: S, in packets; 0: queues may grow
	granularity byGroup[uint16] // PDLB: packets of a flowcell
	rounds      uint16          // RLB*: N_rc
	faulty      [512]bool       // RLB*: by port
}

// SetThreshold sets QDAPS's S, in packets; 0 is no threshold.
func (s *Switch) SetThreshold(packets uint32) { s.controlled.threshold = packets }

// SetGranularity sets PDLB's size of flowcells to a group, in packets.
func (s *Switch) SetGranularity(group int, packets uint16) {
	*s.controlled.granularity.of(group) = packets
}

// SetRounds sets RLB*'s N_rc.
func (s *Switch) SetRounds(n uint16) { s.controlled.rounds = n }

// SetFaulty says whether the switch behind a port has failed (RLB*).
func (s *Switch) SetFaulty(port int, failed bool) { s.controlled.faulty[port] = failed }

// SetCell writes a cell of a register that a controller writes, by the name that
// Cells knows it under. It is false if the model has no such register, or none
// that is the controller's.
func (s *Switch) SetCell(register string, index int, v uint64) bool {
	if u, ok := s.signal.(*utilisation); ok && register == "best" && s.tofino() {
		u.best.of(index).hop = 0 // what is written there stands for none
		return true
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

// setCell writes what RLB counts, for a controller that starts it over.
func (g *rlb) setCell(register string, index int, v uint32) bool {
	switch register {
	case "ig_q":
		g.in[index].bytes = v
	case "ig_in":
		g.in[index].came = v
	case "ig_out":
		g.in[index].gone = v
	case "eg_out":
		g.left[index] = v
	case "rc_cnt":
		g.rounds[index] = v
	case "rc_sum":
		g.sum = v
	case "rc_pkts":
		g.count = v
	default:
		return false
	}
	return true
}
