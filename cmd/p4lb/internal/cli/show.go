package cli

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

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// A Format is an output format of a verb.
type Format string

// The formats of the flag -o.
const (
	Table Format = "table"
	JSON  Format = "json"
	CSV   Format = "csv"
	YAML  Format = "yaml"
)

// AddFormat adds the flag -o to cmd, with the given formats. The first is the
// default.
func AddFormat(cmd *cobra.Command, f *Format, have ...Format) {
	AddFormatFlag(cmd, f, "output", "o", have)
}

// AddFormatFlag adds such a flag under another name, for verbs whose -o names a
// file.
func AddFormatFlag(cmd *cobra.Command, f *Format, name, short string, have []Format) {
	*f = have[0]
	flag := formatFlag{f, have}
	cmd.Flags().VarP(flag, name, short, "format of the result: "+flag.names())
}

type formatFlag struct {
	value *Format
	have  []Format
}

func (f formatFlag) names() string {
	return strings.Join(lists.Map(f.have, func(h Format) string { return string(h) }), ", ")
}

// String returns the selected format.
func (f formatFlag) String() string { return string(*f.value) }

// Type returns the placeholder in the help text.
func (f formatFlag) Type() string { return "FORMAT" }

// Set selects one of the formats.
func (f formatFlag) Set(s string) error {
	if !slices.Contains(f.have, Format(s)) {
		return fmt.Errorf("want one of %s", f.names())
	}
	*f.value = Format(s)
	return nil
}

// A Grid is a result in rows. The first row contains the column titles.
type Grid [][]string

// Show prints rows as a table or as CSV, or whole as JSON or YAML.
func Show(w io.Writer, f Format, rows Grid, whole any) error {
	switch f {
	case JSON:
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(whole)
	case YAML:
		// Marshalling through JSON gives YAML the same names.
		text, err := json.Marshal(whole)
		if err != nil {
			return err
		}
		if text, err = yaml.JSONToYAML(text); err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	case CSV:
		return csv.NewWriter(w).WriteAll(rows)
	}
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		// Cells may contain text from files or the network. A tab or newline in
		// a cell would also break the table.
		fmt.Fprintln(tw, strings.Join(lists.Map(row, func(cell string) string { return plain.Printable(cell, "", maxSaid) }), "\t"))
	}
	return tw.Flush()
}
