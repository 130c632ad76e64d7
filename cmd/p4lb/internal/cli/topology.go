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

// Topology reads the topology named by the user: a file, or a preset if no such
// file exists. It prints the errors in a file.
func (c *Console) Topology(name string) (*fabric.Topology, error) {
	info, err := os.Stat(name)
	if name != "-" && (errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir()) {
		p, err := fabric.PresetNamed(name)
		if err != nil {
			return nil, Hinted(err, "p4lb topo presets lists the presets")
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

// TopologyErrors prints each error of a topology on a line.
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

// WriteResult writes data to the named file, or to standard output if the name
// is "".
func (c *Console) WriteResult(name string, data []byte) error {
	if name == "" {
		_, err := c.Out.Write(data)
		return err
	}
	if slices.Contains([]Format{Table, JSON, CSV, YAML}, Format(name)) {
		return Hinted(fmt.Errorf("-o %s: want a file name, not a format", name), "remove -o to print to standard output")
	}
	return c.WriteFile(name, data)
}

// AddResultFlag adds the flag -o to a verb that writes one file.
func AddResultFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVarP(name, "output", "o", "", "write to `FILE` instead of standard output")
}

// AddFailFlag adds the flag --fail to cmd.
func AddFailFlag(cmd *cobra.Command, fail *[]string) {
	cmd.Flags().StringArrayVar(fail, "fail", nil, "fail a `LINK`: the one at a port, such as l1:3, or all between two nodes, such as l1-s1 (repeatable)")
}

// FailLinks returns the topology with the named links down.
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

// CompleteTopology completes the names of presets besides files.
func CompleteTopology(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names := lists.Map(fabric.Presets(), func(p fabric.Preset) string { return p.Name + "\t" + p.About })
	return names, cobra.ShellCompDirectiveDefault
}
