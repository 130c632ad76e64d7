package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Limits of a Parquet footer. The footer states its own size and the lengths of its
// lists, so a file of a hundred bytes could request gigabytes.
const (
	maxFooter = 16 << 20
	maxList   = 1 << 20
	maxNested = 32
)

var errFooter = errors.New("its footer is broken")

// checkFooter checks the footer of a file before the Parquet reader uses it. The footer must be
// inside the file, and as long as its own lengths state. It is a struct in Thrift's compact
// protocol.
func checkFooter(r io.ReaderAt, size int64) error {
	const tail = 8 // the footer's length, and the magic number
	var end [tail]byte
	if size < tail+int64(len(parquetMagic)) {
		return errors.New("too short for a Parquet file")
	}
	if _, err := r.ReadAt(end[:], size-tail); err != nil {
		return err
	}
	if string(end[4:]) != parquetMagic {
		return errors.New("it does not end as a Parquet file does")
	}
	n := int64(binary.LittleEndian.Uint32(end[:]))
	if n > size-tail-int64(len(parquetMagic)) || n > maxFooter {
		return fmt.Errorf("%w: of %d bytes in a file of %d, %d at most", errFooter, n, size, maxFooter)
	}
	text := make([]byte, n)
	if _, err := r.ReadAt(text, size-tail-n); err != nil {
		return err
	}
	c := compact{text: text}
	if c.structure(0); c.broken {
		return errFooter
	}
	return nil
}

// A compact parses a text in Thrift's compact protocol.
type compact struct {
	text   []byte
	broken bool
}

func (c *compact) fail() { c.text, c.broken = nil, true }

func (c *compact) byte() byte {
	if len(c.text) == 0 {
		c.fail()
		return 0
	}
	b := c.text[0]
	c.text = c.text[1:]
	return b
}

func (c *compact) varint() uint64 {
	v, n := binary.Uvarint(c.text)
	if n <= 0 {
		c.fail()
		return 0
	}
	c.text = c.text[n:]
	return v
}

func (c *compact) skip(n uint64) {
	if n > uint64(len(c.text)) {
		c.fail()
		return
	}
	c.text = c.text[n:]
}

// structure skips fields up to the stop field.
func (c *compact) structure(depth int) {
	if depth > maxNested {
		c.fail()
	}
	for !c.broken {
		head := c.byte()
		if head == 0 {
			return
		}
		if head>>4 == 0 {
			c.varint() // number of the field
		}
		if kind := head & 15; kind > 2 { // the type contains the value of a boolean
			c.value(kind, depth)
		}
	}
}

// value skips one value.
func (c *compact) value(kind byte, depth int) {
	switch kind {
	case 1, 2, 3: // in a list a boolean is a byte
		c.byte()
	case 4, 5, 6:
		c.varint()
	case 7:
		c.skip(8)
	case 8:
		c.skip(c.varint())
	case 9, 10:
		head := c.byte()
		n := uint64(head >> 4)
		if n == 15 {
			n = c.varint()
		}
		// Each element has at least one byte. Lists in lists count as nested too: a footer of
		// 16 MiB could otherwise nest them 16 million deep and exhaust the stack.
		if depth >= maxNested || n > maxList || n > uint64(len(c.text)) {
			c.fail()
		}
		for ; n > 0 && !c.broken; n-- {
			c.value(head&15, depth+1)
		}
	case 12:
		c.structure(depth + 1)
	default: // includes maps, which Parquet does not use
		c.fail()
	}
}
