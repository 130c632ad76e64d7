package dataset

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// roundUp is the number of values that a page may contain beyond its stated number, because some
// writers fill up the last run.
const roundUp = 512

// plainDictionary is the encoding that writers before 2013 use for dictionary pages and pages of
// their indices.
const plainDictionary format.Encoding = 2

// checkValues checks that a page contains the number of values that its header states, and not
// more. A run of a few bytes can represent 2^31 values, and equal differences occupy no bytes.
// The Parquet reader would allocate gigabytes for them.
func checkValues(h *format.PageHeader, packed []byte, codec format.CompressionCodec, leaf parquet.LeafColumn) error {
	var p page
	switch {
	case h.DictionaryPageHeader.Valid:
		text, err := unpack(codec, packed)
		if e := h.DictionaryPageHeader.V.Encoding; err == nil && e != format.Plain && e != plainDictionary {
			err = fmt.Errorf("%w: a dictionary is encoded by %v", errPage, e)
		}
		p.text = text
		return err
	case h.DataPageHeaderV2.Valid:
		v := &h.DataPageHeaderV2.V
		p = page{text: packed, most: uint64(v.NumValues) + roundUp}
		p.levels(leaf.MaxRepetitionLevel, p.take(int64(v.RepetitionLevelsByteLength)))
		p.levels(leaf.MaxDefinitionLevel, p.take(int64(v.DefinitionLevelsByteLength)))
		if v.IsCompressed.Valid && !v.IsCompressed.V {
			codec = format.Uncompressed
		}
		if p.err == nil {
			p.text, p.err = unpack(codec, p.text)
		}
		p.values(v.Encoding)
	case h.DataPageHeader.Valid:
		v := &h.DataPageHeader.V
		text, err := unpack(codec, packed)
		p = page{text: text, most: uint64(v.NumValues) + roundUp, err: err}
		for _, most := range []int{leaf.MaxRepetitionLevel, leaf.MaxDefinitionLevel} {
			if most > 0 {
				p.levels(most, p.sized())
			}
		}
		p.values(v.Encoding)
	}
	return p.err
}

// A page is the unread part of a page. It is empty after an error.
type page struct {
	text []byte
	most uint64 // largest number of values
	err  error
}

func (p *page) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: "+format, append([]any{errPage}, args...)...)
	}
	p.text = nil
}

func (p *page) take(n int64) []byte {
	if n < 0 || n > int64(len(p.text)) {
		p.fail("%d bytes where there are %d", n, len(p.text))
		return nil
	}
	head := p.text[:n]
	p.text = p.text[n:]
	return head
}

// sized returns a value that is preceded by its length.
func (p *page) sized() []byte {
	n := p.take(4)
	if n == nil {
		return nil
	}
	return p.take(int64(binary.LittleEndian.Uint32(n)))
}

func (p *page) levels(most int, text []byte) { p.runs(bits.Len(uint(most)), text) }

// values checks values in the given encoding.
func (p *page) values(e format.Encoding) {
	if p.err != nil || len(p.text) == 0 {
		return
	}
	switch e {
	case format.Plain, format.ByteStreamSplit: // each value occupies its full width
	case plainDictionary, format.RLEDictionary:
		width := int(p.take(1)[0])
		p.runs(width, p.text)
	case format.RLE:
		p.runs(1, p.sized())
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray:
		var n uint64
		for range 3 { // block size, number of blocks, and number of values
			v, k := binary.Uvarint(p.text)
			if k <= 0 {
				p.fail("it has no values")
				return
			}
			n, p.text = v, p.text[k:]
		}
		if n > p.most {
			p.fail("%d values where its header says %d", n, p.most-roundUp)
		}
	default: // common prefixes would multiply the length of texts
		p.fail("it is encoded by %v", e)
	}
}

// runs checks values of the given width in bits, in runs of one value and in groups of eight.
func (p *page) runs(width int, text []byte) {
	for n := uint64(0); p.err == nil && len(text) > 0; {
		head, k := binary.Uvarint(text)
		if k <= 0 {
			p.fail("the length of a run is missing")
			return
		}
		count, bytes := head>>1, uint64(width+7)/8
		if head&1 != 0 {
			count, bytes = head>>1*8, head>>1*uint64(width)
		}
		if n += count; head>>1 > p.most || n > p.most {
			p.fail("a run of %d where its header says %d values", count, p.most-roundUp)
			return
		}
		text = text[k:]
		text = text[min(bytes, uint64(len(text))):] // the last group may be incomplete
	}
}
