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
