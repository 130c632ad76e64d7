package codegen_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// Values that a switch takes from its clock, queues and random source are not
// reproducible on another switch. For the comparison with simple_switch every packet
// carries them in an additional outer header, and the program reads them from there.
// Nothing else changes.

const rigHeader = `header rig_t {
    bit<32> rnd;   // instead of the random source
    bit<48> t_in;  // instead of the timestamps
    bit<48> t_out;
    bit<32> t_enq;
    bit<32> enq;   // instead of the depths of the queue
    bit<32> deq;
}

struct headers_t {
    rig_t rig;`

var rigRewrites = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`std\.ingress_global_timestamp`), "hdr.rig.t_in"},
	{regexp.MustCompile(`std\.egress_global_timestamp`), "hdr.rig.t_out"},
	{regexp.MustCompile(`std\.enq_timestamp`), "hdr.rig.t_enq"},
	{regexp.MustCompile(`std\.(enq|deq)_qdepth`), "hdr.rig.$1[18:0]"},
	{regexp.MustCompile(`random\((\S+), (\d+w\d+), (.*)\);`), "hash($1, HashAlgorithm.crc32, $2, { hdr.rig.rnd }, $3 - $2 + 1); random($1, $1, $1);"},
	{regexp.MustCompile(`truncate\(25\)`), "truncate(53)"},
	{regexp.MustCompile(`struct headers_t \{`), rigHeader},
	{regexp.MustCompile(`state start \{`), "state start { pkt.extract(hdr.rig); transition rigged; }\n state rigged {"},
	{regexp.MustCompile(`(control LbDeparser.*\n *apply \{)`), "$1 pkt.emit(hdr.rig);"},
}

// rigged is a program that takes from its packets what another switch would
// not see in the same way.
func rigged(t *testing.T, text string) string {
	t.Helper()
	for _, r := range rigRewrites {
		text = r.pattern.ReplaceAllString(text, r.with)
	}
	if strings.Contains(text, "_timestamp") || strings.Contains(text, "_qdepth") || strings.Count(text, "hdr.rig)") != 2 {
		t.Fatalf("the program is not what the rewriting expects:\n%s", text)
	}
	return text
}

// A rigTraffic generates random packets and random register values from the
// descriptions in a manifest.
type rigTraffic struct {
	*rand.Rand
	manifest manifest.Manifest
	ports    int
	now      uint64
	flows    [][]byte // 5-tuples, as IPv4 and the ports have them
	ipv6     bool     // every second packet is an IPv6 packet
}

// Hosts are behind ports from firstHost, next hops behind ports from firstHop. The
// last constant is the number of groups.
const (
	firstHost, hosts = 1, 8
	firstHop         = 20
	groups           = 4
	controllerPort   = 255
)

func newRigTraffic(manifest manifest.Manifest, ports int, seed uint64) *rigTraffic {
	tr := &rigTraffic{Rand: rand.New(rand.NewPCG(seed, 46)), manifest: manifest, ports: ports, now: 1_000_000}
	for range 24 {
		f := make([]byte, 13)
		for i := range f {
			f[i] = byte(tr.Uint32())
		}
		copy(f[4:], []byte{10, 0, byte(tr.IntN(groups))}) // the destination
		f[8] = []byte{6, 6, 17, 1}[tr.IntN(4)]
		tr.flows = append(tr.flows, f)
	}
	return tr
}

// groupNet returns the subnet of a group, hostAddr the address behind a port.
func groupNet(gid int) uint32  { return 10<<24 | uint32(gid)<<8 }
func hostAddr(port int) uint32 { return 11<<24 | uint32(port) }

// wide returns the IPv6 address that stands for an IPv4 address: under 2001:db8::/64,
// with bits behind the last one that depend on it.
func wide(ip uint32) []byte {
	b := binary.BigEndian.AppendUint32([]byte{0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0}, ip)
	return binary.BigEndian.AppendUint32(b, ip*0x9e3779b1)
}

// pass advances time by nothing, by some us, by about a flowlet's gap, or by more. Late in
// the run the 48-bit clock wraps.
func (tr *rigTraffic) pass(progress float64) {
	switch n := tr.IntN(40); {
	case n < 8:
	case n < 30:
		tr.now += tr.Uint64N(60)
	case n < 38:
		tr.now += 200 + tr.Uint64N(1000)
	case n < 39:
		tr.now += 9000 + tr.Uint64N(2000)
	default:
		tr.now += tr.Uint64N(4_000_000)
	}
	if before := uint64(1)<<48 - 100_000; progress > 0.7 && tr.now < before {
		tr.now = before
	}
}

