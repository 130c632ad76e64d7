package gate

import "encoding/binary"

// frames splits the byte stream of a connection into HTTP/2 frames (RFC 9113).
// The input may be cut at any byte.
type frames struct {
	skip    int                                             // bytes before the first frame
	onFrame func(kind, flags byte, stream uint32, size int) // the header of a frame
	onData  func(stream uint32, b []byte)                   // a part of a DATA frame, without padding

	head  [9]byte // length, type, flags and stream identifier
	has   int     // bytes of head received
	left  int     // bytes of payload to come
	pad   int     // bytes of padding within left
	first bool    // the next byte is the padding length
}

// Frame types and flags of RFC 9113 that the gate looks at.
const (
	dataFrame         = 0
	headersFrame      = 1
	resetFrame        = 3
	windowFrame       = 8
	continuationFrame = 9

	endStream = 0x1
	padded    = 0x8
)

func (f *frames) parse(b []byte) {
	n := min(f.skip, len(b))
	f.skip -= n
	for b = b[n:]; len(b) > 0; {
		if f.left > 0 {
			n := min(f.left, len(b))
			f.fill(b[:n])
			b = b[n:]
			continue
		}
		n := copy(f.head[f.has:], b)
		f.has += n
		b = b[n:]
		if f.has == len(f.head) {
			f.has = 0
			f.left = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
			f.pad, f.first = 0, f.head[3] == dataFrame && f.head[4]&padded != 0
			f.onFrame(f.head[3], f.head[4], f.stream(), f.left)
		}
	}
}

func (f *frames) stream() uint32 { return binary.BigEndian.Uint32(f.head[5:]) &^ (1 << 31) }

// fill handles the next part of a frame's payload.
func (f *frames) fill(b []byte) {
	f.left -= len(b)
	if f.head[3] != dataFrame || f.onData == nil {
		return
	}
	if f.first {
		f.pad, f.first = int(b[0]), false
		b = b[1:]
	}
	// The last pad bytes of the payload are padding.
	if b = b[:max(0, len(b)-max(0, f.pad-f.left))]; len(b) > 0 {
		f.onData(f.stream(), b)
	}
}
