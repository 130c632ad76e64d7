package dataplane

import (
	"encoding/binary"
	"time"

	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// Generate creates a packet like an application of the packet generator of pipe
// 0: data after a timer header (pktgen_timer_header_t), at the generator's
// port. Pass it to Ingress, or use Engine.Generate.
func (s *Switch) Generate(app, batch, number int, data []byte, now time.Duration) *Packet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generate(app, batch, number, data, now)
}

// timerHeader is the size of pktgen_timer_header_t: pipe and application in one
// byte, a byte of padding, batch and packet.
const timerHeader = 6

func (s *Switch) generate(app, batch, number int, data []byte, now time.Duration) *Packet {
	var chip chip
	if s.tofino != nil {
		chip = s.tofino.chip
	}
	s.made = append(append(s.made[:0], make([]byte, timerHeader)...), data...)
	s.made[0] = byte(app) & byte(num.Mask64(chip.appBits))
	binary.BigEndian.PutUint16(s.made[2:], uint16(batch))
	binary.BigEndian.PutUint16(s.made[4:], uint16(number))
	return s.receive(chip.generator, s.made, 0, now)
}
