package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// Topology reads a topology that a user has named: a file, or a preset where
// there is no such file. What is wrong with a file has been printed.
func (c *Console) Topology(name string) (*fabric.Topology, error) {
	info, err := os.Stat(name)
	if name != "-" && (errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir()) {
		p, err := fabric.PresetNamed(name)
		if err != nil {
			return nil, Hinted(fmt.Errorf("no file of that name, and %w", err), "p4lb topo presets lists the presets")
		}
		return p.Make()
	}
	text, err := c.ReadSource(name)
	if err != nil {
		return nil, err
	}
	t, err := fabric.Load(DisplayName(name), text)
	return t, c.TopologyErrors(err)
}

// TopologyErrors prints what is wrong with a topology, a line each.
func (c *Console) TopologyErrors(err error) error {
	var list fabric.Errors
	var one *fabric.Error
	switch {
	case errors.As(err, &list):
	case errors.As(err, &one):
		list = fabric.Errors{one}
	default:
		return err
	}
	for _, e := range list {
		switch {
		case !c.LogJSON:
			fmt.Fprintf(c.Err, "%s %s\n", c.Paint.red("error:"), tame(e.Error()))
		case e.Line == 0:
			c.Log.Error(e.Msg, "file", e.File)
		default:
			c.Log.Error(e.Msg, "file", e.File, "line", e.Line)
		}
	}
	return ErrReported
}

// WriteResult writes a file, or to standard output where none is named.
func (c *Console) WriteResult(name string, data []byte) error {
	if name == "" {
		_, err := c.Out.Write(data)
		return err
	}
	if slices.Contains([]Format{Table, JSON, CSV, YAML}, Format(name)) {
		return Hinted(fmt.Errorf("-o %s: here -o names a file, and none is called like a form of results", name), "leave it out for standard output")
	}
	return c.WriteFile(name, data)
}

// AddResultFlag gives cmd the flag -o of verbs that write one file.
func AddResultFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVarP(name, "output", "o", "", "write to `FILE` instead of standard output")
}

// AddFailFlag gives cmd the flag --fail.
func AddFailFlag(cmd *cobra.Command, fail *[]string) {
	cmd.Flags().StringArrayVar(fail, "fail", nil, "take a `LINK` down: one by a port, as in l1:3, or all between two nodes, as in l1-s1 (repeatable)")
}

// FailLinks returns the topology with the links down that a user has named.
func FailLinks(t *fabric.Topology, names []string) (*fabric.Topology, error) {
	for _, name := range names {
		links, err := t.FindLinks(name)
		if err != nil {
			return nil, err
		}
		t = t.Fail(links...)
	}
	return t, nil
}

// CompleteTopology offers the presets beside files.
func CompleteTopology(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names := lists.Map(fabric.Presets(), func(p fabric.Preset) string { return p.Name + "\t" + p.About })
	return names, cobra.ShellCompDirectiveDefault
}
