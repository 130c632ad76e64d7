package dataset

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Limits of a page. The page header states the packed size, the unpacked size and the number of
// values; the contents state them again. The Parquet reader allocates memory for these numbers
// before it reads the data, and equal values occupy no bytes.
const (
	maxPage       = 64 << 20
	maxPageValues = 16 << 20
	maxPageHeader = 64 << 10
)

var errPage = errors.New("a page is broken")

var errBroken = errors.New("the file is broken")

// Recover, when deferred, converts a panic to an error. The Parquet reader may panic on broken
// files that pass all checks.
func Recover(err *error) {
	switch p := recover().(type) {
	case nil:
	case runtime.Error: // the panic describes the reader, not the file
		*err = errBroken
	default:
		*err = fmt.Errorf("%w: %v", errBroken, p)
	}
}

// OpenParquet opens a Parquet file after checking its footer and its pages.
func OpenParquet(r io.ReaderAt, size int64) (*parquet.File, error) {
	if err := checkFooter(r, size); err != nil {
		return nil, err
	}
	f, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	for _, group := range f.Metadata().RowGroups {
		for _, c := range group.Columns {
			leaf, ok := f.Schema().Lookup(c.MetaData.PathInSchema...)
			if !ok {
				return nil, fmt.Errorf("column %v: its schema has none such", c.MetaData.PathInSchema)
			}
			if err := checkPages(r, size, &c.MetaData, leaf); err != nil {
				return nil, fmt.Errorf("column %v: %w", c.MetaData.PathInSchema, err)
			}
		}
	}
	return f, nil
}

// checkPages checks the pages of a column.
func checkPages(r io.ReaderAt, size int64, c *format.ColumnMetaData, leaf parquet.LeafColumn) error {
	at := c.DataPageOffset
	if d := c.DictionaryPageOffset; d > 0 && d < at {
		at = d
	}
	if at < 0 || c.TotalCompressedSize < 0 || c.TotalCompressedSize > size-at {
		return fmt.Errorf("%w: %d bytes from %d on in a file of %d", errPage, c.TotalCompressedSize, at, size)
	}
	for end := at + c.TotalCompressedSize; at < end; {
		h, n, err := readPageHeader(r, at, end)
		if err != nil {
			return err
		}
		at += n
		switch values := max(h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues, h.DictionaryPageHeader.V.NumValues); {
		case h.CompressedPageSize < 0 || int64(h.CompressedPageSize) > end-at:
			return fmt.Errorf("%w: %d bytes from %d on, where the column has %d", errPage, h.CompressedPageSize, at, end-at)
		case h.CompressedPageSize > maxPage+maxPageHeader:
			return fmt.Errorf("%w: %d bytes, %d at most", errPage, h.CompressedPageSize, maxPage)
		case h.UncompressedPageSize < 0 || h.UncompressedPageSize > maxPage:
			return fmt.Errorf("%w: %d bytes unpacked, %d at most", errPage, h.UncompressedPageSize, maxPage)
		case values > maxPageValues:
			return fmt.Errorf("%w: %d values, %d at most", errPage, values, maxPageValues)
		}
		packed := make([]byte, h.CompressedPageSize)
		if _, err := r.ReadAt(packed, at); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err := checkValues(h, packed, c.Codec, leaf); err != nil {
			return err
		}
		at += int64(h.CompressedPageSize)
	}
	return nil
}

// readPageHeader reads the page header at an offset and returns its length. It first
// reads the small size that suffices for most headers.
func readPageHeader(r io.ReaderAt, at, end int64) (*format.PageHeader, int64, error) {
	for _, most := range []int64{1 << 10, maxPageHeader} {
		text := make([]byte, min(most, end-at))
		if _, err := r.ReadAt(text, at); err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		c := compact{text: text}
		if c.structure(0); c.broken {
			continue
		}
		n := len(text) - len(c.text)
		h := new(format.PageHeader)
		if err := thrift.Unmarshal(new(thrift.CompactProtocol), text[:n], h); err != nil {
			return nil, 0, fmt.Errorf("%w: %v", errPage, err)
		}
		return h, int64(n), nil
	}
	return nil, 0, fmt.Errorf("%w: no header at %d", errPage, at)
}
