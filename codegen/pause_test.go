package codegen_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/codegen"
)

// pfc is a PFC frame that pauses a priority for a time, or resumes it with time 0.
func pfc(priority int, quanta uint16) []byte {
	frame := make([]byte, 60)
	copy(frame, []byte{0x01, 0x80, 0xC2, 0, 0, 1})
	copy(frame[12:], []byte{0x88, 0x08, 0x01, 0x01})
	binary.BigEndian.PutUint16(frame[16:], 1<<priority)
	binary.BigEndian.PutUint16(frame[18+2*priority:], quanta)
	return frame
}

// TestPausedPorts sends PFC frames to the program for adaptive routing. A paused port is
// used only if its queue has the lowest grade and all others are paused too.
func TestPausedPorts(t *testing.T) {
	row, err := codegen.Lookup("ar")
	if err != nil {
		t.Fatal(err)
	}
	program, text := generate(t, row, codegen.Params{Ports: 4})
	config := compile(t, "ar", text)
	e := newEmbedded(t, config, 1)
	tr := newRigTraffic(program.Manifest, 4, 1)
	if err := e.commands(entries(config, program.Manifest, tr)); err != nil {
		t.Fatal(err)
	}
	at := func(slot int) uint32 { return uint32(memberPort(0, slot, 4)) }
	taken := func() map[uint32]int {
		ports := map[uint32]int{}
		for i := range 200 {
			out, err := e.send(firstHost, datagram(i), 1)
			if err != nil || len(out) != 1 {
				t.Fatalf("%d packets leave: %v", len(out), err)
			}
			ports[out[0].port]++
		}
		return ports
	}
	send := func(port uint32, frame []byte) {
		if out, err := e.send(port, frame, 0); err != nil || len(out) > 0 {
			t.Fatalf("a PFC frame left the switch at %v: %v", out, err)
		}
	}
	if got := taken(); len(got) != 4 {
		t.Errorf("without pauses the ports taken are %v, want 4", got)
	}
	send(at(1), pfc(3, 0xFFFF))
	send(at(2), pfc(3, 0xFFFF))
	send(at(3), pfc(4, 0xFFFF)) // another priority
	if got := taken(); got[at(1)] > 0 || got[at(2)] > 0 || len(got) != 2 {
		t.Errorf("with slots 1 and 2 paused the ports taken are %v", got)
	}
	// A full queue is still better than a pause.
	for slot := range 4 {
		if err := e.set("q_len", int(at(slot)), 64); err != nil {
			t.Fatal(err)
		}
		if slot != 1 {
			send(at(slot), pfc(3, 1))
		}
	}
	send(at(1), pfc(3, 0))
	if out, err := e.send(firstHost, datagram(0), 1); err != nil || len(out) != 1 || out[0].port != at(1) {
		t.Errorf("with all other ports paused the packet leaves at %v (%v), want port %d", out, err, at(1))
	}
	send(at(1), pfc(3, 7))
	for slot, length := range []uint64{13, 12, 5, 3} { // grades 3, 2, 1 and 1 begin at 12, 6 and 3 of 64 packets
		if err := e.set("q_len", int(at(slot)), length); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.set("q_len", int(at(3)), 2); err != nil {
		t.Fatal(err)
	}
	if out, err := e.send(firstHost, datagram(0), 1); err != nil || len(out) != 1 || out[0].port != at(3) {
		t.Errorf("with all ports paused the packet leaves at %v (%v), want the port with the shortest queue, %d", out, err, at(3))
	}
}

// TestGrades compares the lengths at which grades begin with shares of 64 packets.
func TestGrades(t *testing.T) {
	row, err := codegen.Lookup("ar")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		set  map[string]string
		want [3]int
	}{
		{nil, [3]int{3, 6, 12}}, // 5, 10 and 20 % of 64
		{map[string]string{"qcap": "285"}, [3]int{14, 28, 57}},
		{map[string]string{"grade1": "1%", "grade2": "25%", "grade3": "100%", "qcap": "100"}, [3]int{1, 25, 100}},
	} {
		_, text := generate(t, row, codegen.Params{Set: c.set})
		for i, want := range c.want {
			if line := fmt.Sprintf("const bit<32> GRADE_%d = %d;", i+1, want); !strings.Contains(text, line) {
				t.Errorf("%v: the program lacks %q", c.set, line)
			}
		}
	}
}

// datagram is an IPv4 packet to the subnet of group 0.
func datagram(flow int) []byte {
	b := make([]byte, 60)
	copy(b[12:], []byte{0x08, 0x00, 0x45, 0, 0, 46, 0, byte(flow), 0, 0, 64, 17})
	copy(b[26:], []byte{11, 0, 0, 1, 10, 0, 0, byte(flow)})
	sum := uint32(0)
	for i := 14; i < 34; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xFFFF {
		sum = sum>>16 + sum&0xFFFF
	}
	binary.BigEndian.PutUint16(b[24:], ^uint16(sum))
	return b
}
