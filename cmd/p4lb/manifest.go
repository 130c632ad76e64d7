package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

func newManifest(c *cli.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "manifest VERB",
		Short: "Create, check and show the manifests of programs",
		Long: `A manifest describes a program for p4lb: the content of registers, the purpose of
tables, and the tasks of a controller at run time. gen writes a manifest for each
program. For your own program you write one in JSON or YAML; see docs/manifest.md.`,
		Example: `  p4lb manifest init mine.p4
  p4lb manifest check mine.manifest.yaml
  p4lb manifest show drill --arch tna
  p4lb manifest schema > manifest.schema.json`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newManifestInit(c), newManifestCheck(c), newManifestShow(c), newManifestSchema(c))
	return cmd
}

func newManifestCheck(c *cli.Console) *cobra.Command {
	var program string
	var opts p4.Options
	cmd := &cobra.Command{
		Use:   "check MANIFEST... [--program PROGRAM]",
		Short: "Check manifests against their programs",
		Long: `Check reports the first error in each manifest with its line: an unknown key or
word, a table without the keys of its purpose, a task without its registers. It
then compares the manifest with the program: all parts that the manifest names
must exist and be large enough. A note names tasks that send frames without returns:,
because p4lb cannot see that these frames are lost.

The program is --program, or the one that the manifest names (program:), or
mine.p4 beside mine.manifest.yaml. Without a program only the manifest is checked.`,
		Example: `  p4lb manifest check mine.manifest.yaml
  p4lb manifest check basic.yaml --program basic.p4`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if program != "" && len(args) > 1 {
				return cli.UsageError(cmd, "--program: want only one manifest")
			}
			for _, name := range args {
				if err := checkManifest(c, name, program, opts); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&program, "program", "", "`PROGRAM` that the manifest describes")
	cli.AddSourceFlags(cmd, &opts)
	return cmd
}

// checkManifest checks one manifest and prints a summary line.
func checkManifest(c *cli.Console, name, program string, opts p4.Options) error {
	text, err := c.ReadSource(name)
	if err != nil {
		return err
	}
	m, err := manifest.Decode(cli.DisplayName(name), text)
	if err != nil {
		return err
	}
	if program == "" {
		program = programBeside(name, m)
		if _, err := os.Stat(program); program != "" && errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: program: there is no file %s", cli.DisplayName(name), program)
		}
	}
	parts := fmt.Sprintf("%d registers, %d tables, %d tasks", len(m.Registers), len(m.Tables), len(m.Tasks))
	if program == "" {
		fmt.Fprintf(c.Out, "%s: %s, without a program\n", cli.DisplayName(name), parts)
		return nil
	}
	opts.Arch = string(m.Arch)
	for _, dir := range m.Includes {
		opts.IncludeDirs = append(opts.IncludeDirs, from(name, dir))
	}
	for _, macro := range slices.Sorted(maps.Keys(m.Defines)) {
		opts.Defines = append(opts.Defines, macro+"="+m.Defines[macro])
	}
	compiled, err := c.CheckProgram(program, opts)
	if err != nil {
		return err
	}
	if err := compiled.Describe(); err != nil {
		return c.Diagnose(err)
	}
	if err := manifest.CheckFile(cli.DisplayName(name), text, m, compiled.P4Info); err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "%s: %s, as in %s\n", cli.DisplayName(name), parts, program)
	for i, t := range m.Tasks {
		if t.Kind == manifest.SendFrame && t.Returns == "" {
			fmt.Fprintf(c.Out, "note: tasks[%d]: if its frames are probes, lost ones are not reported: name a register that changes when one comes back, as returns: REGISTER\n", i)
		}
	}
	return nil
}

// from resolves a path in a manifest relative to the manifest's folder.
func from(manifest, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(manifest), path)
}

// programBeside returns the program that a manifest names, or else the one with
// the same base name, or "" for none.
func programBeside(name string, m *manifest.Manifest) string {
	if m.Program != "" {
		return from(name, m.Program)
	}
	base := strings.TrimSuffix(name, filepath.Ext(name))
	program := strings.TrimSuffix(base, ".manifest") + ".p4"
	if info, err := os.Stat(program); err != nil || info.IsDir() {
		return ""
	}
	return program
}

