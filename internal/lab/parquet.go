//go:build !js

package lab

import (
	"encoding/csv"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// addParquet writes the tables of a run's folder as Parquet too.
func addParquet(dir string) error {
	for _, name := range []string{flowsFile, linksFile} {
		out, err := os.Create(filepath.Join(dir, strings.TrimSuffix(name, ".csv")+".parquet"))
		if err != nil {
			return fileError("writing", name, err)
		}
		if err := errors.Join(ToParquet(filepath.Join(dir, name), out), closing(out)); err != nil {
			return err
		}
	}
	return nil
}

// textColumns lists the columns that hold text instead of numbers.
var textColumns = map[string]bool{
	"class": true, "src": true, "dst": true, "from": true, "to": true, "counted": true, "finished": true,
	"run": true, "case": true, "scheme": true, "arch": true, "engine": true,
}

// ToParquet writes a CSV file of flows, links or runs as Parquet.
func ToParquet(from string, to *os.File) error {
	in, err := os.Open(from)
	if err != nil {
		return fileError("reading", from, err)
	}
	defer in.Close()
	rows := csv.NewReader(in)
	rows.ReuseRecord = true
	head, err := rows.Read()
	if err != nil {
		return fileError("reading", from, err)
	}
	group := parquet.Group{}
	names := append([]string(nil), head...)
	for _, name := range names {
		switch {
		case name == "counted" || name == "finished":
			group[name] = parquet.Leaf(parquet.BooleanType)
		case textColumns[name]:
			group[name] = parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
		default:
			group[name] = parquet.Leaf(parquet.DoubleType)
		}
	}
	schema := parquet.NewSchema("rows", group)
	w := parquet.NewGenericWriter[any](to, schema, parquet.Compression(&parquet.Zstd))
	if err = copyRows(w, rows, schema, names); err == nil {
		err = w.Close()
	}
	if err != nil {
		return fileError("writing", to.Name(), err)
	}
	return nil
}

func copyRows(w *parquet.GenericWriter[any], rows *csv.Reader, schema *parquet.Schema, names []string) error {
	place := make([]int, len(names))
	for i, name := range names {
		leaf, _ := schema.Lookup(name)
		place[i] = leaf.ColumnIndex
	}
	row := make(parquet.Row, len(names))
	for {
		fields, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for i, text := range fields {
			row[place[i]] = cellOf(names[i], text).Level(0, 0, place[i])
		}
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			return err
		}
	}
}

func cellOf(column, text string) parquet.Value {
	switch {
	case column == "counted" || column == "finished":
		return parquet.BooleanValue(text == "true")
	case textColumns[column]:
		return parquet.ByteArrayValue([]byte(text))
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return parquet.DoubleValue(math.NaN()) // the run does not have this metric
	}
	return parquet.DoubleValue(v)
}
