package controller

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
)

// A Recorder writes snapshots to a file that Replay reads, one row for each
// reading.
type Recorder interface {
	Record(s *Snapshot) error
	// Close writes what is left. It does not close what is written to.
	Close() error
}

// RecordFormats are the names of the forms that a recording can have, which are
// those that files end in.
var RecordFormats = []string{"csv", "parquet"}

// NewRecorder makes a recorder of one of RecordFormats.
func NewRecorder(w io.Writer, format string) (Recorder, error) {
	switch format {
	case "csv":
		return newCSVRecorder(w)
	case "parquet":
		return &parquetRecorder{w: parquet.NewGenericWriter[recordRow](w, parquet.Compression(&parquet.Zstd))}, nil
	}
	return nil, fmt.Errorf("no recording of form %q: want %s", format, strings.Join(RecordFormats, " or "))
}

// A recordRow is a reading as it is recorded.
type recordRow struct {
	TimeUS   int64   `parquet:"time_us,delta"`  // of whoever read
	ClockUS  int64   `parquet:"clock_us,delta"` // of the switch
	Switch   string  `parquet:"switch,dict"`
	Role     string  `parquet:"role,dict"`
	Scheme   string  `parquet:"scheme,dict"`
	Register string  `parquet:"register,dict"`
	Quantity string  `parquet:"quantity,dict"`
	Cell     int64   `parquet:"cell"`
	Index    string  `parquet:"index,dict"`
	Port     int64   `parquet:"port"`
	Peer     string  `parquet:"peer,dict"`
	Group    int64   `parquet:"group"`
	Path     int64   `parquet:"path"`
	Raw      uint64  `parquet:"raw"`
	Value    float64 `parquet:"value"`
	Unit     string  `parquet:"unit,dict"`
	Text     string  `parquet:"text,dict"`
	Change   float64 `parquet:"change"`
	Rate     float64 `parquet:"rate"`
	Minor    bool    `parquet:"minor"`
}

// recordColumns are the columns in the order of recordRow.
var recordColumns = []string{
	"time_us", "clock_us", "switch", "role", "scheme", "register", "quantity", "cell", "index", "port", "peer",
	"group", "path", "raw", "value", "unit", "text", "change", "rate", "minor",
}

func rowOf(s *Snapshot, r Reading) recordRow {
	return recordRow{
		TimeUS: s.Time.Microseconds(), ClockUS: s.Clock.Microseconds(), Switch: s.Switch, Role: s.Role, Scheme: s.Scheme,
		Register: r.Register, Quantity: r.Quantity, Cell: int64(r.Cell), Index: r.Index, Port: int64(r.Port), Peer: r.Peer,
		Group: int64(r.Group), Path: int64(r.Path), Raw: r.Raw, Value: r.Value, Unit: r.Unit, Text: r.Text,
		Change: r.Change, Rate: r.Rate, Minor: r.Minor,
	}
}

func (r *recordRow) reading() Reading {
	return Reading{
		Register: r.Register, Quantity: r.Quantity, Cell: int(r.Cell), Index: r.Index, Port: int(r.Port), Peer: r.Peer,
		Group: int(r.Group), Path: int(r.Path), Raw: r.Raw, Value: r.Value, Unit: r.Unit, Text: r.Text,
		Change: r.Change, Rate: r.Rate, Minor: r.Minor,
	}
}

// A csvRecorder writes lines.
type csvRecorder struct {
	w      *csv.Writer
	fields []string
}

func newCSVRecorder(w io.Writer) (*csvRecorder, error) {
	r := &csvRecorder{w: csv.NewWriter(w)}
	return r, r.w.Write(recordColumns)
}

// Record writes a line for each reading.
func (c *csvRecorder) Record(s *Snapshot) error {
	for _, reading := range s.Readings {
		r := rowOf(s, reading)
		c.fields = append(c.fields[:0],
			whole(r.TimeUS), whole(r.ClockUS), r.Switch, r.Role, r.Scheme, r.Register, r.Quantity, whole(r.Cell), r.Index,
			whole(r.Port), r.Peer, whole(r.Group), whole(r.Path), strconv.FormatUint(r.Raw, 10), decimal(r.Value), r.Unit, r.Text,
			decimal(r.Change), decimal(r.Rate), strconv.FormatBool(r.Minor),
		)
		if err := c.w.Write(c.fields); err != nil {
			return err
		}
	}
	c.w.Flush()
	return c.w.Error()
}