func newManifestShow(c *cli.Console) *cobra.Command {
	var form cli.Format
	var params codegen.Params
	cmd := &cobra.Command{
		Use:   "show MANIFEST|SCHEME [-o FORMAT]",
		Short: "Show a manifest, or the manifest of a scheme",
		Long: `Show prints the parts of a manifest with their meanings: registers, tables,
headers, sessions, groups and tasks. -o json and -o yaml print the manifest itself,
and so convert between the two.

For a scheme, show prints the manifest of the program that p4lb gen writes.`,
		Example: `  p4lb manifest show mine.manifest.yaml
  p4lb manifest show qall-poly3
  p4lb manifest show drill --arch tna --role spine -o yaml`,
		Args: cli.WantArgs(1, 1, "one manifest or scheme"),
		RunE: func(_ *cobra.Command, args []string) error {
			m, err := findManifest(c, args[0], params)
			if err != nil {
				return err
			}
			switch form {
			case cli.JSON, cli.YAML:
				write := m.JSON
				if form == cli.YAML {
					write = m.YAML
				}
				text, err := write()
				if err == nil {
					_, err = c.Out.Write(text)
				}
				return err
			}
			return cli.Show(c.Out, form, manifestRows(m), nil)
		},
	}
	cli.AddArchFlag(cmd, &params.Arch, "architecture `ARCH` of the scheme's program: v1model, tna or t2na")
	cmd.Flags().StringVar(&params.Role, "role", "", "role of the scheme's switch: leaf, spine, tor, agg or core (default leaf)")
	cli.AddFormat(cmd, &form, cli.Table, cli.JSON, cli.YAML, cli.CSV)
	return cmd
}

// findManifest reads a manifest file, or if no such file exists, generates the
// manifest of a scheme.
func findManifest(c *cli.Console, name string, params codegen.Params) (*manifest.Manifest, error) {
	_, missing := os.Stat(name)
	if name == "-" || missing == nil {
		text, err := c.ReadSource(name)
		if err != nil {
			return nil, err
		}
		return manifest.Decode(cli.DisplayName(name), text)
	}
	library, err := cli.LibraryWith("")
	if err != nil {
		return nil, err
	}
	s, err := library.Find(name)
	if err != nil {
		return nil, err
	}
	p, err := s.Build(params)
	if err != nil {
		return nil, err
	}
	return &p.Manifest, nil
}

// manifestRows returns a row per part of a manifest.
func manifestRows(m *manifest.Manifest) cli.Grid {
	rows := cli.Grid{{"PART", "NAME", "WHAT", "DETAIL", "MEANING"}}
	add := func(part, name, what, detail, meaning string) {
		rows = append(rows, []string{part, name, what, detail, meaning})
	}
	add("program", m.Scheme, string(m.Arch), strings.TrimSpace(m.Role+" "+count1(m.Paths, "path")), m.Title)
	for _, r := range m.Registers {
		if len(r.Fields) == 0 {
			add("register", r.Name, contentText(r.Content), fmt.Sprintf("by %s, %s", cmp.Or(string(r.Index), "cell"), count1(r.Size, "cell")), r.Meaning)
		}
		for _, f := range r.Fields {
			detail := fmt.Sprintf("by %s, bits %d to %d", cmp.Or(string(r.Index), "cell"), f.Shift, f.Shift+f.Width-1)
			add("register", r.Name+"."+f.Label, contentText(f.Content), detail, f.Meaning)
		}
	}
	for _, t := range m.Tables {
		keys := lists.Map(t.Keys, func(k manifest.Key) string { return cmp.Or(string(k.Carries), k.Name) })
		add("table", t.Name, cmp.Or(string(t.Purpose), "none"), strings.Join(keys, ", "), t.Meaning)
	}
	for _, h := range m.Headers {
		add("header", h.Name, cmp.Or(string(h.Kind), "other"), fmt.Sprintf("%d bytes", h.Bytes()), h.Meaning)
	}
	for _, s := range m.CloneSessions {
		add("clone session", strconv.Itoa(s.Session), cmp.Or(string(s.Kind), "other"), portText(s.Port, s.PerPort), s.Meaning)
	}
	for _, g := range m.MulticastGroups {
		add("multicast group", strconv.Itoa(g.Group), string(g.Members), portText(0, g.PerPort), g.Meaning)
	}
	for _, v := range m.VirtualPorts {
		add("virtual port", strconv.Itoa(v.Port), string(v.Kind), "", v.Meaning)
	}
	for _, t := range m.Tasks {
		detail := ""
		if t.Period > 0 {
			text, _ := t.Period.MarshalText() // never fails
			detail = "every " + string(text)
		}
		add("task", string(t.Kind), cmp.Or(t.Header, strings.Join(t.Filters, ", ")), detail, t.Meaning)
	}
	return rows
}

// contentText describes the content of register cells in a few words, such as
// queue in packets.
func contentText(c manifest.Content) string {
	text := cmp.Or(string(c.Kind), string(manifest.Opaque))
	if c.Event != "" {
		text += " " + string(c.Event)
	}
	if c.Of != "" {
		text += " of " + c.Of
	}
	if c.Unit != "" {
		text += " in " + string(c.Unit)
	}
	return text
}

func count1(n int, what string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func portText(port int, each bool) string {
	switch {
	case each:
		return "for each port"
	case port == 0:
		return ""
	}
	return fmt.Sprintf("port %d", port)
}

func newManifestSchema(c *cli.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of manifests",
		Long: `Schema prints the JSON Schema of manifests, for completion and checks in editors.
Put "# yaml-language-server: $schema=FILE" at the top of a YAML file.`,
		Example: `  p4lb manifest schema > manifest.schema.json`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := c.Out.Write(manifest.Schema())
			return err
		},
	}
}
