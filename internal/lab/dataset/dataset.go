// Package dataset reads observations of queues from CSV and Parquet files.
package dataset

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/fitting"
)

// Options set the units of the columns. The zero value reads the occupancy in percent
// and the dequeue interval in µs.
type Options struct {
	FullQueue float64 // occupancy of a full queue; 0: 100
	Microsec  float64 // length of one unit of the interval in µs; 0: 1
}

// A File is one file of a dataset. For Parquet, its reader must support seeking and reading at
// any offset.
type File struct {
	Name   string
	Reader io.Reader
}

// A Source identifies a file that was read.
type Source struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Rows   int    `json:"rows"`
}

// An Error describes invalid data and its position. Line and Col are 0 if they are not known: a
// Parquet file has no lines.
type Error struct {
	File      string
	Line, Col int
	Msg       string
	// BeyondFull reports an occupancy larger than a full queue, which means that
	// the unit is wrong.
	BeyondFull bool
}

func (e *Error) Error() string {
	switch {
	case e.Line == 0:
		return fmt.Sprintf("%s: %s", e.File, e.Msg)
	case e.Col == 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg)
}

// Read adds the rows of a file. It reads Parquet if the file starts with Parquet's magic number,
// and CSV otherwise.
func Read(ctx context.Context, f File, o Options, rows *fitting.Rows) (Source, error) {
	s := sink{rows: rows, file: f.Name, full: cmp.Or(o.FullQueue, 100), interval: cmp.Or(o.Microsec, 1)}
	before := rows.Len()
	sum := sha256.New()
	var magic [4]byte
	n, err := io.ReadFull(f.Reader, magic[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return Source{}, err
	}
	if string(magic[:n]) == parquetMagic {
		err = readParquet(ctx, f, sum, &s)
	} else {
		err = readCSV(ctx, io.TeeReader(io.MultiReader(strings.NewReader(string(magic[:n])), f.Reader), sum), &s)
	}
	return Source{f.Name, hex.EncodeToString(sum.Sum(nil)), rows.Len() - before}, err
}

// A sink collects rows and converts them to the units of fitting.Row.
type sink struct {
	rows     *fitting.Rows
	file     string
	full     float64 // occupancy that equals 255 in units of the register
	interval float64 // factor to µs
}

// add adds a row with the columns in the order of fitting.ColumnNames. It rejects an occupancy
// larger than a full queue, because the unit is then wrong.
func (s *sink) add(v *[3]float64, line int) error {
	if v[1] > s.full*(1+1e-9) && v[1] <= maxFloat {
		return &Error{File: s.file, Line: line, Msg: fmt.Sprintf("%s %g is more than a full queue, which is %g", fitting.ColumnNames[1], v[1], s.full), BeyondFull: true}
	}
	s.rows.Append(fitting.Row{Y: v[0], L: min(v[1], s.full) * 255 / s.full, T: v[2] * s.interval})
	return nil
}

// place returns the positions of the three columns in a file.
func place(file string, line int, have []string) (at [3]int, err error) {
	for c, name := range fitting.ColumnNames {
		at[c] = slices.Index(have, name)
		if at[c] < 0 {
			return at, &Error{File: file, Line: line, Msg: fmt.Sprintf("no column %s: the columns are %s", name, strings.Join(have, ", "))}
		}
		if slices.Contains(have[at[c]+1:], name) {
			return at, &Error{File: file, Line: line, Msg: fmt.Sprintf("two columns %s", name)}
		}
	}
	return at, nil
}
