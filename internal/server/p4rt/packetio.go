package p4rt

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
)

// size returns the size of the header in bytes.
func (h *packetHeader) size() int {
	if h == nil {
		return 0
	}
	return (h.bits + 7) / 8
}

// encode converts a packet-out to the frame for the CPU port.
func (h *packetHeader) encode(m *p4v1.PacketOut) ([]byte, error) {
	frame := make([]byte, h.size(), h.size()+len(m.GetPayload()))
	var fields []paramInfo
	if h != nil {
		fields = h.fields
	}
	if len(m.GetMetadata()) != len(fields) {
		return nil, failf(codes.InvalidArgument, "the packet has %d metadata fields, want the %d of the program's packet_out header", len(m.GetMetadata()), len(fields))
	}
	at := 0
	for _, f := range fields {
		b, err := metadataValue(m.GetMetadata(), f)
		if err != nil {
			return nil, err
		}
		putBits(frame, at, f.width, b)
		at += f.width
	}
	return append(frame, m.GetPayload()...), nil
}

// metadataValue returns the value of a field. encode has checked the number of
// metadata, so a repeated one implies a missing one.
func metadataValue(list []*p4v1.PacketMetadata, f paramInfo) ([]byte, error) {
	for _, m := range list {
		if m.GetMetadataId() != f.id {
			continue
		}
		v := m.GetValue() // parseValue may replace it; the message stays unchanged
		b, err := parseValue(&v, f.width, f.names)
		if err != nil {
			return nil, asInvalid(prefixed(err, "metadata %s", f.name))
		}
		return b, nil
	}
	return nil, failf(codes.InvalidArgument, "metadata %s (id %d) is missing", f.name, f.id)
}

// decode converts a frame for the CPU port to a packet-in. A frame shorter than
// the header becomes the payload.
func (h *packetHeader) decode(frame []byte) *p4v1.PacketIn {
	n := h.size()
	if h == nil || len(frame) < n {
		return &p4v1.PacketIn{Payload: frame}
	}
	m := &p4v1.PacketIn{Payload: frame[n:]}
	at := 0
	for _, f := range h.fields {
		v := getBits(frame, at, f.width)
		if f.names != nil {
			v = f.names.text(v)
		}
		m.Metadata = append(m.Metadata, &p4v1.PacketMetadata{MetadataId: f.id, Value: v})
		at += f.width
	}
	return m
}

// putBits writes a canonical number as width bits at bit offset at, where the
// frame contains zeros.
func putBits(frame []byte, at, width int, b []byte) {
	for i := range min(width, 8*len(b)) {
		if b[len(b)-1-i/8]>>(i%8)&1 == 1 {
			bit := at + width - 1 - i
			frame[bit/8] |= 0x80 >> (bit % 8)
		}
	}
}

// getBits reads width bits at bit offset at as a canonical number.
func getBits(frame []byte, at, width int) []byte {
	b := make([]byte, max(1, (width+7)/8))
	for i := range width {
		bit := at + width - 1 - i
		b[len(b)-1-i/8] |= frame[bit/8] >> (7 - bit%8) & 1 << (i % 8)
	}
	return canonical(b)
}
