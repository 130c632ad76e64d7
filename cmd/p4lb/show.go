package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
)

// A format is how a verb shows its result.
type format string

// The formats of -o on verbs that show something.
const (
	formatTable format = "table"
	formatJSON  format = "json"
	formatCSV   format = "csv"
	formatYAML  format = "yaml"
)

// addFormat gives cmd the flag -o with the formats that it has.
func addFormat(cmd *cobra.Command, f *format, have ...format) {
	addFormatFlag(cmd, f, "output", "o", have)
}

// addFormatFlag gives it one of another name, where -o names a file.
func addFormatFlag(cmd *cobra.Command, f *format, name, short string, have []format) {
	*f = have[0]
	names := make([]string, len(have))
	for i, h := range have {
		names[i] = string(h)
	}
	cmd.Flags().VarP(formatFlag{f, have}, name, short, "form of the result: "+strings.Join(names, ", "))
}

type formatFlag struct {
	value *format
	have  []format
}

// String, Set and Type make the flag one of pflag's values.
func (f formatFlag) String() string { return string(*f.value) }

// Type is the placeholder in the help text.
func (f formatFlag) Type() string { return "FORMAT" }

// Set accepts the formats of this verb.
func (f formatFlag) Set(s string) error {
	if !slices.Contains(f.have, format(s)) {
		return fmt.Errorf("want one of %s", joinFormats(f.have))
	}
	*f.value = format(s)
	return nil
}

func joinFormats(list []format) string {
	var b strings.Builder
	for i, f := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(f))
	}
	return b.String()
}

// A grid is a result in rows, the first being the heads of the columns.
type grid [][]string

// show writes rows in the chosen form; whole is what JSON and YAML show.
func show(w io.Writer, f format, rows grid, whole any) error {
	switch f {
	case formatJSON:
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(whole)
	case formatYAML:
		return showYAML(w, whole)
	case formatCSV:
		return csv.NewWriter(w).WriteAll(rows)
	}
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	return tw.Flush()
}

// showYAML writes what JSON would, with the same names.
func showYAML(w io.Writer, whole any) error {
	text, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	if text, err = yaml.JSONToYAML(text); err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}
