package play

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/examples"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/own"
	"github.com/p4lb/p4lb/templates"
)

// An OwnScheme is an example of a user's scheme with all its files.
type OwnScheme struct {
	Name  string `json:"name"`
	About string `json:"about"`
	Files Files  `json:"files"`
}

// ownSchemes lists the example schemes, and the folder that p4lb new creates.
func ownSchemes() []OwnScheme {
	var list []OwnScheme
	if files, err := own.Scaffold("mine"); err == nil {
		s := OwnScheme{Name: "new", About: "A small working load balancer to change, as p4lb new makes it."}
		for _, f := range files {
			s.Files = append(s.Files, NamedText{f.Name, string(f.Text)})
		}
		list = append(list, s)
	}
	folders, _ := fs.ReadDir(examples.FS, "own") // embedded files cannot fail
	for _, dir := range folders {
		s := OwnScheme{Name: dir.Name()}
		names, _ := fs.Glob(examples.FS, "own/"+dir.Name()+"/*") // the pattern is valid
		for _, name := range names {
			text, err := examples.FS.ReadFile(name)
			if err != nil {
				continue
			}
			s.Files = append(s.Files, NamedText{path.Base(name), string(text)})
			if path.Base(name) == "experiment.yaml" {
				s.About = about(string(text))
			}
		}
		list = append(list, s)
	}
	return list
}

// A blockRequest names a block of the catalogue.
type blockRequest struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// A blockStart is a copy of a block for editing, with a row that uses it.
type blockStart struct {
	Files  Files  `json:"files"`
	Scheme string `json:"scheme"` // the scheme with the copy
	Base   string `json:"base"`   // the same scheme with the original block
	About  string `json:"about"`
}

// copyBlock copies a block of the catalogue to the user's folder. The copy has its
// own name, and refers to the parameters that the catalogue declares.
func copyBlock(_ context.Context, r blockRequest, _ Progress) (*blockStart, error) {
	list := codegen.Standard().Blocks()
	i := slices.IndexFunc(list, func(b codegen.Block) bool { return b.Kind == r.Kind && b.Name == r.Name })
	if i < 0 {
		return nil, fmt.Errorf("there is no block %s %s", r.Kind, r.Name)
	}
	var first error
	rows := codegen.Standard().Rows()
	for _, name := range []string{"ecmp+" + r.Name, "packet-" + r.Name + "-least"} {
		if row, err := codegen.Parse(name); err == nil {
			rows = append(rows, row) // some guards and signals have no row in the catalogue
		}
	}
	for _, row := range rows {
		if !has(row, list[i]) {
			continue
		}
		out := copyInto(list[i], row)
		l, err := out.Files.withBlocks()
		if err == nil {
			_, err = l.Find(out.Scheme)
		}
		if err == nil {
			return out, nil
		}
		first = cmp.Or(first, err)
	}
	return nil, cmp.Or(first, fmt.Errorf("no scheme of the catalogue uses the block %s %s", r.Kind, r.Name))
}

// has reports whether a row uses a block.
func has(r codegen.Row, b codegen.Block) bool {
	return b.Name == cmp.Or(map[string]string{"granularity": r.Granularity, "signal": r.Signal, "choice": r.Choice, "guard": r.Guard}[b.Kind], "none")
}

// copyInto copies a block, and a row with the copy instead of the original.
func copyInto(r codegen.Block, row codegen.Row) *blockStart {
	mine := "my-" + r.Name
	out := &blockStart{Base: row.Name, About: "A copy of the block " + r.Kind + " " + r.Name + ": " + r.About + "."}
	for _, folder := range []string{"v1model", "tna"} {
		text, err := templates.FS.ReadFile(folder + "/" + r.Kind + "-" + r.Name + ".tmpl")
		if err != nil {
			continue // the block has no version for Tofino
		}
		out.Files = append(out.Files, NamedText{blocksFolder + "/" + folder + "/" + r.Kind + "-" + mine + ".tmpl", renamed(string(text), r.Name, mine, folder == "v1model")})
	}
	named := map[string]string{"granularity": row.Granularity, "signal": row.Signal, "choice": row.Choice, "guard": row.Guard}
	named[r.Kind] = mine
	base, _, _ := strings.Cut(row.Name, "+")
	var b strings.Builder
	name := "my-" + base
	fmt.Fprintf(&b, "rows:\n- name: %s\n  title: %s with a changed %s\n  source: an example\n", name, base, r.Kind)
	for _, kind := range []string{"granularity", "signal", "choice"} {
		if v := named[kind]; v != "none" {
			fmt.Fprintf(&b, "  %s: %s\n", kind, v)
		}
	}
	if len(row.Defaults) > 0 {
		b.WriteString("  defaults: {")
		for i, k := range sortedKeys(row.Defaults) {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s: %s", k, scalar(row.Defaults[k]))
		}
		b.WriteString("}\n")
	}
	out.Scheme = name
	if g := named["guard"]; g != "none" {
		out.Scheme += "+" + g
	}
	out.Files = append(out.Files, NamedText{blocksFolder + "/rows.yaml", b.String()})
	return out
}

