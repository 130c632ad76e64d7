package gate

import "encoding/binary"

// frames splits the byte stream of a connection into HTTP/2 frames (RFC 9113)
// and calls back when a frame opens, fills, grants or ends a stream. The input
// may be cut at any byte.
type frames struct {
	skip           int                 // bytes before the first frame
	onHeaders      func(stream uint32) // a HEADERS frame
	onHeaderBytes  func(n int)         // n bytes of a header block follow
	onData         func(stream uint32, b []byte)
	onEnd          func(stream uint32) // END_STREAM: this direction is finished
	onReset        func(stream uint32)
	onWindowUpdate func(stream uint32) // a WINDOW_UPDATE frame: the other direction may send more

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
	b = b[n:]
	for len(b) > 0 {
		if f.has < len(f.head) {
			n := copy(f.head[f.has:], b)
			f.has += n
			b = b[n:]
			if f.has == len(f.head) {
				f.begin()
			}
			continue
		}
		n := min(f.left, len(b))
		f.fill(b[:n])
		b = b[n:]
	}
}

func (f *frames) stream() uint32 { return binary.BigEndian.Uint32(f.head[5:]) &^ (1 << 31) }

// begin handles a complete frame header.
func (f *frames) begin() {
	f.left = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
	f.pad, f.first = 0, f.head[3] == dataFrame && f.head[4]&padded != 0
	if f.head[3] == headersFrame && f.onHeaders != nil {
		f.onHeaders(f.stream())
	}
	if (f.head[3] == headersFrame || f.head[3] == continuationFrame) && f.onHeaderBytes != nil {
		f.onHeaderBytes(f.left)
	}
	if f.left == 0 {
		f.end()
	}
}

// fill handles the next part of a frame's payload.
func (f *frames) fill(b []byte) {
	f.left -= len(b)
	if f.first {
		f.pad, f.first = int(b[0]), false
		b = b[1:]
	}
	if f.head[3] == dataFrame && f.onData != nil {
		// The last pad bytes of the payload are padding.
		f.onData(f.stream(), b[:max(0, len(b)-max(0, f.pad-f.left))])
	}
	if f.left == 0 {
		f.end()
	}
}

// end handles the end of a frame.
func (f *frames) end() {
	f.has = 0
	switch kind := f.head[3]; {
	case kind == resetFrame && f.onReset != nil:
		f.onReset(f.stream())
	case kind == windowFrame && f.onWindowUpdate != nil:
		f.onWindowUpdate(f.stream())
	case (kind == dataFrame || kind == headersFrame) && f.head[4]&endStream != 0 && f.onEnd != nil:
		f.onEnd(f.stream())
	}
}
