package controller

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/p4lb/p4lb/fabric"
	"github.com/p4lb/p4lb/manifest"
)

// broadcast is where probes go: their EtherType leads them, not their address.
var broadcast = fabric.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// A frameMaker makes Ethernet frames with one header of a manifest.
type frameMaker struct {
	header *manifest.Header
	src    fabric.MAC
}

// frameMaker makes the frames of a task, whose header has an EtherType of its own.
func (n *Node) frameMaker(t *manifest.Task) frameMaker {
	m := frameMaker{header: n.Manifest.HeaderNamed(t.Header)}
	if len(n.Ports) > 0 {
		m.src = n.Ports[0].MAC
	}
	return m
}

// frame lays out the header, with the manifest's values in the fields that carry
// nothing. What does not fit a field is an error: a probe about another switch
// would be believed. A field that counts has room for its lowest bits.
func (m frameMaker) frame(values map[manifest.FieldRole]uint64) ([]byte, error) {
	w := bitWriter{bytes: slices.Concat(broadcast[:], m.src[:])}
	w.write(uint64(m.header.EtherType), 16)
	for _, f := range m.header.Fields {
		v, carried := values[f.Carries]
		switch {
		case f.Carries == "" || !carried:
			v = f.Value
		case f.Carries == manifest.Sequence && f.Width < 64:
			v &= 1<<f.Width - 1
		}
		if bits.Len64(v) > f.Width {
			return nil, fmt.Errorf("%d does not fit the %d bits of %s.%s", v, f.Width, m.header.Name, f.Name)
		}
		w.write(v, f.Width)
	}
	return w.bytes, nil
}

// A bitWriter appends numbers of any width, the most significant bit first.
type bitWriter struct {
	bytes []byte
	free  int // bits of the last byte
}

func (w *bitWriter) write(v uint64, width int) {
	for width > 0 {
		if w.free == 0 {
			w.bytes = append(w.bytes, 0)
			w.free = 8
		}
		n := min(width, w.free)
		part := byte(v>>(width-n)) & (1<<n - 1)
		w.free -= n
		width -= n
		w.bytes[len(w.bytes)-1] |= part << w.free
	}
}
