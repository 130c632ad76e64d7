package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"

	"github.com/p4lb/p4lb/fitting"
)

func read(t *testing.T, text string, o Options) ([]fitting.Row, error) {
	t.Helper()
	var rows fitting.Rows
	_, err := Read(t.Context(), File{"obs.csv", strings.NewReader(text)}, o, &rows)
	return list(&rows), err
}

func list(rows *fitting.Rows) []fitting.Row {
	var l []fitting.Row
	for r := range rows.All() {
		l = append(l, r)
	}
	return l
}

func same(a, b []fitting.Row) bool {
	// Printed, because NaN differs from itself.
	return fmt.Sprint(a) == fmt.Sprint(b)
}

func TestCSV(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name, text string
		opts       Options
		want       []fitting.Row
	}{
		{"plain", "egress_traffic,occupancy,dequeue_interval\n10,100,3\n20,0,4.5\n", Options{}, []fitting.Row{{Y: 10, L: 255, T: 3}, {Y: 20, L: 0, T: 4.5}}},
		{"other columns and order", "time,dequeue_interval,port,occupancy,egress_traffic\n0,3,p1,50,10\n", Options{}, []fitting.Row{{Y: 10, L: 127.5, T: 3}}},
		{"no last line end", "egress_traffic,occupancy,dequeue_interval\n1,2,3", Options{FullQueue: 255}, []fitting.Row{{Y: 1, L: 2, T: 3}}},
		{"windows", "\ufeffegress_traffic,occupancy,dequeue_interval\r\n1,2,3\r\n\r\n", Options{FullQueue: 255}, []fitting.Row{{Y: 1, L: 2, T: 3}}},
		{"quotes", "\"egress_traffic\",\"occupancy\",dequeue_interval,note\n\"1\", 2 ,3,\"a, \"\"b\"\"\nc\"\n4,5,6,\n", Options{FullQueue: 255}, []fitting.Row{{Y: 1, L: 2, T: 3}, {Y: 4, L: 5, T: 6}}},
		{"units", "egress_traffic,occupancy,dequeue_interval\n1,0.5,0.25\n", Options{FullQueue: 1, Microsec: 1000}, []fitting.Row{{Y: 1, L: 127.5, T: 250}}},
		{"to be cleaned", "egress_traffic,occupancy,dequeue_interval\n,NaN,-3\nInf,1e400,3\n", Options{FullQueue: 255}, []fitting.Row{{Y: nan, L: nan, T: -3}, {Y: math.Inf(1), L: 255, T: 3}}},
		{"rounding", "egress_traffic,occupancy,dequeue_interval\n1,100.00000000001,3\n", Options{}, []fitting.Row{{Y: 1, L: 255, T: 3}}},
	} {
		got, err := read(t, c.text, c.opts)
		if err != nil || !same(got, c.want) {
			t.Errorf("%s: got %v, %v; want %v", c.name, got, err, c.want)
		}
	}
}

