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

// A Format is how a verb shows its result.
type Format string

// The formats of -o on verbs that show something.
const (
	Table Format = "table"
	JSON  Format = "json"
	CSV   Format = "csv"
	YAML  Format = "yaml"
)

// AddFormat gives cmd the flag -o with the formats that it has.
func AddFormat(cmd *cobra.Command, f *Format, have ...Format) {
	AddFormatFlag(cmd, f, "output", "o", have)
}

// AddFormatFlag gives it one of another name, where -o names a file.
func AddFormatFlag(cmd *cobra.Command, f *Format, name, short string, have []Format) {
	*f = have[0]
	flag := formatFlag{f, have}
	cmd.Flags().VarP(flag, name, short, "form of the result: "+flag.names())
}

type formatFlag struct {
	value *Format
	have  []Format
}

func (f formatFlag) names() string {
	return strings.Join(lists.Map(f.have, func(h Format) string { return string(h) }), ", ")
}

// String, Set and Type make the flag one of pflag's values.
func (f formatFlag) String() string { return string(*f.value) }

// Type is the placeholder in the help text.
func (f formatFlag) Type() string { return "FORMAT" }

// Set accepts the formats of this verb.
func (f formatFlag) Set(s string) error {
	if !slices.Contains(f.have, Format(s)) {
		return fmt.Errorf("want one of %s", f.names())
	}
	*f.value = Format(s)
	return nil
}

// A Grid is a result in rows, the first being the heads of the columns.
type Grid [][]string

// Show writes rows in the chosen form; whole is what JSON and YAML show.
func Show(w io.Writer, f Format, rows Grid, whole any) error {
	switch f {
	case JSON:
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(whole)
	case YAML:
		// YAML has what JSON would, with the same names.
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
		// A cell may be a name of a file or from the network: a tab or a line in
		// it would break the table, too.
		fmt.Fprintln(tw, strings.Join(lists.Map(row, func(cell string) string { return plain.Printable(cell, "", maxSaid) }), "\t"))
	}
	return tw.Flush()
}
