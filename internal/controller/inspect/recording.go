//go:build !js

package inspect

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/p4lb/p4lb/internal/lab/dataset"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// A Recording reads the output of a Recorder, from start to end.
type Recording struct {
	rows rowReader
	next *recordRow // row that has been read ahead
	name string
}

// A rowReader reads the rows of a recording in one format.
type rowReader interface {
	row() (*recordRow, error) // io.EOF after the last
}

// A recordError describes an error in a recording with its position.
type recordError struct {
	File string
	Line int // 0: not known
	Msg  string
}

// Error returns the message with its position.
func (e *recordError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

const parquetMagic = "PAR1"

// OpenRecording opens a recording in one of RecordFormats. name is its name in messages.
func OpenRecording(name string, r io.ReaderAt, size int64) (*Recording, error) {
	magic := make([]byte, len(parquetMagic))
	if n, err := r.ReadAt(magic, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	} else if n == len(magic) && string(magic) == parquetMagic {
		rows, err := openParquetRows(r, size)
		if err != nil {
			return nil, &recordError{File: name, Msg: "no recording: " + err.Error()}
		}
		return &Recording{rows: rows, name: name}, nil
	}
	rows, err := openCSVRows(name, io.NewSectionReader(r, 0, size))
	if err != nil {
		return nil, err
	}
	return &Recording{rows: rows, name: name}, nil
}

const (
	// maxRecordText is the length limit of a text in a recording.
	maxRecordText = 1024
	// maxRecorded is the largest number of switches in a round, which equals the largest number
	// of nodes in a topology.
	maxRecorded = 60_000
)

// Round returns the snapshots of one round of a survey, and io.EOF after the
// last.
func (r *Recording) Round() ([]*Snapshot, error) {
	var list []*Snapshot
	known := map[string]int{} // indices in list
	for {
		row := r.next
		r.next = nil
		if row == nil {
			var err error
			if row, err = r.rows.row(); err != nil {
				if errors.Is(err, io.EOF) && len(list) > 0 {
					return list, nil
				}
				return nil, err
			}
		}
		at := time.Duration(row.TimeUS) * time.Microsecond
		if len(list) > 0 && list[0].Time != at {
			r.next = row
			return list, nil
		}
		row.clean()
		i, ok := known[row.Switch]
		if !ok {
			if i = len(list); i == maxRecorded {
				return nil, &recordError{File: r.name, Msg: fmt.Sprintf("at %v more than %d switches", at, maxRecorded)}
			}
			known[row.Switch] = i
			list = append(list, &Snapshot{
				Time: at, Clock: time.Duration(row.ClockUS) * time.Microsecond,
				Switch: row.Switch, Role: row.Role, Scheme: row.Scheme, Wall: row.wall(),
			})
		}
		list[i].Readings = append(list[i].Readings, Reading{
			Register: row.Register, Quantity: row.Quantity, Cell: int(row.Cell), Index: row.Index, Port: int(row.Port), Peer: row.Peer,
			Group: int(row.Group), Path: int(row.Path), Raw: row.Raw, Value: row.Value, Unit: row.Unit, Text: row.Text,
			Change: row.Change, Rate: row.Rate, Minor: row.Minor,
		})
	}
}

// clean makes the texts of a row safe for a terminal.
func (r *recordRow) clean() {
	for _, text := range []*string{&r.Switch, &r.Role, &r.Scheme, &r.Register, &r.Quantity, &r.Index, &r.Peer, &r.Unit, &r.Text} {
		*text = plain.Printable(*text, "", maxRecordText)
	}
}

// parquetRows reads a Parquet file.
type parquetRows struct {
	r   *parquet.GenericReader[recordRow]
	buf []recordRow
	at  int
}

// openParquetRows opens a file. The reader panics on some files that are
// broken.
func openParquetRows(r io.ReaderAt, size int64) (rows *parquetRows, err error) {
	defer dataset.Recover(&err)
	f, err := dataset.OpenParquet(r, size)
	if err != nil {
		return nil, err
	}
	for _, name := range recordColumns {
		if _, ok := f.Schema().Lookup(name); !ok && name != wallColumn {
			return nil, fmt.Errorf("it has no column %s", name)
		}
	}
	return &parquetRows{r: parquet.NewGenericReader[recordRow](f)}, nil
}

func (p *parquetRows) row() (row *recordRow, err error) {
	defer dataset.Recover(&err)
	if p.at == len(p.buf) {
		if p.buf == nil {
			p.buf = make([]recordRow, 1024)
		}
		n, err := p.r.Read(p.buf[:cap(p.buf)])
		if n == 0 {
			return nil, cmp.Or(err, io.EOF)
		}
		p.buf, p.at = p.buf[:n], 0
	}
	row = new(recordRow)
	*row = p.buf[p.at]
	p.at++
	return row, nil
}

// csvRows reads lines.
type csvRows struct {
	name string
	r    *csv.Reader
	at   []int // positions of the columns
}

func openCSVRows(name string, r io.Reader) (*csvRows, error) {
	c := &csvRows{name: name, r: csv.NewReader(r)}
	c.r.ReuseRecord = true
	head, err := c.r.Read()
	if errors.Is(err, io.EOF) {
		return nil, &recordError{File: name, Msg: "empty: want a line with the names of the columns"}
	}
	if err != nil {
		return nil, c.explain(err)
	}
	for _, column := range recordColumns {
		i := slices.Index(head, column)
		if i < 0 && column != wallColumn {
			return nil, &recordError{File: name, Line: 1, Msg: "no column " + column + ": not a recording of p4lb inspect"}
		}
		c.at = append(c.at, i)
	}
	return c, nil
}

// explain adds the position to an error of package csv.
func (c *csvRows) explain(err error) error {
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		return &recordError{File: c.name, Line: parse.Line, Msg: parse.Err.Error()}
	}
	return err
}

