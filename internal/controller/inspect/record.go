package inspect

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// A Recorder writes snapshots to a file that Replay reads, one row for each
// reading.
type Recorder interface {
	Record(s *Snapshot) error
	// Close writes buffered rows. It does not close the underlying writer.
	Close() error
}

// RecordFormats are the formats of recordings, which are also the file name
// extensions.
var RecordFormats = []string{"csv", "parquet"}

// NewRecorder returns a recorder for one of RecordFormats.
func NewRecorder(w io.Writer, format string) (Recorder, error) {
	switch format {
	case "csv":
		r := &csvRecorder{w: csv.NewWriter(w)}
		return r, r.w.Write(recordColumns)
	case "parquet":
		return newParquetRecorder(w)
	}
	return nil, fmt.Errorf("no recording of form %q: want %s", format, strings.Join(RecordFormats, " or "))
}

// A recordRow is a row of a recording.
type recordRow struct {
	TimeUS   int64   `parquet:"time_us,delta"`  // the reader's clock
	ClockUS  int64   `parquet:"clock_us,delta"` // clock of the switch
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
	WallUS   int64   `parquet:"wall_us,delta"` // time by the reading machine's clock, since 1970; 0 in virtual time
}

// recordColumns lists the columns in the order of recordRow.
var recordColumns = []string{
	"time_us", "clock_us", "switch", "role", "scheme", "register", "quantity", "cell", "index", "port", "peer",
	"group", "path", "raw", "value", "unit", "text", "change", "rate", "minor",
	wallColumn,
}

// wallColumn is optional, because older recordings do not have it.
const wallColumn = "wall_us"

func rowOf(s *Snapshot, r Reading) recordRow {
	return recordRow{
		TimeUS: s.Time.Microseconds(), ClockUS: s.Clock.Microseconds(), Switch: s.Switch, Role: s.Role, Scheme: s.Scheme,
		Register: r.Register, Quantity: r.Quantity, Cell: int64(r.Cell), Index: r.Index, Port: int64(r.Port), Peer: r.Peer,
		Group: int64(r.Group), Path: int64(r.Path), Raw: r.Raw, Value: r.Value, Unit: r.Unit, Text: r.Text,
		Change: r.Change, Rate: r.Rate, Minor: r.Minor, WallUS: wallUS(s.Wall),
	}
}

func wallUS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// wall returns the time at which the row was read.
func (r *recordRow) wall() time.Time {
	if r.WallUS == 0 {
		return time.Time{}
	}
	return time.UnixMicro(r.WallUS)
}

// A csvRecorder writes lines.
type csvRecorder struct {
	w      *csv.Writer
	fields []string
}

// Record writes a line for each reading.
func (c *csvRecorder) Record(s *Snapshot) error {
	for _, reading := range s.Readings {
		r := rowOf(s, reading)
		c.fields = append(c.fields[:0],
			whole(r.TimeUS), whole(r.ClockUS), r.Switch, r.Role, r.Scheme, r.Register, r.Quantity, whole(r.Cell), r.Index,
			whole(r.Port), r.Peer, whole(r.Group), whole(r.Path), strconv.FormatUint(r.Raw, 10), decimal(r.Value), r.Unit, r.Text,
			decimal(r.Change), decimal(r.Rate), strconv.FormatBool(r.Minor), whole(r.WallUS),
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

// Close does nothing, because all rows have been written.
func (c *csvRecorder) Close() error {
	c.w.Flush()
	return c.w.Error()
}
