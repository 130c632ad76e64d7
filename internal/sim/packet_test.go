package sim

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// TestHeaders reads the header bytes of packets back.
func TestHeaders(t *testing.T) {
	n := new(Network)
	a := &Host{net: n, IP: 0x0a000101, mac: fabric.MAC{2, 0, 10, 0, 1, 1}, gateway: fabric.MAC{6, 0, 0, 0, 0, 1}}
	b := &Host{net: n, IP: 0x0a000202, mac: fabric.MAC{2, 0, 10, 0, 2, 2}}
	for _, protocol := range []uint8{protocolTCP, protocolUDP} {
		h := newHeaders(a, b, protocol, 1234, 80)
		for _, p := range []Packet{
			{Kind: data, Payload: 1460, Seq: 1 << 33, ECT: true},
			{Kind: data, Payload: 1},
			{Kind: Ack, Ack: 77, Echo: true},
		} {
			p.Flow = new(Flow)
			h.write(&p)
			checkHeaders(t, &p, protocol)
			markBytes(p.head)
			if marked(p.head) != p.ECT || checksum(p.head[14:34]) != 0 {
				t.Errorf("marking % x: marked %v, checksum %x", p.head, marked(p.head), checksum(p.head[14:34]))
			}
			overlaid := slices.Concat(p.head[:12], []byte{0x88, 0xB6, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, p.head[14:])
			if marked(overlaid) != p.ECT {
				t.Errorf("behind an overlay: marked %v", marked(overlaid))
			}
		}
	}
	for byMAC, to := range map[bool]fabric.MAC{false: a.gateway, true: b.mac} {
		n.opts.ByMAC = byMAC
		if h := newHeaders(a, b, protocolTCP, 1, 2); h.to != to || h.from != a.mac {
			t.Errorf("by MAC %v: from %v to %v", byMAC, h.from, h.to)
		}
	}
	probe := append(make([]byte, 12), 0x88, 0xB7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	markBytes(probe)
	if marked(probe) {
		t.Error("a probe is marked")
	}
}

func checkHeaders(t *testing.T, p *Packet, protocol uint8) {
	t.Helper()
	ip, l4 := p.head[14:34], p.head[34:]
	length := int(binary.BigEndian.Uint16(ip[2:]))
	if length != len(p.head)-14+p.Payload || p.extra != p.Payload || checksum(ip) != 0 || ip[9] != protocol {
		t.Errorf("length %d and checksum %x in % x", length, checksum(ip), p.head)
	}
	if binary.BigEndian.Uint16(l4) != 1234 || binary.BigEndian.Uint16(l4[2:]) != 80 {
		t.Errorf("ports in % x", l4)
	}
	if protocol == protocolTCP {
		seq, ack := binary.BigEndian.Uint32(l4[4:]), binary.BigEndian.Uint32(l4[8:])
		if seq != uint32(p.Seq) || ack != uint32(p.Ack) || l4[13]&tcpEcho != 0 != p.Echo || l4[13]&tcpAck != 0 != (p.Kind == Ack) {
			t.Errorf("seq %d, ack %d, flags %x of %+v", seq, ack, l4[13], p)
		}
	}
}

// checksum returns 0 for a header with a correct checksum.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	return ^fold(sum)
}
