package traffic

import (
	"encoding/binary"
	"time"
)

// This file is RoCEv2 without sockets: the packets of the InfiniBand specification's reliable
// connection over UDP, a sender and a receiver. The receiver takes packets in the order of
// their sequence numbers (PSN) alone and answers the first packet after a gap with a NAK; the
// sender then goes back to the missing packet (go-back-N), as RDMA hosts do.

const (
	rocePort = 4791
	bthLen   = 12
	aethLen  = 4
	icrcLen  = 4 // the invariant CRC, which hosts without a NIC for RDMA do not compute: 0

	segment = 1024 // bytes of a full packet, a path MTU of InfiniBand
	// stampLen is the beginning of the payload: the number of the transmission, by which the
	// receiver recognizes packets out of order.
	stampLen = 8
)

// Opcodes of the BTH.
const (
	opSendFirst  = 0x00
	opSendMiddle = 0x01
	opSendLast   = 0x02
	opSendOnly   = 0x04
	opAck        = 0x11
)

// Syndromes of the AETH.
const (
	syndromeAck = 0x1f // unlimited credit
	syndromeGap = 0x60 // PSN sequence error
)

const psnMask = 1<<24 - 1

// A bth is a packet's Base Transport Header, with the AETH of an acknowledgment.
type bth struct {
	opcode   byte
	pair     uint32 // destination queue pair: the number of the flow
	psn      uint32
	answer   bool // AckReq
	syndrome byte // of an acknowledgment
}

// appendTo appends the header.
func (h bth) appendTo(b []byte) []byte {
	b = append(b, h.opcode, 0, 0xff, 0xff) // the default partition
	b = binary.BigEndian.AppendUint32(b, h.pair&psnMask)
	word := h.psn & psnMask
	if h.answer {
		word |= 1 << 31
	}
	b = binary.BigEndian.AppendUint32(b, word)
	if h.opcode == opAck {
		b = binary.BigEndian.AppendUint32(b, uint32(h.syndrome)<<24)
	}
	return b
}

// parseBTH returns the header and the payload of a packet without its ICRC.
func parseBTH(b []byte) (h bth, payload []byte, ok bool) {
	if len(b) < bthLen+icrcLen {
		return h, nil, false
	}
	b = b[:len(b)-icrcLen]
	h = bth{opcode: b[0], pair: binary.BigEndian.Uint32(b[4:]) & psnMask}
	word := binary.BigEndian.Uint32(b[8:])
	h.psn, h.answer = word&psnMask, word>>31 == 1
	payload = b[bthLen:]
	if h.opcode == opAck {
		if len(payload) < aethLen {
			return h, nil, false
		}
		h.syndrome, payload = payload[0], payload[aethLen:]
	}
	return h, payload, true
}

// near returns the sequence number next to at whose last 24 bits are psn.
func near(at int64, psn uint32) int64 {
	return at + int64(int32((psn-uint32(at))<<8)>>8)
}

// packetsOf returns the number of packets of a message.
func packetsOf(bytes int64) int64 { return max(1, (bytes+segment-1)/segment) }

// A roceReceiver receives a message.
type roceReceiver struct {
	pair     uint32
	bytes    int64
	expected int64 // number of the next packet
	gap      bool  // a NAK for expected was sent
	newest   uint64
	early    int64 // packets that arrived after a packet sent later
	done     bool
}

// data processes a packet of the message and returns the answer.
func (r *roceReceiver) data(h bth, payload []byte) (answer bth, ok bool) {
	if len(payload) < stampLen {
		return answer, false
	}
	if stamp := binary.BigEndian.Uint64(payload); stamp < r.newest {
		r.early++
	} else {
		r.newest = stamp
	}
	answer = bth{opcode: opAck, pair: r.pair, syndrome: syndromeAck}
	switch n := near(r.expected, h.psn); {
	case n == r.expected && !r.done:
		r.expected++
		r.gap = false
		r.done = r.expected == packetsOf(r.bytes)
	case n > r.expected && !r.gap:
		r.gap = true
		answer.syndrome, answer.psn = syndromeGap, uint32(r.expected)&psnMask
		return answer, true
	case n > r.expected:
		return answer, false
	}
	answer.psn = uint32(r.expected-1) & psnMask
	return answer, true
}