// packet returns a random packet and its input port.
func (tr *rigTraffic) packet() (port uint32, data []byte) {
	port = uint32(firstHost + tr.IntN(hosts))
	data = tr.rig()
	var special []manifest.Header
	for _, h := range tr.manifest.Headers {
		if h.EtherType != 0 {
			special = append(special, h)
		}
	}
	if len(special) > 0 && tr.IntN(3) == 0 {
		h := special[tr.IntN(len(special))]
		port = []uint32{port, firstHop, uint32(firstHop + tr.IntN(tr.ports)), controllerPort}[tr.IntN(4)]
		data = append(tr.ethernet(data, uint16(h.EtherType)), tr.header(h)...)
		switch {
		case h.Name != "overlay":
			return port, append(data, make([]byte, 20)...)
		case tr.ipv6 && tr.IntN(2) == 0:
			return port, tr.ip6(data)
		}
		return port, tr.ip(data)
	}
	if tr.IntN(50) == 0 {
		return port, append(tr.ethernet(data, uint16(tr.Uint32())), make([]byte, tr.IntN(40))...)
	}
	if tr.ipv6 && tr.IntN(2) == 0 {
		return port, tr.ip6(tr.ethernet(data, 0x86dd))
	}
	return port, tr.ip(tr.ethernet(data, 0x0800))
}

// rig returns the header with the values that a switch would have measured.
func (tr *rigTraffic) rig() []byte {
	b := binary.BigEndian.AppendUint32(nil, tr.Uint32())
	out := tr.now + tr.Uint64N(50)
	b = append(append(b, bytes48(tr.now)...), bytes48(out)...)
	b = binary.BigEndian.AppendUint32(b, uint32(tr.now)+tr.Uint32N(10))
	depth := min(tr.Uint32N(80), tr.Uint32N(80))
	b = binary.BigEndian.AppendUint32(b, depth)
	return binary.BigEndian.AppendUint32(b, depth-min(depth, tr.Uint32N(3)))
}

func bytes48(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v&(1<<48-1))[2:] }

func (tr *rigTraffic) ethernet(b []byte, typ uint16) []byte {
	return binary.BigEndian.AppendUint16(append(b, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2), typ)
}

// dscp returns the DSCP of the next packet. Programs that trim get a DSCP that they know.
func (tr *rigTraffic) dscp() byte {
	if tr.manifest.Guard != manifest.TrimGuard {
		return 0
	}
	return []byte{0, 10, 10, 12}[tr.IntN(4)]
}

// ip is an IPv4 packet of a flow, or back, or to a host, or to nowhere; some
// have options, are fragments, expire or are corrupt.
func (tr *rigTraffic) ip(b []byte) []byte {
	f := tr.flows[tr.IntN(len(tr.flows))]
	if tr.IntN(2) == 0 {
		f = tr.flows[tr.IntN(3)] // an elephant
	}
	h := make([]byte, 40, 1500)
	h[0], h[8], h[9] = 0x45, 64, f[8]
	h[1] = byte(tr.IntN(4)) // ECN
	h[1] |= tr.dscp() << 2
	copy(h[12:], f[:8])
	copy(h[20:], f[9:])
	h[33] = []byte{0, 0x10, 0x50, 0x42}[tr.IntN(4)] // TCP's flags
	switch tr.IntN(24) {
	case 0:
		binary.BigEndian.PutUint32(h[16:], hostAddr(firstHost+tr.IntN(hosts)))
	case 1:
		h[16] = 99
	case 2:
		h[0] = 0x46
	case 3:
		h[7] = 5
	case 4:
		h[8] = byte(tr.IntN(2))
	case 5, 6, 7: // an answer: from a group, to a host
		copy(h[12:], f[4:8])
		binary.BigEndian.PutUint32(h[16:], hostAddr(firstHost+tr.IntN(hosts)))
		copy(h[20:], []byte{f[11], f[12], f[9], f[10]})
	}
	h = h[:len(h)+[]int{0, 20, 160, 1400}[tr.IntN(4)]]
	binary.BigEndian.PutUint16(h[2:], uint16(len(h)))
	binary.BigEndian.PutUint16(h[10:], internetChecksum(h[:20]))
	switch tr.IntN(60) {
	case 0:
		h[11] ^= 1
	case 1:
		h = h[:tr.IntN(30)]
	}
	return append(b, h...)
}