func (c *csvRows) row() (*recordRow, error) {
	fields, err := c.r.Read()
	if errors.Is(err, io.EOF) {
		return nil, err
	}
	if err != nil {
		return nil, c.explain(err)
	}
	p := fieldParser{fields: fields, at: c.at}
	row := &recordRow{
		TimeUS: p.whole(0), ClockUS: p.whole(1), Switch: p.text(2), Role: p.text(3), Scheme: p.text(4), Register: p.text(5),
		Quantity: p.text(6), Cell: p.whole(7), Index: p.text(8), Port: p.whole(9), Peer: p.text(10), Group: p.whole(11),
		Path: p.whole(12), Raw: p.unsigned(13), Value: p.decimal(14), Unit: p.text(15), Text: p.text(16), Change: p.decimal(17), Rate: p.decimal(18),
		Minor: p.text(19) == "true",
	}
	if c.at[20] >= 0 {
		row.WallUS = p.whole(20)
	}
	if p.wrong != "" {
		line, _ := c.r.FieldPos(0)
		return nil, &recordError{File: c.name, Line: line, Msg: p.wrong}
	}
	return row, nil
}

// A fieldParser parses the fields of a line by the positions of recordColumns, and records the
// first error.
type fieldParser struct {
	fields []string
	at     []int
	wrong  string
}

func (p *fieldParser) text(column int) string { return strings.Clone(p.fields[p.at[column]]) }

func (p *fieldParser) note(column int, err error) {
	if err != nil && p.wrong == "" {
		p.wrong = fmt.Sprintf("%s: %q is not a number", recordColumns[column], p.fields[p.at[column]])
	}
}

func (p *fieldParser) whole(column int) int64 {
	v, err := strconv.ParseInt(p.fields[p.at[column]], 10, 64)
	p.note(column, err)
	return v
}

func (p *fieldParser) unsigned(column int) uint64 {
	v, err := strconv.ParseUint(p.fields[p.at[column]], 10, 64)
	p.note(column, err)
	return v
}

func (p *fieldParser) decimal(column int) float64 {
	v, err := strconv.ParseFloat(p.fields[p.at[column]], 64)
	p.note(column, err)
	return v
}
