package traffic

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// packets returns the packets that a sender has ready, in hexadecimal digits without the
// zeros of payload and ICRC at the end.
func packets(s *roceSender, now time.Duration) (list []string) {
	for b := s.packet(now, nil); b != nil; b = s.packet(now, nil) {
		list = append(list, fmt.Sprintf("%x+%d", b[:20], len(b)-20))
	}
	return list
}

// TestRoCEPackets checks the bytes of a message of three packets against the layout of the
// InfiniBand specification (9.2, 9.3.3, 9.3.5.2, annex A17): opcode (SEND First, Middle,
// Last, Only of a reliable connection are 0, 1, 2, 4), flags, partition 0xffff, a reserved
// byte and 24 bits of queue pair, AckReq and 24 bits of PSN. Then come eight bytes with the
// number of the transmission, the rest of the payload and four bytes of ICRC.
func TestRoCEPackets(t *testing.T) {
	const bytes = 2*1024 + 100
	want := []string{
		"0000ffff00010203800000000000000000000001+1020", "0100ffff00010203800000010000000000000002+1020", "0200ffff00010203800000020000000000000003+96",
	}
	if got := packets(newRoceSender(0x10203, bytes), 0); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got := packets(newRoceSender(5, 100), 0); !slices.Equal(got, []string{"0400ffff00000005800000000000000000000001+96"}) {
		t.Errorf("a message of one packet: %q", got)
	}
	// An acknowledgment (0x11) of packet 7, and a NAK for a sequence error (syndrome 0x60).
	for text, h := range map[string]bth{
		"1100ffff00010203000000071f000000": {opcode: opAck, pair: 0x10203, psn: 7, syndrome: syndromeAck},
		"1100ffff0001020300fffffe60000000": {opcode: opAck, pair: 0x10203, psn: 0xfffffe, syndrome: syndromeGap},
	} {
		if got := hex.EncodeToString(h.appendTo(nil)); got != text {
			t.Errorf("%s, want %s", got, text)
		}
		b, _ := hex.DecodeString(text + "00000000")
		if got, payload, ok := parseBTH(b); !ok || got != h || len(payload) != 0 {
			t.Errorf("%s is parsed as %+v", text, got)
		}
	}
	for n := range bthLen + icrcLen {
		if _, _, ok := parseBTH(make([]byte, n)); ok {
			t.Errorf("a packet of %d bytes is parsed", n)
		}
	}
}

// TestRoCEOrder delivers the packets of a message in other orders. A receiver takes packets
// in order alone, and sends one NAK for a gap. A packet is out of order if it arrives after
// a packet that was sent later; a packet that is sent again is not.
func TestRoCEOrder(t *testing.T) {
	for _, c := range []struct {
		order   []int // packets in the order of their arrival
		answers string
		early   int64
	}{
		{[]int{0, 1, 2, 3}, "ack 0, ack 1, ack 2, ack 3", 0},
		{[]int{0, 2, 1, 3}, "ack 0, nak 1, ack 1, nak 2", 1}, // the refused packet 2 is missing
		{[]int{3, 2, 1, 0}, "nak 0, -, -, ack 0", 3},
		{[]int{0, 1, 1, 0}, "ack 0, ack 1, ack 1, ack 1", 1},
		{[]int{0, 3}, "ack 0, nak 1", 0},
	} {
		s, r := newRoceSender(1, 4*segment), &roceReceiver{pair: 1, bytes: 4 * segment}
		var sent [][]byte
		for b := s.packet(0, nil); b != nil; b = s.packet(0, nil) {
			sent = append(sent, b)
		}
		var answers []string
		for _, i := range c.order {
			h, payload, _ := parseBTH(sent[i])
			a, ok := r.data(h, payload)
			switch {
			case !ok:
				answers = append(answers, "-")
			case a.syndrome == syndromeGap:
				answers = append(answers, fmt.Sprint("nak ", a.psn))
			default:
				answers = append(answers, fmt.Sprint("ack ", a.psn))
			}
		}
		if got := strings.Join(answers, ", "); got != c.answers || r.early != c.early {
			t.Errorf("%v: %s, %d out of order; want %s, %d", c.order, got, r.early, c.answers, c.early)
		}
	}
}

// TestRoCELoss runs a message over a link that loses every seventh packet, and wraps the
// sequence numbers: 2^24 packets are 16 GiB.
func TestRoCELoss(t *testing.T) {
	const bytes = 500*segment + 1
	s, r := newRoceSender(9, bytes), &roceReceiver{pair: 9, bytes: bytes}
	const start = 1<<24 - 100
	s.una, s.next, s.furthest, r.expected = start, start, start, start
	s.bytes, r.bytes = start*segment+bytes, start*segment+bytes
	lost, now := 0, time.Duration(0)
	for n := 0; !s.ended(); {
		now += time.Millisecond
		progress := false
		for b := s.packet(now, nil); b != nil; b = s.packet(now, nil) {
			progress = true
			if n++; n%7 == 0 {
				lost++
				continue
			}
			h, payload, _ := parseBTH(b)
			if a, ok := r.data(h, payload); ok {
				s.acknowledged(a, now)
			}
		}
		if !progress {
			s.expire()
		}
		if n > 10*500 {
			t.Fatalf("%d packets do not suffice: %d of %d are acknowledged", n, s.una-start, packetsOf(bytes))
		}
	}
	if !r.done || r.received() != r.bytes || r.early != 0 {
		t.Errorf("the receiver has %d bytes, %d packets out of order", r.received()-start*segment, r.early)
	}
	if s.again == 0 || s.sent != packetsOf(bytes)+s.again {
		t.Errorf("%d packets sent, %d of them again: want %d for the first time", s.sent, s.again, packetsOf(bytes))
	}
}

// TestRoCETimeout: without answers, timeouts double up to a second and the window shrinks.
func TestRoCETimeout(t *testing.T) {
	s := newRoceSender(1, 100*segment)
	var waits []time.Duration
	for range 8 {
		if len(packets(s, 0)) == 0 {
			t.Fatal("the sender sends nothing after a timeout")
		}
		waits = append(waits, s.timeout()/time.Millisecond)
		s.expire()
	}
	if want := []time.Duration{20, 40, 80, 160, 320, 640, 1000, 1000}; !slices.Equal(waits, want) {
		t.Errorf("timeouts of %d ms, want %d", waits, want)
	}
	if s.window != 8 { // one loss of one window
		t.Errorf("a window of %g packets, want 8", s.window)
	}
}
