package model_test

import (
	"encoding/binary"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/scheme/model"
)

// frame returns the bytes of a packet.
func (r *rig) frame(p model.Packet) []byte {
	if cap(r.bytes) < p.Len {
		r.bytes = make([]byte, max(p.Len, 1500))
	}
	b := r.bytes[:14]
	clear(b)
	binary.BigEndian.PutUint16(b[12:], 0x0800)
	if p.Overlay.Valid {
		binary.BigEndian.PutUint16(b[12:], 0x88B6)
		b = append(b, r.overlay(p.Overlay)...)
	}
	ip := b[len(b):p.Len]
	clear(ip)
	ip[0], ip[8], ip[9] = 0x45, 64, p.Flow.Protocol
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	binary.BigEndian.PutUint32(ip[12:], p.Flow.Src)
	binary.BigEndian.PutUint32(ip[16:], p.Flow.Dst)
	binary.BigEndian.PutUint16(ip[10:], checksum(ip[:20]))
	if p.Flow.Protocol == 6 || p.Flow.Protocol == 17 {
		binary.BigEndian.PutUint16(ip[20:], p.Flow.Sport)
		binary.BigEndian.PutUint16(ip[22:], p.Flow.Dport)
		if p.Ack {
			ip[33] |= 0x10
		}
		if p.Echo {
			ip[33] |= 0x40
		}
	}
	return b[:p.Len]
}

// overlay writes the header that CONGA's or QDAPS*'s leaves exchange.
func (r *rig) overlay(o model.Overlay) []byte {
	if r.hw != nil && r.man.Signal == "one-way" {
		b := binary.BigEndian.AppendUint32(nil, uint32(o.Tag))
		b = binary.BigEndian.AppendUint32(b, uint32(o.FbTag))
		b = binary.BigEndian.AppendUint32(b, uint32(r.hw.Count(o.Sent)))
		return binary.BigEndian.AppendUint32(b, uint32(r.hw.Count(o.FbDelay)))
	}
	if r.hw != nil {
		b := []byte{o.Tag, o.FbTag}
		b = binary.BigEndian.AppendUint32(b, uint32(o.CE)<<8)
		return binary.BigEndian.AppendUint32(b, uint32(o.FbMetric)<<8)
	}
	if r.man.Signal == "piggyback" {
		return binary.BigEndian.AppendUint16(nil, uint16(o.Tag)<<12|uint16(o.CE)<<9|uint16(o.FbTag)<<5|uint16(o.FbMetric)<<2)
	}
	return append([]byte{o.Tag, o.FbTag}, append(bytes6(o.Sent), bytes6(o.FbDelay)...)...)
}

func bytes6(t model.Time) []byte { return binary.BigEndian.AppendUint64(nil, uint64(t))[2:] }

// compareOverlay compares the header with which a packet leaves.
func (r *rig) compareOverlay(b []byte, p model.Packet) {
	var want []byte
	typ := uint16(0x0800)
	if p.Overlay.Valid {
		typ, want = 0x88B6, r.overlay(p.Overlay)
	}
	if got := b[14 : 14+len(want)]; binary.BigEndian.Uint16(b[12:]) != typ || string(got) != string(want) {
		r.t.Fatalf("a packet leaves with type %x and overlay % x, the model wants %x and % x: %+v", b[12:14], got, typ, want, p.Overlay)
	}
}

func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xFFFF {
		sum = sum>>16 + sum&0xFFFF
	}
	return ^uint16(sum)
}

// compareNotice sends a CNM and compares it.
func (r *rig) compareNotice(o dataplane.Outcome, p model.Packet, want model.Notice) {
	r.t.Helper()
	r.notices++
	r.sw.Enqueued(o.Packet, 0, r.clock())
	out := r.sw.Egress(o.Packet, 0, r.clock(), nil)
	if len(out) != 1 || out[0].Kind != dataplane.ToPort || int(out[0].Port) != p.In {
		r.t.Fatalf("a CNM at %d becomes %+v", r.now, out)
	}
	b := out[0].Packet.Bytes()
	if r.hw != nil {
		r.compareWarning(b, p)
		r.sw.Free(out[0].Packet)
		return
	}
	length := 25
	if r.relays() {
		length = 26
		if b[25] != 3 {
			r.t.Fatalf("the CNM at %d goes on to %d switches, want 3", r.now, b[25])
		}
	}
	if len(b) != length || binary.BigEndian.Uint16(b[12:]) != 0x88B5 || b[14] != byte(want) || int(binary.BigEndian.Uint16(b[15:])) != p.In {
		r.t.Fatalf("the CNM at %d is % x, the model wants type %d for port %d", r.now, b, want, p.In)
	}
	r.sw.Free(out[0].Packet)
}
