package netspace

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// Offsets in a frame with ARP or with an IPv6 neighbour solicitation, from RFC 826
// and RFC 4861.
const (
	arpSender    = 22 // MAC and address
	arpTarget    = 32 // MAC and address
	arpEnd       = 42
	icmpSix      = 54
	ndTarget     = 62
	ndOptions    = 78
	solicitation = 135
	advert       = 136
)

// answerTo returns the response to a request for the MAC of one of the addresses,
// or nil if the frame is not such a request.
func answerTo(frame []byte, addresses map[netip.Addr]fabric.MAC) []byte {
	if len(frame) < arpEnd {
		return nil
	}
	switch binary.BigEndian.Uint16(frame[12:]) {
	case 0x0806:
		return answerARP(frame, addresses)
	case 0x86dd:
		return answerND(frame, addresses)
	}
	return nil
}

// answerARP returns the reply to an ARP request for Ethernet and IPv4.
func answerARP(frame []byte, addresses map[netip.Addr]fabric.MAC) []byte {
	request := []byte{0, 1, 8, 0, 6, 4, 0, 1}
	target := netip.AddrFrom4([4]byte(frame[arpTarget+6:]))
	mac, ok := addresses[target]
	if !ok || !bytes.Equal(frame[14:arpSender], request) {
		return nil
	}
	sender := frame[arpSender:arpTarget]
	reply := append([]byte(nil), sender[:6]...)
	reply = append(append(reply, mac[:]...), 0x08, 0x06)
	reply = append(append(reply, request[:7]...), 2)
	reply = append(append(reply, mac[:]...), target.AsSlice()...)
	return append(reply, sender...)
}

// answerND returns the advertisement for a solicitation from a host that has an
// address.
func answerND(frame []byte, addresses map[netip.Addr]fabric.MAC) []byte {
	if len(frame) < ndOptions || frame[20] != 58 || frame[21] != 255 || frame[icmpSix] != solicitation {
		return nil
	}
	source, target := netip.AddrFrom16([16]byte(frame[22:])), netip.AddrFrom16([16]byte(frame[ndTarget:]))
	mac, ok := addresses[target]
	if !ok || source.IsUnspecified() {
		return nil
	}
	body := []byte{advert, 0, 0, 0, 0x60, 0, 0, 0} // flags: solicited, override
	body = append(append(body, target.AsSlice()...), 2, 1)
	body = append(body, mac[:]...)
	ends := append(target.AsSlice(), source.AsSlice()...)
	pseudo := append(append([]byte(nil), ends...), 0, 0, 0, byte(len(body)), 0, 0, 0, 58)
	binary.BigEndian.PutUint16(body[2:], ^sum(append(pseudo, body...)))

	reply := append([]byte(nil), frame[6:12]...)
	reply = append(append(reply, mac[:]...), 0x86, 0xdd, 0x60, 0, 0, 0, 0, byte(len(body)), 58, 255)
	return append(append(reply, ends...), body...)
}

// sum adds 16-bit words in ones' complement. The length is even.
func sum(b []byte) uint16 {
	var s uint32
	for ; len(b) > 0; b = b[2:] {
		s += uint32(binary.BigEndian.Uint16(b))
	}
	for s > 0xffff {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}