func TestCSVErrors(t *testing.T) {
	const head = "egress_traffic,occupancy,dequeue_interval\n"
	for _, c := range []struct{ text, want string }{
		{"", "obs.csv: empty: want a line with the names of the columns"},
		{"a,occupancy,b\n", "obs.csv:1: no column egress_traffic: the columns are a, occupancy, b"},
		{"\n\negress_traffic,occupancy\n", "obs.csv:3: no column dequeue_interval: the columns are egress_traffic, occupancy"},
		{"occupancy," + head, "obs.csv:1: two columns occupancy"},
		{head + "1,2,3\n1,2\n", "obs.csv:3: 2 fields, but line 1 names 3 columns"},
		{head + "1\n", "obs.csv:2: 1 field, but line 1 names 3 columns"},
		{head + "1,2,3,4\n", "obs.csv:2: 4 fields, but line 1 names 3 columns"},
		{head + "1,2,3\n10,x7,3\n", `obs.csv:3:4: occupancy: "x7" is not a number`},
		{head + "1,2,\"0x1p4\"\n", `obs.csv:2:5: dequeue_interval: "0x1p4" is not a number`},
		{head + "1,2,1_000\n", `obs.csv:2:5: dequeue_interval: "1_000" is not a number`},
		{head + "1,2,-\n", `obs.csv:2:5: dequeue_interval: "-" is not a number`},
		{"note," + head + "\"a\nb\",1,2,3\nc,1,2,z\n", `obs.csv:4:7: dequeue_interval: "z" is not a number`},
		{head + "1,2,3\n1,101,3\n", "obs.csv:3: occupancy 101 is more than a full queue, which is 100"},
	} {
		_, err := read(t, c.text, Options{})
		if err == nil || err.Error() != c.want {
			t.Errorf("%q: got %v, want %s", c.text, err, c.want)
		}
	}
	if _, err := read(t, head+"\""+strings.Repeat("\n", 17<<20), Options{}); !errors.Is(err, errLongRecord) {
		t.Errorf("got %v", err)
	}
	want := errors.New("broken")
	var rows fitting.Rows
	broken := io.MultiReader(strings.NewReader(head+"1,2,3\n1,"), iotest.ErrReader(want))
	if _, err := Read(t.Context(), File{"x", broken}, Options{}, &rows); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
	if src, err := Read(t.Context(), File{"x", iotest.ErrReader(want)}, Options{}, &rows); !errors.Is(err, want) || src.Rows != 0 {
		t.Errorf("a header that cannot be read: %+v, %v", src, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, File{"x", strings.NewReader(head)}, Options{}, &rows); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestCSVPieces reads through buffers that end anywhere.
func TestCSVPieces(t *testing.T) {
	var b strings.Builder
	b.WriteString("egress_traffic,occupancy,dequeue_interval,note\n")
	for i := range 40_000 {
		fmt.Fprintf(&b, "%d,%d.5,%d,\"x\ny\"\n", i, i%100, i*7)
	}
	whole, err := read(t, b.String(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var rows fitting.Rows
	src, err := Read(t.Context(), File{"x", iotest.HalfReader(strings.NewReader(b.String()))}, Options{}, &rows)
	if err != nil || !same(list(&rows), whole) || src.Rows != 40_000 || len(src.SHA256) != 64 {
		t.Errorf("%d rows, %+v, %v", rows.Len(), src, err)
	}
}

func TestNumber(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	texts := []string{"0", "-0", "1.", ".5", "+3", "123456789012345", "1234567890123456789", "0.000000000000001", "1e-7", "9007199254740993"}
	for range 20_000 {
		texts = append(texts,
			strconv.FormatFloat(rng.NormFloat64()*math.Pow(10, float64(rng.IntN(20)-10)), 'f', rng.IntN(12), 64),
			strconv.FormatFloat(rng.ExpFloat64(), 'g', -1, 64))
	}
	for _, s := range texts {
		got, err := number([]byte(s))
		want, wrong := strconv.ParseFloat(s, 64)
		if err != nil || wrong != nil || math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%s: got %v, %v; want %v", s, got, err, want)
		}
	}
}

type observed struct {
	Port    string   `parquet:"port"`
	Traffic int64    `parquet:"egress_traffic"`
	L       *float32 `parquet:"occupancy,optional"`
	T       float64  `parquet:"dequeue_interval"`
}

func parquetOf[T any](t *testing.T, rows []T, groups int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, parquet.Compression(&parquet.Snappy))
	for len(rows) > 0 {
		n := (len(rows) + groups - 1) / groups
		if _, err := w.Write(rows[:n]); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		rows = rows[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestParquet(t *testing.T) {
	var rows []observed
	var want []fitting.Row
	for i := range 5000 {
		l := float32(i % 100)
		r := observed{"p1", int64(i), &l, float64(i) / 3}
		w := fitting.Row{Y: float64(i), L: float64(l) * 255 / 100.0, T: float64(i) / 3}
		if i%10 == 0 {
			r.L, w.L = nil, math.NaN()
		}
		rows, want = append(rows, r), append(want, w)
	}
	data := parquetOf(t, rows, 3)
	var got fitting.Rows
	src, err := Read(t.Context(), File{"obs.parquet", bytes.NewReader(data)}, Options{}, &got)
	if err != nil || src.Rows != 5000 || got.Len() != 5000 {
		t.Fatalf("%+v, %v", src, err)
	}
	for i, r := range list(&got) {
		if w := want[i]; r.Y != w.Y || r.T != w.T || math.Abs(r.L-w.L) > 1e-9 || math.IsNaN(r.L) != math.IsNaN(w.L) {
			t.Fatalf("row %d: got %v, want %v", i, r, w)
		}
	}
}

// TestSynthetic: observations without a measurement are the same each time, and within
// the ranges of a port.
func TestSynthetic(t *testing.T) {
	const want = "egress_traffic,occupancy,dequeue_interval\n"
	text := string(Synthetic(500))
	if !strings.HasPrefix(text, want) || !strings.HasPrefix(string(Synthetic(501)), text) {
		t.Fatalf("%.60q", text)
	}
	rows, err := read(t, text, Options{})
	if err != nil || len(rows) != 500 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	var sum fitting.Row
	for _, r := range rows {
		if r.Y < 0 || r.Y > 450_000 || r.L < 0 || r.L > 255 || r.T < 1 || r.T > 9000 {
			t.Errorf("%+v", r)
		}
		sum.Y, sum.L, sum.T = sum.Y+r.Y/500, sum.L+r.L/500, sum.T+r.T/500
	}
	if got := fmt.Sprintf("%.0f %.1f %.1f", sum.Y, sum.L, sum.T); got != "185717 68.1 1259.6" {
		t.Errorf("means %s", got)
	}
}

// TestParquetTypes reads integers and floating-point numbers of all widths, beside
// structures, in pages of both versions that end at different rows.
func TestParquetTypes(t *testing.T) {
	type row struct {
		In struct {
			A, B int64
		} `parquet:"in"`
		L int32   `parquet:"occupancy,dict"`
		T int16   `parquet:"dequeue_interval"`
		Y uint8   `parquet:"-"`
		F float32 `parquet:"egress_traffic,optional"`
	}
	for version := 1; version <= 2; version++ {
		for _, codec := range []parquet.WriterOption{parquet.Compression(&parquet.Uncompressed), parquet.Compression(&parquet.Gzip), parquet.Compression(&parquet.Zstd)} {
			var b bytes.Buffer
			w := parquet.NewGenericWriter[row](&b, codec, parquet.DataPageVersion(version), parquet.PageBufferSize(300))
			var want []fitting.Row
			for i := range 300 {
				r := row{L: int32(i % 101), T: int16(i * 7), F: float32(i) / 2}
				if _, err := w.Write([]row{r}); err != nil {
					t.Fatal(err)
				}
				if want = append(want, fitting.Row{Y: float64(r.F), L: float64(r.L), T: float64(r.T)}); i%3 == 0 && r.F == 0 {
					want[i].Y = math.NaN() // zero values of optional columns are null
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			var got fitting.Rows
			if _, err := Read(t.Context(), File{"x", bytes.NewReader(b.Bytes())}, Options{FullQueue: 255}, &got); err != nil || !same(list(&got), want) {
				t.Errorf("version %d: %v, %d rows", version, err, got.Len())
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := Read(ctx, File{"x", bytes.NewReader(b.Bytes())}, Options{FullQueue: 255}, &got); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
		}
	}
	type unsigned struct {
		Y uint32  `parquet:"egress_traffic"`
		L float64 `parquet:"occupancy"`
		T float64 `parquet:"dequeue_interval"`
	}
	type date struct {
		Y int32   `parquet:"egress_traffic,date"`
		L float64 `parquet:"occupancy"`
		T float64 `parquet:"dequeue_interval"`
	}
	type flag struct {
		Y bool    `parquet:"egress_traffic"`
		L float64 `parquet:"occupancy"`
		T float64 `parquet:"dequeue_interval"`
	}
	for _, data := range [][]byte{parquetOf(t, []unsigned{{1, 2, 3}}, 1), parquetOf(t, []date{{1, 2, 3}}, 1), parquetOf(t, []flag{{true, 2, 3}}, 1)} {
		var rows fitting.Rows
		if _, err := Read(t.Context(), File{"x", bytes.NewReader(data)}, Options{}, &rows); err == nil || !strings.Contains(err.Error(), "x: the column egress_traffic holds ") {
			t.Errorf("got %v", err)
		}
	}
}

func TestParquetErrors(t *testing.T) {
	type text struct {
		Y string  `parquet:"egress_traffic"`
		L float64 `parquet:"occupancy"`
		T float64 `parquet:"dequeue_interval"`
	}
	type missing struct {
		Y float64 `parquet:"egress_traffic"`
		L float64 `parquet:"occupancy"`
	}
	type repeated struct {
		Y []float64 `parquet:"egress_traffic"`
		L float64   `parquet:"occupancy"`
		T float64   `parquet:"dequeue_interval"`
	}
	type number struct {
		Y float64 `parquet:"egress_traffic"`
		L float64 `parquet:"occupancy"`
		T float64 `parquet:"dequeue_interval"`
	}
	whole := parquetOf(t, []number{{1, 2, 3}, {1, 200, 3}}, 2)
	// Where the rows are a column themselves the reader panics.
	leaf := func() []byte {
		f, err := OpenParquet(bytes.NewReader(whole), int64(len(whole)))
		if err != nil {
			t.Fatal(err)
		}
		meta := *f.Metadata()
		meta.RowGroups, meta.Schema = nil, slices.Clone(meta.Schema)
		meta.Schema[0].Type.Valid = true
		footer, err := thrift.Marshal(new(thrift.CompactProtocol), &meta)
		if err != nil {
			t.Fatal(err)
		}
		text := append(bytes.Clone(whole[:len(whole)-8-int(binary.LittleEndian.Uint32(whole[len(whole)-8:]))]), footer...)
		return append(binary.LittleEndian.AppendUint32(text, uint32(len(footer))), parquetMagic...)
	}()
	for _, c := range []struct {
		data []byte
		want string
	}{
		{parquetOf(t, []text{{"a", 1, 2}}, 1), "x: the column egress_traffic holds STRING, not numbers"},
		{parquetOf(t, []repeated{{[]float64{1}, 1, 2}}, 1), "x: the column egress_traffic holds DOUBLE, not numbers"},
		{parquetOf(t, []missing{{1, 2}}, 1), "x: no column dequeue_interval: the columns are egress_traffic, occupancy"},
		{leaf, "x: the file is broken"},
		{whole[:len(whole)-7], "x: not a whole Parquet file: "},
		{whole, "x: row 2: occupancy 200 is more than a full queue, which is 100"},
	} {
		var rows fitting.Rows
		_, err := Read(t.Context(), File{"x", bytes.NewReader(c.data)}, Options{}, &rows)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	var rows fitting.Rows
	_, err := Read(t.Context(), File{"x", io.LimitReader(bytes.NewReader(whole), 1<<20)}, Options{}, &rows)
	if err == nil || err.Error() != "x: a Parquet file cannot be read as a stream" {
		t.Errorf("got %v", err)
	}
}

// TestSplitFiles: a dataset in one file or in several, in any order, gives the
// same fit.
func TestSplitFiles(t *testing.T) {
	const head = "egress_traffic,occupancy,dequeue_interval\n"
	rng := rand.New(rand.NewPCG(4, 4))
	var lines []string
	for range 6000 {
		load := rng.Float64()
		lines = append(lines, fmt.Sprintf("%.2f,%.3f,%.1f\n", 1000*load+50*rng.Float64(), 100*load*load, 10+800*(1-load)*rng.Float64()))
	}
	fit := func(parts ...[]string) *fitting.Fit {
		t.Helper()
		var rows fitting.Rows
		for _, p := range parts {
			if _, err := Read(t.Context(), File{"x", strings.NewReader(head + strings.Join(p, ""))}, Options{}, &rows); err != nil {
				t.Fatal(err)
			}
		}
		f, err := rows.Fit(t.Context(), fitting.Options{Degree: 3, Test: 0.25, Folds: 5})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	whole, split := fit(lines), fit(lines[4000:], lines[:10], lines[10:4000])
	for i, c := range whole.Coeff {
		if math.Abs(split.Coeff[i]-c) > 1e-9*math.Abs(c) {
			t.Errorf("coefficient %d: %v and %v", i, c, split.Coeff[i])
		}
	}
	if !(math.Abs(whole.Test.R2-split.Test.R2) <= 1e-12) || !(math.Abs(whole.CV.MSE-split.CV.MSE) <= 1e-12) {
		t.Errorf("R² %v and %v", whole.Test, split.Test)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("egress_traffic,occupancy,dequeue_interval\n1,2,3\n"))
	f.Add([]byte("egress_traffic,occupancy,dequeue_interval,x\n1,\"2\",3,\"\n\"\n"))
	f.Add([]byte("PAR1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var rows fitting.Rows
		src, err := Read(t.Context(), File{"x", bytes.NewReader(data)}, Options{}, &rows)
		if err == nil && src.Rows != rows.Len() {
			t.Errorf("%d rows, counted %d", rows.Len(), src.Rows)
		}
	})
}

func BenchmarkCSV(b *testing.B) {
	var text bytes.Buffer
	text.WriteString("egress_traffic,occupancy,dequeue_interval\n")
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200_000 {
		fmt.Fprintf(&text, "%.3f,%.4f,%.3f\n", 4e5*rng.Float64(), 100*rng.Float64(), 1e4*rng.Float64())
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		var rows fitting.Rows
		if _, err := Read(b.Context(), File{"x", bytes.NewReader(text.Bytes())}, Options{}, &rows); err != nil {
			b.Fatal(err)
		}
	}
}