// received returns the bytes of the message that have arrived in order.
func (r *roceReceiver) received() int64 { return min(r.bytes, r.expected*segment) }

// Windows of a sender, in packets, and its timeouts.
const (
	firstWindow = 16
	maxWindow   = 64
	minTimeout  = 20 * time.Millisecond
	maxTimeout  = time.Second
)

// A roceSender sends a message. Its window halves at a gap or a timeout, and grows by a packet
// for each window without one.
type roceSender struct {
	pair        uint32
	bytes       int64
	una, next   int64 // first packet without acknowledgment, and next packet
	furthest    int64 // first packet that was never sent
	window      float64
	recover     int64 // the window does not halve again before this packet is acknowledged
	stamps      uint64
	sent, again int64
	timeouts    int64
	rtt         time.Duration
	timed       int64 // packet whose round trip is measured, -1: none
	timedAt     time.Duration
	backoff     int
}

func newRoceSender(pair uint32, bytes int64) *roceSender {
	return &roceSender{pair: pair, bytes: bytes, window: firstWindow, timed: -1}
}

// ended reports whether all packets are acknowledged.
func (s *roceSender) ended() bool { return s.una == packetsOf(s.bytes) }

// packet returns the next packet, or nil if the window is full or all packets are sent.
func (s *roceSender) packet(now time.Duration, b []byte) []byte {
	last := packetsOf(s.bytes) - 1
	if s.next > last || s.next >= s.una+int64(s.window) {
		return nil
	}
	h := bth{opcode: opSendMiddle, pair: s.pair, psn: uint32(s.next) & psnMask, answer: true}
	length := int64(segment)
	switch {
	case last == 0:
		h.opcode = opSendOnly
	case s.next == 0:
		h.opcode = opSendFirst
	case s.next == last:
		h.opcode = opSendLast
	}
	if s.next == last {
		length = max(stampLen, s.bytes-last*segment)
	}
	s.stamps++
	b = binary.BigEndian.AppendUint64(h.appendTo(b), s.stamps)
	b = append(b, make([]byte, length-stampLen+icrcLen)...)
	s.sent++
	if s.next < s.furthest {
		s.again++
		if s.timed >= s.next {
			s.timed = -1 // Karn: which of the two packets is acknowledged is unknown
		}
	} else if s.timed < 0 {
		s.timed, s.timedAt = s.next, now
	}
	s.next++
	s.furthest = max(s.furthest, s.next)
	return b
}

// acknowledged processes an acknowledgment or NAK. A NAK also acknowledges the packets before
// its own.
func (s *roceSender) acknowledged(h bth, now time.Duration) {
	to := near(s.una, h.psn)
	if h.syndrome == syndromeAck {
		to++
	}
	if to > s.furthest || to < s.una {
		return
	}
	if to > s.una {
		s.window = min(maxWindow, s.window+float64(to-s.una)/s.window)
		s.backoff = 0
	}
	if s.timed >= 0 && s.timed < to {
		sample := now - s.timedAt
		if s.rtt == 0 {
			s.rtt = sample
		}
		s.rtt += (sample - s.rtt) / 8
		s.timed = -1
	}
	s.una = to
	s.next = max(s.next, s.una)
	if h.syndrome == syndromeGap {
		s.goBack()
	}
}

// goBack sends again from the first packet without acknowledgment.
func (s *roceSender) goBack() {
	s.next = s.una
	if s.una >= s.recover {
		s.window, s.recover = max(1, s.window/2), s.furthest
	}
}

// timeout returns how long the sender waits for an acknowledgment.
func (s *roceSender) timeout() time.Duration {
	return min(maxTimeout, max(minTimeout, 4*s.rtt)<<s.backoff)
}

// expire sends again after a timeout.
func (s *roceSender) expire() {
	s.timeouts++
	s.backoff = min(s.backoff+1, 6)
	s.timed = -1
	s.goBack()
}
