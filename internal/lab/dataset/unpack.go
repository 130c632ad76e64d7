package dataset

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
)

// unpack decompresses a page of at most maxPage bytes. It does not trust the size in
// the page header, because decompressors allocate the size that the packed data
// requests, and a kilobyte can request 30 megabytes.
func unpack(codec format.CompressionCodec, packed []byte) (text []byte, err error) {
	var r io.Reader
	switch codec {
	case format.Uncompressed:
		return packed, nil
	case format.Snappy:
		n, err := snappy.DecodedLen(packed)
		if err == nil && n > maxPage {
			return nil, errUnpacked
		}
		if err == nil {
			text, err = snappy.Decode(nil, packed)
		}
		return text, pageError(err)
	case format.Zstd:
		z, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxPage))
		if err != nil {
			return nil, pageError(err)
		}
		defer z.Close()
		r = z
	case format.Gzip:
		if r, err = gzip.NewReader(bytes.NewReader(packed)); err != nil {
			return nil, pageError(err)
		}
	default: // for a broken LZ4 page, the reader would allocate ever more memory
		return nil, fmt.Errorf("it is packed with %v: want ZSTD, SNAPPY, GZIP or UNCOMPRESSED", codec)
	}
	text, err = io.ReadAll(io.LimitReader(r, maxPage+1))
	if err == nil && len(text) > maxPage {
		return nil, errUnpacked
	}
	return text, pageError(err)
}

var errUnpacked = fmt.Errorf("%w: it gives more than %d bytes unpacked", errPage, maxPage)

// pageError adds errPage to an error of a decompressor.
func pageError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errPage, err)
}
