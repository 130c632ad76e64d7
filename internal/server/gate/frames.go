package gate

import "encoding/binary"

// frames cuts what goes over a connection into the frames of HTTP/2, wherever it
// is cut itself, and tells of those that begin, fill and end streams.
type frames struct {
	skip  int                 // bytes before the first frame
	began func(stream uint32) // headers
	heads func(n int)         // so many bytes of a call's head are to come
	data  func(stream uint32, b []byte)
	ended func(stream uint32) // nothing follows in this direction
	reset func(stream uint32)
	grant func(stream uint32) // more may come in the other direction

	head  [9]byte // length, type, flags and stream
	has   int     // bytes of it that have come
	left  int     // of the payload
	pad   int     // of left: what is no data
	first bool    // the next byte is the length of the padding
}

// The frames and flags that matter here, by RFC 9113.
const (
	dataFrame         = 0
	headersFrame      = 1
	resetFrame        = 3
	windowFrame       = 8
	continuationFrame = 9

	endStream = 0x1
	padded    = 0x8
)

func (f *frames) look(b []byte) {
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

// begin is called when the head of a frame is there.
func (f *frames) begin() {
	f.left = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
	f.pad, f.first = 0, f.head[3] == dataFrame && f.head[4]&padded != 0
	if f.head[3] == headersFrame && f.began != nil {
		f.began(f.stream())
	}
	if (f.head[3] == headersFrame || f.head[3] == continuationFrame) && f.heads != nil {
		f.heads(f.left)
	}
	if f.left == 0 {
		f.end()
	}
}

// fill takes more of a frame's payload.
func (f *frames) fill(b []byte) {
	f.left -= len(b)
	if f.first {
		f.pad, f.first = int(b[0]), false
		b = b[1:]
	}
	if f.head[3] == dataFrame && f.data != nil {
		// What is left of the payload is padding from some byte on.
		f.data(f.stream(), b[:max(0, len(b)-max(0, f.pad-f.left))])
	}
	if f.left == 0 {
		f.end()
	}
}

// end is called when a frame is complete.
func (f *frames) end() {
	f.has = 0
	switch kind := f.head[3]; {
	case kind == resetFrame && f.reset != nil:
		f.reset(f.stream())
	case kind == windowFrame && f.grant != nil:
		f.grant(f.stream())
	case (kind == dataFrame || kind == headersFrame) && f.head[4]&endStream != 0 && f.ended != nil:
		f.ended(f.stream())
	}
}
