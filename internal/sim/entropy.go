package sim

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"time"
)

// An Entropy is how a sender chooses the source port of each packet. Switches that
// hash ports then send packets of one flow along several paths. Receivers answer to
// the source port of a packet, so that an acknowledgment identifies the choice that
// it acknowledges.
type Entropy int

// The choices. All but the first use Tuning.Paths ports, from the flow's own on.
const (
	EntropyFlow      Entropy = iota // one port for all packets
	EntropyOblivious                // all ports in turn, in an order that changes each time
	EntropyREPS                     // ports of acknowledged packets that met no congestion, else random ones
	entropyBitmap                   // all ports in turn; ports with congestion are skipped for a while
	EntropyMixed                    // ports of acknowledged packets, else as with a bitmap
)

var entropyNames = [...]string{"flow", "oblivious", "reps", "bitmap", "mixed"}

// EntropyNames lists the choices.
func EntropyNames() []string { return entropyNames[:] }

// ParseEntropy finds a choice by its name.
func ParseEntropy(name string) (Entropy, error) {
	for i, n := range entropyNames {
		if n == name {
			return Entropy(i), nil
		}
	}
	return 0, fmt.Errorf("entropy %q: want flow, oblivious, reps, bitmap or mixed", name)
}

// MaxPaths is the largest number of source ports of a flow. Flows begin at ports up to
// 60,000, so that all are below 65,536.
const MaxPaths = 4096

// checkEntropy returns the error of invalid entropy and paths.
func (t *Tuning) checkEntropy() error {
	switch {
	case t.Entropy < 0 || int(t.Entropy) >= len(entropyNames):
		return fmt.Errorf("entropy %d: want 0 to %d", t.Entropy, len(entropyNames)-1)
	case t.Entropy == EntropyFlow && t.Paths > 1:
		return fmt.Errorf("%d paths with entropy flow: it has one", t.Paths)
	case t.Entropy != EntropyFlow && (t.Paths < 2 || t.Paths > MaxPaths || bits.OnesCount(uint(t.Paths)) != 1):
		return fmt.Errorf("%d paths with entropy %s: want a power of two from 2 to %d", t.Paths, entropyNames[t.Entropy], MaxPaths)
	}
	return nil
}

// A feedback is the outcome of a packet.
type feedback int

const (
	pathGood feedback = iota
	pathMarked
	pathTrimmed
	pathTimeout
)

// An entropySource chooses ports for a flow, as offsets from the flow's
// source port. It implements REPS (Bonato et al., 2024) and the algorithms of
// uet-htsim's senders.
type entropySource struct {
	kind   Entropy
	paths  uint16 // a power of two
	random *rand.Rand

	index, flip uint16 // the next port is index XOR flip

	// EntropyREPS keeps the last ports that met no congestion.
	recent  [repsBuffer]uint16
	fresh   int // number of unused ports in recent, the ones before head
	valid   int
	head    int
	frozen  time.Duration // until when old ports may be reused after a timeout; 0: they may not
	reused  int           // index of the next old port to reuse
	explore int           // number of random ports to send before ports are recycled

	penalty  []uint8  // entropyBitmap, EntropyMixed: how many more times to skip each port
	recycled []uint16 // EntropyMixed
}

const (
	repsBuffer  = 8
	repsFreeze  = 10 * time.Millisecond
	repsExplore = 16
	maxPenalty  = 15
	trimPenalty = 4
)

func newEntropySource(t *Tuning, random *rand.Rand) *entropySource {
	s := &entropySource{kind: t.Entropy, paths: uint16(t.Paths), random: random}
	s.flip = s.draw()
	if s.kind == entropyBitmap || s.kind == EntropyMixed {
		s.penalty = make([]uint8, s.paths)
	}
	return s
}

func (s *entropySource) draw() uint16 { return uint16(s.random.Uint64N(uint64(s.paths))) }

// next chooses the port of the next packet.
func (s *entropySource) next(now time.Duration) uint16 {
	switch s.kind {
	case EntropyREPS:
		return s.recycle(now)
	case EntropyMixed:
		if len(s.recycled) > 0 {
			port := s.recycled[0]
			s.recycled = append(s.recycled[:0], s.recycled[1:]...)
			return port
		}
	}
	port := s.turn()
	if s.penalty != nil {
		port = s.unpenalised(port)
	}
	return port
}

// turn returns all ports in turn.
func (s *entropySource) turn() uint16 {
	port := s.index ^ s.flip
	if s.index++; s.index == s.paths {
		s.index, s.flip = 0, s.draw()
	}
	return port
}

// unpenalised returns the first port without a penalty, from the given one on. The given port's
// penalty falls by one.
func (s *entropySource) unpenalised(port uint16) uint16 {
	if s.penalty[port] == 0 {
		return port
	}
	s.penalty[port]--
	for range s.paths {
		if port = s.turn(); s.penalty[port] == 0 {
			break
		}
	}
	return port
}

// recycle implements REPS. A port that met no congestion is used once more, oldest first. After a
// timeout, ports that are known to work are reused for some time.
func (s *entropySource) recycle(now time.Duration) uint16 {
	switch {
	case s.explore > 0:
		s.explore--
	case s.frozen > now && s.valid > 0:
		port := s.recent[s.reused]
		s.reused = (s.reused + 1) % s.valid
		s.fresh = max(0, s.fresh-1)
		return port
	case s.frozen <= now && s.fresh > 0:
		port := s.recent[(s.head+repsBuffer-s.fresh)%repsBuffer]
		s.fresh--
		return port
	}
	return s.draw()
}

// heed processes the outcome of a packet that used a port.
func (s *entropySource) heed(now time.Duration, port uint16, f feedback) {
	if s.frozen > 0 && now >= s.frozen {
		s.frozen, s.fresh, s.valid, s.head, s.reused, s.explore = 0, 0, 0, 0, 0, repsExplore
	}
	port &= s.paths - 1
	switch f {
	case pathTimeout:
		if s.kind == EntropyREPS && s.frozen == 0 && s.explore == 0 {
			s.frozen = now + repsFreeze
		}
		s.penalise(port, maxPenalty)
	case pathMarked:
		s.penalise(port, 1)
	case pathTrimmed:
		s.penalise(port, trimPenalty)
	default:
		s.good(port)
	}
}

func (s *entropySource) penalise(port uint16, turns uint8) {
	if s.penalty != nil {
		s.penalty[port] = min(maxPenalty, s.penalty[port]+turns)
	}
}

// good stores a port that met no congestion for reuse.
func (s *entropySource) good(port uint16) {
	switch s.kind {
	case EntropyREPS:
		s.recent[s.head] = port
		s.head = (s.head + 1) % repsBuffer
		s.fresh, s.valid = min(repsBuffer, s.fresh+1), min(repsBuffer, s.valid+1)
	case EntropyMixed:
		s.recycled = append(s.recycled, port)
	}
}
