//go:build !js

package inspect

import (
	"errors"
	"io"

	"github.com/parquet-go/parquet-go"
)

func newParquetWriter(w io.Writer) (parquetWriter, error) {
	return parquet.NewGenericWriter[Observation](w, parquet.Compression(&parquet.Zstd)), nil
}

func newParquetRecorder(w io.Writer) (Recorder, error) {
	return &parquetRecorder{w: parquet.NewGenericWriter[recordRow](w, parquet.Compression(&parquet.Zstd))}, nil
}

// A parquetRecorder writes row groups.
type parquetRecorder struct {
	w    *parquet.GenericWriter[recordRow]
	rows []recordRow
}

// rowGroup is the number of rows in a Parquet row group. It bounds the rows in memory.
const rowGroup = 1 << 16

// Record buffers the rows until they fill a row group.
func (p *parquetRecorder) Record(s *Snapshot) error {
	for _, reading := range s.Readings {
		p.rows = append(p.rows, rowOf(s, reading))
	}
	if len(p.rows) < rowGroup {
		return nil
	}
	return p.flush()
}

func (p *parquetRecorder) flush() error {
	_, err := p.w.Write(p.rows)
	p.rows = p.rows[:0]
	return errors.Join(err, p.w.Flush())
}

// Close writes the last row group and the footer.
func (p *parquetRecorder) Close() error {
	return errors.Join(p.flush(), p.w.Close())
}
