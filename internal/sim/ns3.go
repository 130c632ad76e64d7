package sim

import (
	"math"
	"math/bits"

	"github.com/p4lb/p4lb/internal/scheme/model"
)

// ns-3's switches for RDMA (HPCC's and its descendants) hash addresses and ports with MurmurHash3
// to choose among equal paths. The seed of the hash is the switch's number. With the same
// numbers, ECMP takes the same paths here and in ns-3, so differences between two runs of the
// same flows are not due to chance.
//
// Nodes are numbered from 0, hosts first. A host numbers the source ports of its flows from
// 10000, and the destination ports of flows to it from 100.
type ns3Numbers struct {
	node         map[string]int
	addr         map[uint32]uint32 // ns-3's address of a host, by its address here
	sport, dport []uint16          // next port, by host
}

const (
	ns3FirstSport = 10000
	ns3FirstDport = 100
)

func newNS3Numbers(n *Network) *ns3Numbers {
	s := &ns3Numbers{node: map[string]int{}, addr: map[uint32]uint32{}}
	for i, h := range n.hosts {
		s.node[h.Name] = i
		s.addr[h.IP] = ns3Address(i)
		s.sport, s.dport = append(s.sport, ns3FirstSport), append(s.dport, ns3FirstDport)
	}
	for i, sw := range n.switches {
		s.node[sw.Name] = len(n.hosts) + i
	}
	return s
}

func ns3Address(node int) uint32 { return 0x0b000001 + uint32(node/256)<<16 + uint32(node%256)<<8 }

// ports gives a flow the ports that ns-3 would use, unless its spec sets ports.
func (s *ns3Numbers) ports(f *Flow) {
	from, to := f.Src.place, f.Dst.place
	if f.Sport == 0 {
		f.Sport = s.sport[from]
		s.sport[from]++
	}
	if f.Dport == 0 {
		f.Dport = s.dport[to]
		s.dport[to]++
	}
}

// hash returns the function by which a switch of ns-3 chooses among next hops.
func (s *ns3Numbers) hash(sw *Switch) func(model.Flow) uint64 {
	seed := uint32(s.node[sw.Name])
	return func(f model.Flow) uint64 {
		return uint64(murmur3(seed, s.addr[f.Src], s.addr[f.Dst], uint32(f.Sport)|uint32(f.Dport)<<16))
	}
}

// ns3Random is glibc's rand(). ns-3's load balancers for RDMA choose paths with it, and all
// switches share one sequence in the order of events. LetFlow draws once per flowlet. The same
// flows take the same paths in both simulators until a flowlet ends in only one of them.
type ns3Random struct {
	state [31]uint32
	at    int
}

func newNS3Random(seed uint32) *ns3Random {
	r := new(ns3Random)
	word := int64(int32(max(seed, 1)))
	for i := range r.state {
		r.state[i] = uint32(word)
		if word = word * 16807 % math.MaxInt32; word < 0 {
			word += math.MaxInt32
		}
	}
	r.at = 3
	for range 10 * len(r.state) {
		r.next()
	}
	return r
}

func (r *ns3Random) next() uint32 {
	n := len(r.state)
	sum := &r.state[r.at%n]
	*sum += r.state[(r.at+n-3)%n]
	r.at++
	return *sum >> 1
}

// between returns a random number from lo to hi. It draws none if lo equals hi.
func (r *ns3Random) between(lo, hi uint64) uint64 {
	if lo == hi {
		return lo
	}
	return lo + uint64(r.next())%(hi-lo+1)
}

// murmur3 returns the 32-bit MurmurHash3 of whole words.
func murmur3(seed uint32, words ...uint32) uint32 {
	h := seed
	for _, k := range words {
		k *= 0xcc9e2d51
		k = bits.RotateLeft32(k, 15)
		k *= 0x1b873593
		h ^= k
		h = bits.RotateLeft32(h, 13)
		h = h*5 + 0xe6546b64
	}
	h ^= uint32(4 * len(words))
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}
