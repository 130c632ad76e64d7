package sim_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
)

// TestRoCE reads the packets of a flow behind a switch as the InfiniBand specification
// describes them: UDP port 4791, opcodes of SEND, ACK and CNP, queue pair, sequence numbers.
func TestRoCE(t *testing.T) {
	topo := leafSpine(t, fabric.LeafSpine{Leaves: 2, Spines: 2, Hosts: 2, Links: fabric.Links{
		HostRate: 10 * fabric.Gbps, Rate: 10 * fabric.Gbps, HostDelay: time.Microsecond, Delay: time.Microsecond, Queue: 64,
	}})
	p := planned(t, topo, "ecmp", nil)
	n, err := sim.New(topo, sim.Options{Seed: 1, ECN: sim.ECN{Min: 3000, Max: 3000}})
	if err != nil {
		t.Fatal(err)
	}
	loadP4(t, n, p)
	u := sim.Tuning{Segment: 1000, RDMA: sim.RDMA{Headers: sim.RoCEHeaders, Answer: sim.RoCEAnswer, BTH: true}}
	opcodes, only, notices := map[byte]int{}, 0, int64(0)
	sequences, acks, naks := map[uint32]int{}, map[uint32]int{}, map[byte]int{}
	n.Tap(func(at *sim.Port, head []byte, size int) {
		if at.Switch() != "l1" {
			return
		}
		if peer, _ := at.Peer(); peer != "h1" { // as h1 sends and receives
			return
		}
		b := head[14+20:]
		if binary.BigEndian.Uint16(b[2:]) != 4791 || int(binary.BigEndian.Uint16(b[4:])) != size-14-20 {
			t.Fatalf("UDP %x in a packet of %d bytes", b[:8], size)
		}
		bth := b[8:]
		if bth[4]&0x40 != 0 && bth[7] == 1 {
			notices++
		}
		if pair := binary.BigEndian.Uint32(bth[4:]) & 0xFFFFFF; pair != 1 {
			if pair == 3 && bth[0] == 0x04 {
				only++
			}
			return
		}
		opcodes[bth[0]]++
		word := binary.BigEndian.Uint32(bth[8:])
		switch bth[0] {
		case 0x00, 0x01, 0x02:
			sequences[word&0xFFFFFF]++
			if word>>31 != 1 || size != 1000+58 && bth[0] != 0x02 {
				t.Errorf("data with %x, %d bytes", word, size)
			}
		case 0x11:
			acks[word&0xFFFFFF]++
			naks[bth[12]]++
		}
	})
	flow, err := n.StartFlow(sim.FlowSpec{From: "h1", To: "h3", Bytes: 99_500, Transport: sim.DCQCN, Tuning: &u})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.StartFlow(sim.FlowSpec{From: "h2", To: "h3", Bytes: 99_500, Transport: sim.DCQCN, Tuning: &u}); err != nil {
		t.Fatal(err)
	}
	if err := n.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	if flow.Retransmitted > 0 || opcodes[0x00] != 1 || opcodes[0x01] != 98 || opcodes[0x02] != 1 || opcodes[0x04] != 0 {
		t.Errorf("opcodes %v, %d packets sent again: want a first, 98 middle and a last one", opcodes, flow.Retransmitted)
	}
	if len(sequences) != 100 || sequences[0] != 1 || sequences[99] != 1 {
		t.Errorf("%d sequence numbers, want 0 to 99", len(sequences))
	}
	if len(acks) != 100 || acks[99] != 1 || naks[0x1F] != 100 {
		t.Errorf("%d sequence numbers of ACKs, syndromes %v", len(acks), naks)
	}
	if notices == 0 || notices != flow.Notices {
		t.Errorf("%d answers have BECN, of %d that notify of %d marks", notices, flow.Notices, flow.Marked)
	}

	// One packet is a SEND only. Headers that leave no room are refused.
	short := u
	short.RDMA.Headers = 42
	if _, err := n.StartFlow(sim.FlowSpec{From: "h1", To: "h3", Transport: sim.DCQCN, Tuning: &short}); err == nil {
		t.Error("a BTH in 42 bytes was taken")
	}
	long := sim.Tuning{Segment: 1457, RDMA: sim.RDMA{BTH: true}} // 1500 - 20 - 8 - 12 - 4 is 1456
	if _, err := n.StartFlow(sim.FlowSpec{From: "h1", To: "h3", Transport: sim.DCQCN, Tuning: &long}); err == nil {
		t.Error("a segment that exceeds the MTU with its BTH was taken")
	}
	if _, err := n.StartFlow(sim.FlowSpec{From: "h1", To: "h3", Bytes: 10, Transport: sim.DCQCN, Tuning: &u}); err != nil {
		t.Fatal(err)
	}
	if err := n.Run(2 * time.Second); err != nil || only != 1 {
		t.Errorf("%d packets of SEND only for one packet, %v", only, err)
	}
}