// renamed returns the text of a block under another name. It replaces declarations
// of parameters by references. The software version refers to the block by name.
func renamed(text, from, to string, software bool) string {
	var b strings.Builder
	head, parameters := 0, false
	for line := range strings.Lines(text) {
		key, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case strings.TrimSpace(line) == "---":
			head++
		case head != 1:
		case line == "name: "+from+"\n":
			line = "name: " + to + "\n"
			if software {
				line += "like: " + from + "\n"
			}
		case line[0] != ' ' && line[0] != '-' && line[0] != '#':
			parameters = key == "parameters"
		case parameters && !strings.HasPrefix(line, "- name:"):
			continue
		}
		b.WriteString(line)
	}
	return b.String()
}

// An adoptRequest is a request to turn an edited program of the catalogue into a
// user's scheme.
type adoptRequest struct {
	SchemeRequest
	Text     string `json:"text"`     // the edited program
	Manifest string `json:"manifest"` // the edited manifest, or "" if unchanged
}

// An adoptedScheme holds the files of a scheme, with a program for each role.
type adoptedScheme struct {
	Files Files  `json:"files"`
	YAML  string `json:"yaml"` // experiment that compares it with the original
}

// adopted is the name of the scheme.
const adopted = "mine"

func adopt(_ context.Context, r adoptRequest, _ Progress) (*adoptedScheme, error) {
	l, err := r.Files.withBlocks()
	if err != nil {
		return nil, err
	}
	s, err := l.Find(r.Name)
	if err != nil {
		return nil, err
	}
	role := cmp.Or(r.Role, "leaf")
	roles, topology := []string{"leaf", "spine"}, quickTopology
	if role != "leaf" && role != "spine" {
		roles, topology = []string{"tor", "agg", "core"}, fatTree
	}
	p := r.params()
	p.Provenance, p.Role, p.MaxPort = nil, "", 64
	files, err := own.FromCatalogue(s, adopted, p, roles...)
	if err != nil {
		return nil, err
	}
	out := &adoptedScheme{YAML: strings.Replace(experimentFor(topology, ".", s.Name(), "ecmp"), "name: playground", "name: "+adopted, 1)}
	for _, f := range files {
		text := string(f.Text)
		switch f.Name {
		case adopted + "-" + role + ".p4":
			text = r.Text
		case adopted + "-" + role + ".manifest.json":
			text = cmp.Or(r.Manifest, text)
		case "experiment.yaml":
			continue
		}
		out.Files = append(out.Files, NamedText{f.Name, text})
	}
	return out, nil
}

// A manifestRequest is a request for a first manifest of a program.
type manifestRequest struct {
	Source
}

// firstManifest guesses a manifest, as p4lb manifest init does.
func firstManifest(_ context.Context, r manifestRequest, _ Progress) (*NamedText, error) {
	files, err := r.all().folder()
	if err != nil {
		return nil, err
	}
	text, err := own.Init(own.InitRequest{Files: files, Program: "/" + r.Name, Shown: r.Name})
	if err != nil {
		return nil, fileErrors(err)
	}
	return &NamedText{strings.TrimSuffix(r.Name, ".p4") + ".manifest.yaml", string(text)}, nil
}

// compileScheme compiles the user's scheme in the files and checks its manifests.
func compileScheme(files Files) error {
	l, err := files.library()
	if err != nil {
		return err
	}
	s, err := l.Find(".")
	if err != nil {
		return fileErrors(err)
	}
	mine, ok := s.(*own.Scheme)
	if !ok {
		return fmt.Errorf("there is no scheme in the files")
	}
	for _, role := range mine.Roles() {
		if _, err := scheme.Make(s, codegen.Params{Role: role}); err != nil {
			return fileErrors(err)
		}
	}
	return nil
}

// isManifest reports whether a file is a manifest by its name.
func isManifest(name string) bool {
	return strings.HasSuffix(name, "manifest.yaml") || strings.HasSuffix(name, "manifest.yml") || strings.HasSuffix(name, "manifest.json")
}

// A compareRequest is a request for an experiment that compares schemes.
type compareRequest struct {
	Schemes []string `json:"schemes"`
	Blocks  bool     `json:"blocks"` // the schemes use the user's blocks
}

// compare writes a small experiment that compares schemes.
func compare(_ context.Context, r compareRequest, _ Progress) (*composed, error) {
	text := experimentFor(quickTopology, r.Schemes...)
	if r.Blocks {
		text = strings.Replace(text, "schemes:", "blocks: "+blocksFolder+"\nschemes:", 1)
	}
	return &composed{YAML: text, Command: runCommand}, nil
}

// experimentFor compares schemes in a small network.
func experimentFor(topology string, schemes ...string) string {
	var names []string
	for _, s := range schemes {
		if s = scalar(s); !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	text := strings.Replace(quickExperiment, quickTopology, topology, 1)
	return strings.Replace(text, "[qall-poly3, ecmp]", "["+strings.Join(names, ", ")+"]", 1)
}
