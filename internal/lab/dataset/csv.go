package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unsafe"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/text/lists"
)

const (
	maxFloat  = math.MaxFloat64
	firstRead = 1 << 18
	maxRecord = 1 << 24 // longer records are rejected
)

// A csvReader splits a stream into records without keeping them.
type csvReader struct {
	r     io.Reader
	buf   []byte
	start int // the start of the unread data
	end   int
	line  int // line of the record last returned
	next  int // line of the next record
	eof   bool
}

var errLongRecord = errors.New("a record of more than 16 MiB: is this CSV?")

// record returns the next record without its line end, io.EOF after the last.
// A quoted field may hold line ends.
func (c *csvReader) record() ([]byte, error) {
	c.line = c.next
	from, lines, quotes := 0, 0, 0 // the search position in the record
	for {
		if i := bytes.IndexByte(c.buf[c.start+from:c.end], '\n'); i >= 0 {
			quotes += bytes.Count(c.buf[c.start+from:c.start+from+i], []byte{'"'})
			from += i + 1
			lines++
			if quotes%2 == 1 {
				continue
			}
			rec := c.buf[c.start : c.start+from-1]
			c.start += from
			c.next += lines
			return bytes.TrimSuffix(rec, []byte{'\r'}), nil
		}
		if c.eof {
			if c.start == c.end {
				return nil, io.EOF
			}
			rec := c.buf[c.start:c.end]
			c.start = c.end
			return bytes.TrimSuffix(rec, []byte{'\r'}), nil
		}
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
}

// fill reads more data after the unread data.
func (c *csvReader) fill() error {
	left := copy(c.buf, c.buf[c.start:c.end])
	c.start, c.end = 0, left
	if left == len(c.buf) {
		if left >= maxRecord {
			return errLongRecord
		}
		c.buf = append(c.buf, make([]byte, max(firstRead, left))...)
	}
	n, err := c.r.Read(c.buf[c.end:])
	c.end += n
	if errors.Is(err, io.EOF) {
		c.eof = true
		return nil
	}
	return err
}

// fields appends the fields of a record to list.
func fields(list [][]byte, rec []byte) [][]byte {
	if bytes.IndexByte(rec, '"') < 0 {
		for {
			i := bytes.IndexByte(rec, ',')
			if i < 0 {
				return append(list, rec)
			}
			list, rec = append(list, rec[:i]), rec[i+1:]
		}
	}
	start, quoted := 0, false
	for i, b := range rec {
		switch {
		case b == '"':
			quoted = !quoted
		case b == ',' && !quoted:
			list = append(list, rec[start:i])
			start = i + 1
		}
	}
	return append(list, rec[start:])
}

// unquote strips blanks and quotes. It does not interpret the quoted text, which is
// sufficient for numbers.
func unquote(f []byte) []byte {
	f = bytes.TrimSpace(f)
	if len(f) >= 2 && f[0] == '"' && f[len(f)-1] == '"' {
		return bytes.TrimSpace(f[1 : len(f)-1])
	}
	return f
}

func readCSV(ctx context.Context, r io.Reader, s *sink) error {
	c := &csvReader{r: r, next: 1, buf: make([]byte, firstRead)}
	at, width, err := readHeader(c, s.file)
	if err != nil {
		return err
	}
	head := c.line
	var list [][]byte
	var v [3]float64
	for n := 0; ; n++ {
		if n%(1<<16) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		rec, err := c.record()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(rec) == 0 {
			continue
		}
		list = fields(list[:0], rec)
		if len(list) != width {
			return &Error{File: s.file, Line: c.line, Msg: fmt.Sprintf("%s, but line %d names %s", count(len(list), "field"), head, count(width, "column"))}
		}
		for k, i := range at {
			if v[k], err = number(unquote(list[i])); err != nil {
				return &Error{File: s.file, Line: c.line, Col: column(rec, list[i]), Msg: fmt.Sprintf("%s: %q is not a number", fitting.ColumnNames[k], unquote(list[i]))}
			}
		}
		if err := s.add(&v, c.line); err != nil {
			return err
		}
	}
}

// column returns the position of a field in its record, counted from 1. Hostile input: a file
// controls the bytes, but not the addresses: field is a slice of rec, and neither address is
// dereferenced. field is not empty, since an empty field is valid.
func column(rec, field []byte) int {
	return 1 + int(uintptr(unsafe.Pointer(&field[0]))-uintptr(unsafe.Pointer(&rec[0])))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// readHeader finds the columns in the first non-empty line.
func readHeader(c *csvReader, file string) (at [3]int, width int, err error) {
	for {
		rec, err := c.record()
		if errors.Is(err, io.EOF) {
			return at, 0, &Error{File: file, Msg: "empty: want a line with the names of the columns"}
		}
		if err != nil {
			return at, 0, err
		}
		rec = bytes.TrimPrefix(rec, []byte("\ufeff"))
		if len(rec) == 0 {
			continue
		}
		have := lists.Map(fields(nil, rec), func(f []byte) string { return strings.ToValidUTF8(string(unquote(f)), "?") })
		at, err = place(file, c.line, have)
		return at, len(have), err
	}
}

// powersOfTen are the powers of ten that a float64 holds exactly.
var powersOfTen = [...]float64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// number reads a decimal number, correctly rounded; an empty field is NaN. Numbers of up to 15
// digits are the common case and need one division of two exact values. strconv reads the others.
func number(f []byte) (float64, error) {
	if len(f) == 0 {
		return math.NaN(), nil
	}
	var mantissa uint64
	digits, fraction, point := 0, 0, false
	text := f
	if f[0] == '-' {
		text = f[1:]
	}
	for _, b := range text {
		switch {
		case b >= '0' && b <= '9':
			mantissa = mantissa*10 + uint64(b-'0')
			digits++
			if point {
				fraction++
			}
		case b == '.' && !point:
			point = true
		default:
			return parseFloat(f)
		}
		if digits > 15 {
			return parseFloat(f)
		}
	}
	if digits == 0 {
		return parseFloat(f)
	}
	v := float64(mantissa) / powersOfTen[fraction]
	if f[0] == '-' {
		v = -v
	}
	return v, nil
}

// parseFloat rejects numbers in forms that only Go accepts: 0x1p3, 1_000.
func parseFloat(f []byte) (float64, error) {
	if bytes.ContainsAny(f, "xX_") {
		return 0, strconv.ErrSyntax
	}
	v, err := strconv.ParseFloat(string(f), 64)
	if errors.Is(err, strconv.ErrRange) {
		return v, nil // infinite values are dropped later
	}
	return v, err
}