// ip6 is an IPv6 packet of a flow, or back, or to a host, or to nowhere; some have
// extension headers, expire or are cut off.
func (tr *rigTraffic) ip6(b []byte) []byte {
	f := tr.flows[tr.IntN(len(tr.flows))]
	if tr.IntN(2) == 0 {
		f = tr.flows[tr.IntN(3)] // an elephant
	}
	h := make([]byte, 60, 1500)
	h[0], h[6], h[7] = 0x60, f[8], 64
	h[1], h[2], h[3] = byte(tr.IntN(4))<<4|byte(tr.IntN(16)), byte(tr.Uint32()), byte(tr.Uint32()) // ECN and flow label
	dscp := tr.dscp()
	h[0], h[1] = h[0]|dscp>>2, h[1]|dscp<<6
	copy(h[8:], wide(binary.BigEndian.Uint32(f)))
	copy(h[24:], wide(binary.BigEndian.Uint32(f[4:])))
	copy(h[40:], f[9:])
	h[53] = []byte{0, 0x10, 0x50, 0x42}[tr.IntN(4)] // TCP's flags
	switch tr.IntN(24) {
	case 0:
		copy(h[24:], wide(hostAddr(firstHost+tr.IntN(hosts))))
	case 1:
		h[24] = 0xff
	case 2:
		h[6] = 44 // a fragment header
	case 3:
		h[7] = byte(tr.IntN(3))
	case 4, 5, 6: // an answer: from a group, to a host
		copy(h[8:], wide(binary.BigEndian.Uint32(f[4:])))
		copy(h[24:], wide(hostAddr(firstHost+tr.IntN(hosts))))
		copy(h[40:], []byte{f[11], f[12], f[9], f[10]})
	}
	h = h[:len(h)+[]int{0, 20, 160, 1400}[tr.IntN(4)]]
	binary.BigEndian.PutUint16(h[4:], uint16(len(h)-40))
	if tr.IntN(60) == 0 {
		h = h[:tr.IntN(50)]
	}
	return append(b, h...)
}

func internetChecksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > math.MaxUint16 {
		sum = sum>>16 + sum&math.MaxUint16
	}
	return ^uint16(sum)
}

// header returns a header of the scheme with meaningful values.
func (tr *rigTraffic) header(h manifest.Header) []byte {
	var acc, bits uint64
	var b []byte
	for _, f := range h.Fields {
		v := tr.value(f.Width)
		for i := f.Width - 1; i >= 0; i-- {
			acc, bits = acc<<1|v>>i&1, bits+1
			if bits == 8 {
				b, acc, bits = append(b, byte(acc)), 0, 0
			}
		}
	}
	return b
}

// value returns a value of the given width: a small one, or a time close to now.
func (tr *rigTraffic) value(width int) uint64 {
	switch {
	case width == 48:
		return (tr.now - 300 + tr.Uint64N(600)) & (1<<48 - 1)
	case width > 16:
		return tr.Uint64N([]uint64{8, 400, 100_000}[tr.IntN(3)])
	case width > 8:
		return []uint64{tr.Uint64N(8), uint64(firstHop + tr.IntN(tr.ports)), 0x8000 | tr.Uint64N(uint64(tr.ports))}[tr.IntN(3)]
	case width > 4:
		return tr.Uint64N([]uint64{4, 4, 256}[tr.IntN(3)])
	}
	return tr.Uint64N(1 << width)
}

// change returns a random change to a register cell that packets reach; ok is false if
// the program has none.
func (tr *rigTraffic) change() (register string, index int, value uint64, ok bool) {
	var list []manifest.Register
	for _, r := range tr.manifest.Registers {
		if r.Index != "flow" {
			list = append(list, r)
		}
	}
	if len(list) == 0 {
		return "", 0, 0, false
	}
	r := list[tr.IntN(len(list))]
	switch r.Index {
	case "port":
		index = []int{firstHost + tr.IntN(hosts), firstHop + tr.IntN(tr.ports)}[tr.IntN(2)]
	case "path":
		index = tr.IntN(groups)<<4 + tr.IntN(tr.ports)
	default:
		index = tr.IntN(groups)
	}
	return r.Name, min(index, r.Size-1), tr.value(r.Width), true
}
