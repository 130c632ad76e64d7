package dataset

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/p4lb/p4lb/fitting"
)

const parquetMagic = "PAR1"

// readParquet reads the three columns, one row group at a time. Within a group it reads the
// values in batches.
func readParquet(ctx context.Context, f File, sum hash.Hash, s *sink) (err error) {
	defer func() {
		if errors.Is(err, errBroken) {
			err = &Error{File: f.Name, Msg: err.Error()}
		}
	}()
	defer Recover(&err)
	r, ok := f.Reader.(randomReader)
	if !ok {
		return &Error{File: f.Name, Msg: "a Parquet file cannot be read as a stream"}
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	size, err := io.Copy(sum, r)
	if err != nil {
		return err
	}
	file, err := OpenParquet(r, size)
	if err != nil {
		return &Error{File: f.Name, Msg: fmt.Sprintf("not a whole Parquet file: %v", err)}
	}
	at, err := parquetColumns(f.Name, file)
	if err != nil {
		return err
	}
	first := 1
	for _, group := range file.RowGroups() {
		if err := readGroup(ctx, group, at, first, s); err != nil {
			return err
		}
		first += int(group.NumRows())
	}
	return nil
}

type randomReader interface {
	io.ReadSeeker
	io.ReaderAt
}

// parquetColumns finds the three columns and checks that they are numeric.
func parquetColumns(name string, file *parquet.File) (at [3]int, err error) {
	var have []string
	for _, path := range file.Schema().Columns() {
		if len(path) != 1 {
			have = append(have, "") // nested in a structure
			continue
		}
		have = append(have, path[0])
	}
	if at, err = place(name, 0, have); err != nil {
		return at, err
	}
	for c, i := range at {
		column := file.Root().Column(have[i])
		if column.Repeated() || !isNumber(column.Type()) {
			return at, &Error{File: name, Msg: fmt.Sprintf("the column %s holds %s, not numbers", fitting.ColumnNames[c], column.Type())}
		}
	}
	return at, nil
}

// isNumber reports whether t is a floating-point or signed integer type, and not a
// logical type stored as an integer, such as a date or a decimal.
func isNumber(t parquet.Type) bool {
	switch t.Kind() {
	case parquet.Double, parquet.Float:
		return true
	case parquet.Int32, parquet.Int64:
		logical := t.LogicalType()
		if logical == nil || logical.Value == nil {
			return true
		}
		integer, ok := logical.Value.(*format.IntType)
		return ok && integer.IsSigned
	}
	return false
}

// readGroup reads the columns of a group of rows side by side.
func readGroup(ctx context.Context, group parquet.RowGroup, at [3]int, first int, s *sink) error {
	var cols [3]columnReader
	for c, i := range at {
		cols[c].pages = group.ColumnChunks()[i].Pages()
		defer cols[c].pages.Close()
	}
	var v [3]float64
	for n := range group.NumRows() {
		if n%(1<<16) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		for c := range cols {
			var err error
			if v[c], err = cols[c].next(); err != nil {
				return &Error{File: s.file, Msg: fmt.Sprintf("row %d, column %s: %v", first+int(n), fitting.ColumnNames[c], err)}
			}
		}
		if err := s.add(&v, 0); err != nil {
			return &Error{File: s.file, Msg: fmt.Sprintf("row %d: %s", first+int(n), err.(*Error).Msg), BeyondFull: true}
		}
	}
	return nil
}

// A columnReader returns the values of one column of a row group.
type columnReader struct {
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	buf    [256]parquet.Value
	batch  []parquet.Value
}

func (r *columnReader) next() (float64, error) {
	for len(r.batch) == 0 {
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
	v := r.batch[0]
	r.batch = r.batch[1:]
	switch {
	case v.IsNull():
		return math.NaN(), nil
	case v.Kind() == parquet.Double:
		return v.Double(), nil
	case v.Kind() == parquet.Float:
		return float64(v.Float()), nil
	case v.Kind() == parquet.Int32:
		return float64(v.Int32()), nil
	}
	return float64(v.Int64()), nil
}

// fill reads the next batch, and the next page if the current one has ended.
func (r *columnReader) fill() error {
	if r.values != nil {
		n, err := r.values.ReadValues(r.buf[:])
		r.batch = r.buf[:n]
		if n > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		parquet.Release(r.page)
		r.values = nil
	}
	page, err := r.pages.ReadPage()
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	r.page, r.values = page, page.Values()
	return nil
}
