package dataplane

import (
	"encoding/binary"
	"time"

	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// maxIntrinsic is the largest size of the hardware's data before a packet, without port metadata.
const maxIntrinsic = 64

// A block holds the intrinsic metadata in words. The last word ends with the last byte.
type block [maxIntrinsic/8 + 1]uint64

// A slot is the place of a field in a block. A field that crosses a word
// boundary has two parts.
type slot struct {
	mask             uint64
	word             int
	left, right, cut uint
}

func (f slot) put(b *block, v uint64) {
	v &= f.mask
	b[f.word] |= v << f.left >> f.right
	b[f.word+1] |= v << f.cut
}

// A blockLayout maps the fields of a header type to slots.
type blockLayout struct {
	typ  *vector.HeaderType
	size int // bytes of the header
	skip int // unused bits at the start of the first word
}

// newBlockLayout returns the layout of a type. It is empty if the program has
// no such type or its size is not whole bytes or too large.
func newBlockLayout(l *vector.Layout, name string) blockLayout {
	for _, t := range l.Types {
		if t.Name == name && t.VarLen < 0 && t.Bits%8 == 0 && t.Bits/8 <= maxIntrinsic {
			return blockLayout{typ: t, size: t.Bits / 8, skip: -t.Bits & 63}
		}
	}
	return blockLayout{}
}

func (b *blockLayout) words() int { return (b.size + 7) / 8 }

// slot returns the slot of a field; a missing field has no bits.
func (b *blockLayout) slot(name string) slot {
	if b.typ == nil {
		return slot{cut: 64}
	}
	at := b.skip
	for _, f := range b.typ.Fields {
		if f.Name == name && f.Width <= 64 {
			s := slot{mask: num.Mask64(f.Width), word: at / 64, cut: 64}
			if end := at%64 + f.Width; end <= 64 {
				s.left = uint(64 - end)
			} else {
				s.right, s.cut = uint(end-64), uint(128-end)
			}
			return s
		}
		at += f.Width
	}
	return slot{cut: 64}
}

// write writes the last n bytes of the block before at.
func (b *block) write(buf []byte, at, n int) {
	for i := range n {
		binary.BigEndian.PutUint64(buf[at-8*(n-i):], b[i])
	}
}

// An ingressHeader writes ingress_intrinsic_metadata_t.
type ingressHeader struct {
	blockLayout
	resubmitted, port, time slot
}

func (h *ingressHeader) find(l *vector.Layout) {
	h.blockLayout = newBlockLayout(l, "ingress_intrinsic_metadata_t")
	h.resubmitted, h.port, h.time = h.slot("resubmit_flag"), h.slot("ingress_port"), h.slot("ingress_mac_tstamp")
}

// put writes the header before the port metadata of p, and returns the number
// of bytes before the packet.
func (h *ingressHeader) put(p *Packet, portData int, arrived time.Duration) int {
	var b block
	h.resubmitted.put(&b, b2u(p.tm.resubmitted))
	h.port.put(&b, uint64(p.ingressPort))
	h.time.put(&b, uint64(arrived))
	b.write(p.st.Buf, p.st.Start-portData, h.words())
	return h.size + portData
}

// An egressHeader writes egress_intrinsic_metadata_t.
type egressHeader struct {
	blockLayout
	port, enqDepth, enqTime, deqDepth, deqDelta, rid, ridFirst, qid, cos, length slot
}

func (h *egressHeader) find(l *vector.Layout) {
	h.blockLayout = newBlockLayout(l, "egress_intrinsic_metadata_t")
	h.port = h.slot("egress_port")
	h.enqDepth, h.enqTime = h.slot("enq_qdepth"), h.slot("enq_tstamp")
	h.deqDepth, h.deqDelta = h.slot("deq_qdepth"), h.slot("deq_timedelta")
	h.rid, h.ridFirst = h.slot("egress_rid"), h.slot("egress_rid_first")
	h.qid, h.cos, h.length = h.slot("egress_qid"), h.slot("egress_cos"), h.slot("pkt_length")
}

// put writes the header before p and returns its size. As on hardware, its length field is the
// packet's length at ingress, including a mirror header, without later changes.
func (h *egressHeader) put(p *Packet, depth int) int {
	var b block
	h.port.put(&b, uint64(p.egressPort))
	h.enqDepth.put(&b, uint64(p.tm.enqDepth))
	h.enqTime.put(&b, uint64(p.tm.enqTime))
	h.deqDepth.put(&b, uint64(depth))
	h.deqDelta.put(&b, uint64(p.st.Now-p.tm.enqTime))
	h.rid.put(&b, uint64(p.tm.rid))
	h.ridFirst.put(&b, b2u(p.tm.ridFirst))
	h.qid.put(&b, uint64(p.tm.qid))
	h.cos.put(&b, uint64(p.tm.cos))
	h.length.put(&b, uint64(p.st.IngressLength-vector.FrameCheck))
	b.write(p.st.Buf, p.st.Start, h.words())
	return h.size
}
