package controller

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fabric"
)

// broadcast is where probes go: their EtherType leads them, not their address.
var broadcast = fabric.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// A frameMaker makes Ethernet frames with one header of a manifest.
type frameMaker struct {
	header *codegen.Header
	src    fabric.MAC
}

// frameMaker finds a header that has an EtherType of its own and these fields
// at least.
func (n *Node) frameMaker(header string, fields ...string) (frameMaker, error) {
	i := slices.IndexFunc(n.Manifest.Headers, func(h codegen.Header) bool { return h.Name == header && h.EtherType != 0 })
	if i < 0 {
		return frameMaker{}, fmt.Errorf("the manifest of %s has no header %s with an EtherType", n.Manifest.Scheme, header)
	}
	m := frameMaker{header: &n.Manifest.Headers[i]}
	for _, f := range fields {
		if !slices.ContainsFunc(m.header.Fields, func(have codegen.Field) bool { return have.Name == f }) {
			return frameMaker{}, fmt.Errorf("the header %s in the manifest of %s has no field %s", header, n.Manifest.Scheme, f)
		}
	}
	if len(n.Ports) > 0 {
		m.src = n.Ports[0].MAC
	}
	return m, nil
}

// frame lays out the header, with 0 in the fields that are not given. What
// does not fit a field is an error: a probe about another switch would be
// believed.
func (m frameMaker) frame(values map[string]uint64) ([]byte, error) {
	w := bitWriter{bytes: slices.Concat(broadcast[:], m.src[:])}
	w.write(uint64(m.header.EtherType), 16)
	for _, f := range m.header.Fields {
		v := values[f.Name]
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
