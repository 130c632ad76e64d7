package dataset

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// unpack decompresses a page of at most maxPage bytes. It does not trust the size in
// the page header, because decompressors allocate the size that the packed data
// requests, and a kilobyte can request 30 megabytes.
func unpack(codec format.CompressionCodec, packed []byte) ([]byte, error) {
	var size int64
	switch codec {
	case format.Uncompressed:
		return packed, nil
	case format.Snappy:
		n, k := binary.Uvarint(packed)
		if k <= 0 {
			return nil, fmt.Errorf("%w: it is no Snappy", errPage)
		}
		size = int64(min(n, maxPage+1))
	case format.Zstd:
		var err error
		if size, err = zstdSize(packed); err != nil {
			return nil, err
		}
	case format.Gzip:
		return gunzip(packed)
	default: // of a broken page in LZ4 the reader makes ever more room
		return nil, fmt.Errorf("it is packed with %v: want ZSTD, SNAPPY, GZIP or UNCOMPRESSED", codec)
	}
	if size > maxPage {
		return nil, errUnpacked
	}
	text, err := parquet.LookupCompressionCodec(codec).Decode(nil, packed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPage, err)
	}
	return text, nil
}

var errUnpacked = fmt.Errorf("%w: it gives more than %d bytes unpacked", errPage, maxPage)

func gunzip(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPage, err)
	}
	text, err := io.ReadAll(io.LimitReader(r, maxPage+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errPage, err)
	case len(text) > maxPage:
		return nil, errUnpacked
	}
	return text, nil
}

// The format of Zstandard, RFC 8878.
const (
	zstdFrame     = 0xfd2fb528
	zstdSkippable = 0x184d2a50 // and the fifteen numbers behind it
	zstdBlock     = 128 << 10  // the maximum output of a compressed block
)

var errZstd = errors.New("it is no Zstandard")

// zstdSize returns an upper bound for the output of Zstandard frames. It walks their
// blocks: each states its size, or is compressed and yields at most zstdBlock.
func zstdSize(text []byte) (size int64, err error) {
	fail := fmt.Errorf("%w: %w", errPage, errZstd)
	take := func(n int) []byte {
		if n > len(text) {
			return nil
		}
		head := text[:n]
		text = text[n:]
		return head
	}
	for len(text) > 0 {
		magic := take(4)
		if magic == nil {
			return 0, fail
		}
		if m := binary.LittleEndian.Uint32(magic); m&^15 == zstdSkippable {
			if n := take(4); n == nil || take(int(binary.LittleEndian.Uint32(n))) == nil {
				return 0, fail
			}
			continue
		} else if m != zstdFrame {
			return 0, fail
		}
		head := take(1)
		if head == nil || take(zstdHeader(head[0])) == nil {
			return 0, fail
		}
		for last := false; !last; {
			b := take(3)
			if b == nil {
				return 0, fail
			}
			n := int(b[0]>>3) | int(b[1])<<5 | int(b[2])<<13
			last = b[0]&1 != 0
			kind, stored := b[0]>>1&3, n
			switch kind {
			case 1: // one byte, n times
				stored = 1
				size += int64(n)
			case 2:
				size += zstdBlock
			default:
				size += int64(n)
			}
			if kind == 3 || take(stored) == nil {
				return 0, fail
			}
		}
		if head[0]&4 != 0 && take(4) == nil { // a checksum
			return 0, fail
		}
	}
	return size, nil
}

// zstdHeader is how long the rest of a frame's header is: its window, its
// dictionary's number and its size.
func zstdHeader(descriptor byte) int {
	single := descriptor&0x20 != 0
	n := [...]int{0, 1, 2, 4}[descriptor&3] + [...]int{0, 2, 4, 8}[descriptor>>6]
	if !single {
		n++
	} else if descriptor>>6 == 0 {
		n++ // a size of one byte
	}
	return n
}