func whole(v int64) string { return strconv.FormatInt(v, 10) }

func decimal(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Close has nothing left to write.
func (c *csvRecorder) Close() error {
	c.w.Flush()
	return c.w.Error()
}

// A parquetRecorder writes row groups.
type parquetRecorder struct {
	w    *parquet.GenericWriter[recordRow]
	rows []recordRow
}

// rowGroup is after how many rows a row group is written, so that what is kept
// in memory stays small.
const rowGroup = 1 << 16

// Record keeps the rows until there are enough for a row group.
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

// A Recording is what a Recorder has written. It is read from its beginning to
// its end.
type Recording struct {
	rows rowReader
	next *recordRow // that has been read ahead
	line int
	name string
}

// A rowReader reads the rows of one form.
type rowReader interface {
	row() (*recordRow, error) // io.EOF after the last
}

// A RecordError is what is wrong with a recording, with its place.
type RecordError struct {
	File string
	Line int // 0 where there is none
	Msg  string
}

// Error is the message with its place.
func (e *RecordError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

const parquetMagic = "PAR1"

// OpenRecording reads a recording of so many bytes, of any of RecordFormats;
// name is what messages call it.
func OpenRecording(name string, r io.ReaderAt, size int64) (*Recording, error) {
	magic := make([]byte, len(parquetMagic))
	if n, err := r.ReadAt(magic, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	} else if n == len(magic) && string(magic) == parquetMagic {
		rows, err := openParquetRows(r, size)
		if err != nil {
			return nil, &RecordError{File: name, Msg: "no recording: " + err.Error()}
		}
		return &Recording{rows: rows, name: name}, nil
	}
	rows, err := openCSVRows(name, io.NewSectionReader(r, 0, size))
	if err != nil {
		return nil, err
	}
	return &Recording{rows: rows, name: name}, nil
}

// Round returns the snapshots of one round of a survey, and io.EOF after the
// last.
func (r *Recording) Round() ([]*Snapshot, error) {
	var list []*Snapshot
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
		i := slices.IndexFunc(list, func(s *Snapshot) bool { return s.Switch == row.Switch })
		if i < 0 {
			i = len(list)
			list = append(list, &Snapshot{
				Time: at, Clock: time.Duration(row.ClockUS) * time.Microsecond,
				Switch: row.Switch, Role: row.Role, Scheme: row.Scheme,
			})
		}
		list[i].Readings = append(list[i].Readings, row.reading())
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
	defer catch(&err)
	f, err := parquet.OpenFile(r, size)
	if err != nil {
		return nil, err
	}
	for _, name := range recordColumns {
		if _, ok := f.Schema().Lookup(name); !ok {
			return nil, fmt.Errorf("it has no column %s", name)
		}
	}
	return &parquetRows{r: parquet.NewGenericReader[recordRow](f)}, nil
}

// catch makes an error of a panic.
func catch(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the file is broken: %v", p)
	}
}

func (p *parquetRows) row() (row *recordRow, err error) {
	defer catch(&err)
	if p.at == len(p.buf) {
		if p.buf == nil {
			p.buf = make([]recordRow, 1024)
		}
		n, err := p.r.Read(p.buf[:cap(p.buf)])
		if n == 0 {
			if err == nil {
				err = io.EOF
			}
			return nil, err
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
	at   []int // places of the columns
}

func openCSVRows(name string, r io.Reader) (*csvRows, error) {
	c := &csvRows{name: name, r: csv.NewReader(r)}
	c.r.ReuseRecord = true
	head, err := c.r.Read()
	if errors.Is(err, io.EOF) {
		return nil, &RecordError{File: name, Msg: "empty: want a line with the names of the columns"}
	}
	if err != nil {
		return nil, c.explain(err)
	}
	for _, column := range recordColumns {
		i := slices.Index(head, column)
		if i < 0 {
			return nil, &RecordError{File: name, Line: 1, Msg: "no column " + column + ": this is no recording of p4lb inspect"}
		}
		c.at = append(c.at, i)
	}
	return c, nil
}

// explain gives an error of package csv the place that it has.
func (c *csvRows) explain(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return &RecordError{File: c.name, Line: parse.Line, Msg: parse.Err.Error()}
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
	if p.wrong != "" {
		line, _ := c.r.FieldPos(0)
		return nil, &RecordError{File: c.name, Line: line, Msg: p.wrong}
	}
	return row, nil
}

// A fieldParser reads the fields of a line by the places of recordColumns, and
// notes the first that is wrong.
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
