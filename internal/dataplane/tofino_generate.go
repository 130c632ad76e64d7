package dataplane

import (
	"encoding/binary"
	"time"

	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// A Generated is a packet of an application of the packet generator. Its data follows a
// timer header (pktgen_timer_header_t). A packet for a port that went down has the same
// layout, with the number of that port in place of the batch (pktgen_port_down_header_t).
type Generated struct {
	Port       uint32 // where it arrives; the pipe of the port is the pipe of the generator
	App, Batch int
	Number     int // in the batch
	Data       []byte
}

// GeneratorPort returns the port of the packet generator of pipe 0, or 0 without one.
func (s *Switch) GeneratorPort() uint32 {
	if s.tofino == nil {
		return 0
	}
	return s.tofino.chip.generator
}

// Generate creates a packet of the packet generator. Pass it to Ingress, or use
// Engine.Generate.
func (s *Switch) Generate(g Generated, now time.Duration) *Packet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generate(g, now)
}

// timerHeader is the size of pktgen_timer_header_t: pipe and application in one
// byte, a byte of padding, batch and packet.
const timerHeader = 6

func (s *Switch) generate(g Generated, now time.Duration) *Packet {
	var chip chip
	if s.tofino != nil {
		chip = s.tofino.chip
	}
	s.made = append(append(s.made[:0], make([]byte, timerHeader)...), g.Data...)
	s.made[0] = byte(g.Port/(devPorts/pipes))<<chip.appBits | byte(g.App)&byte(num.Mask64(chip.appBits))
	binary.BigEndian.PutUint16(s.made[2:], uint16(g.Batch))
	binary.BigEndian.PutUint16(s.made[4:], uint16(g.Number))
	return s.receive(g.Port, s.made, 0, now)
}
