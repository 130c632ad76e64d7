package play

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/p4/format"
	"github.com/p4lb/p4lb/internal/p4/lint"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/provenance"
	"github.com/p4lb/p4lb/internal/scheme"
)

// A SchemeRequest names a program of the catalogue with its settings, as p4lb gen does.
type SchemeRequest struct {
	Name      string            `json:"name"`
	Arch      string            `json:"arch"`      // "" means v1model
	Role      string            `json:"role"`      // "" means leaf
	Paths     int               `json:"paths"`     // 0 means 4
	StatePath string            `json:"statePath"` // "" means recirc
	Set       map[string]string `json:"set"`
	// Compose names the blocks of a composition. If set, Name is ignored.
	Compose *Composition `json:"compose"`
	Files   Files        `json:"files"`
}

// A Composition is a scheme composed of freely chosen blocks.
type Composition struct {
	Granularity string `json:"granularity"`
	Signal      string `json:"signal"`
	Choice      string `json:"choice"`
	Guard       string `json:"guard"`
}

// find returns the requested scheme.
func (r *SchemeRequest) find() (scheme.Scheme, error) {
	l, err := r.Files.withBlocks()
	if err != nil {
		return nil, err
	}
	if c := r.Compose; c != nil {
		return l.Compose(c.Granularity, c.Signal, c.Choice, c.Guard)
	}
	return l.Find(r.Name)
}

func (r *SchemeRequest) params() codegen.Params {
	// The flags are in the order of p4lb gen, because generated programs contain
	// the command.
	var flags []string
	ports := ""
	if r.Paths != 0 {
		ports = strconv.Itoa(r.Paths)
	}
	for _, f := range [][2]string{{"--arch", r.Arch}, {"--role", r.Role}, {"--ports", ports}, {"--state-path", r.StatePath}} {
		if f[1] != "" {
			flags = append(flags, f[:]...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Set)) {
		flags = append(flags, "--set", name+"="+r.Set[name])
	}
	return codegen.Params{
		Arch: r.Arch, Role: r.Role, Ports: r.Paths, Set: r.Set, StatePath: r.StatePath,
		Provenance: &codegen.Provenance{Version: provenance.This().String(), Flags: flags},
	}
}

// A schemeDescription describes the parameters of a scheme.
type schemeDescription struct {
	Name       string          `json:"name"`
	Title      string          `json:"title"`
	Blocks     Composition     `json:"blocks"`
	Archs      []string        `json:"archs"`
	Parameters []codegen.Param `json:"parameters"`
}

func describeScheme(_ context.Context, r SchemeRequest, _ Progress) (*schemeDescription, error) {
	s, err := r.find()
	if err != nil {
		return nil, err
	}
	list, err := s.Parameters(r.Arch)
	if err != nil {
		return nil, err
	}
	d := &schemeDescription{Name: s.Name(), Archs: s.Archs(), Parameters: append([]codegen.Param{}, list...)}
	if row, ok := scheme.RowOf(s); ok {
		d.Title = row.Title + ". " + row.Source
		d.Blocks = Composition{row.Granularity, cmp.Or(row.Signal, "none"), row.Choice, cmp.Or(row.Guard, "none")}
	}
	return d, nil
}

// A Generated holds the files that p4lb gen would write.
type Generated struct {
	Files    []NamedText `json:"files"` // the program first
	Manifest string      `json:"manifest"`
	Command  string      `json:"command"`
	// Failed is the reason why the program does not compile, or "".
	Failed string `json:"failed,omitempty"`
}

// A NamedText is a file.
type NamedText struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

func generate(_ context.Context, r SchemeRequest, _ Progress) (*Generated, error) {
	s, err := r.find()
	if err != nil {
		return nil, err
	}
	p, err := scheme.Make(s, r.params())
	if err != nil {
		return r.failed(s, err)
	}
	files, err := scheme.Files(p)
	if err != nil {
		return nil, err
	}
	g := &Generated{Command: p.Manifest.Provenance.Command}
	for _, f := range files {
		g.Files = append(g.Files, NamedText{f.Name, string(f.Data)})
		if strings.HasSuffix(f.Name, ".manifest.json") {
			g.Manifest = string(f.Data)
		}
	}
	return g, nil
}

// failed returns the text of a program that does not compile because of the user's
// blocks.
func (r *SchemeRequest) failed(s scheme.Scheme, err error) (*Generated, error) {
	row, ok := scheme.RowOf(s)
	if !ok || len(row.Outside()) == 0 {
		return nil, err
	}
	made, again := codegen.Generate(row, r.params())
	if again != nil {
		return nil, fileErrors(err)
	}
	return &Generated{Files: []NamedText{{made.Name + ".p4", made.P4}}, Failed: err.Error()}, nil
}

// A Source is the program in the editor.
type Source struct {
	Name string `json:"name"` // its name in messages
	Text string `json:"text"`
	// Files can be included, and contain the manifests.
	Files Files `json:"files"`
}

// all returns the files, including the text in the editor.
func (s *Source) all() Files {
	list := Files{{s.Name, s.Text}}
	for _, f := range s.Files {
		if f.Name != s.Name {
			list = append(list, f)
		}
	}
	return list
}

// maxSource bounds a program in bytes.
const maxSource = 1 << 20

func (s *Source) checkSize() error {
	if s.Name == "" {
		s.Name = "program.p4"
	}
	if len(s.Text) > maxSource {
		return fmt.Errorf("%s: %d bytes: want at most %d", s.Name, len(s.Text), maxSource)
	}
	return nil
}

// A Checked holds the compiler's messages.
type Checked struct {
	Arch     string    `json:"arch"`
	Messages []Message `json:"messages"`
	// Output is the output of p4lb compile.
	Output string `json:"output"`
	Tables int    `json:"tables"`
}

// A Message is a compiler message. Line and Col count from 1; Line is 0 for a
// message about the whole program or another file.
type Message struct {
	File    string `json:"file,omitempty"` // file of the message, if it is not the source
	Line    int    `json:"line"`
	Col     int    `json:"col"`
	Text    string `json:"text"`
	Warning bool   `json:"warning,omitempty"`
}

func check(_ context.Context, s Source, _ Progress) (*Checked, error) {
	if err := s.checkSize(); err != nil {
		return nil, err
	}
	out := &Checked{Messages: []Message{}}
	files, err := s.all().folder()
	if err != nil {
		return nil, err
	}
	if isManifest(s.Name) {
		return out.scheme(&s), nil
	}
	p, err := p4.Check(files, s.Name, p4.Options{})
	if err == nil {
		out.Arch = p.Arch
		if p.Main() != "" {
			err = compileAll(p)
		}
		out.add(s.Name, p.Warnings)
		if p.Config != nil {
			for _, pipeline := range p.Config.Pipelines {
				out.Tables += len(pipeline.Tables)
			}
		}
	}
	var list syntax.Errors
	switch {
	case errors.As(err, &list):
		out.add(s.Name, list)
		return out, nil
	case err != nil:
		out.Messages = append(out.Messages, Message{Text: err.Error()})
		return out, nil
	case p.Arch == "tna":
		out.add(s.Name, lint.Check(p.File, p.Info, lint.Tofino1))
	case p.Arch == "t2na":
		out.add(s.Name, lint.Check(p.File, p.Info, lint.Tofino2))
	}
	if p.Main() != "" && slices.ContainsFunc(s.Files, func(f NamedText) bool { return isManifest(f.Name) }) {
		out.scheme(&s)
	}
	return out, nil
}

// scheme adds the errors of the user's scheme.
func (c *Checked) scheme(s *Source) *Checked {
	err := compileScheme(s.all())
	if e, ok := errors.AsType[*Error](err); ok && len(e.Messages) > 0 {
		for _, m := range e.Messages {
			if m.File == s.Name {
				m.File = ""
			}
			c.Messages = append(c.Messages, m)
		}
	} else if err != nil {
		c.Messages = append(c.Messages, Message{Text: err.Error()})
	}
	return c
}

// compileAll compiles a checked program as p4lb compile does, and loads it.
func compileAll(p *p4.Program) error {
	if err := p.WantArch(); err != nil {
		return err
	}
	if err := p.Lower(); err != nil {
		return err
	}
	if _, err := dataplane.New(p.Config, dataplane.Options{}); err != nil && !errors.Is(err, dataplane.ErrUnknownPrimitive) {
		return fmt.Errorf("not supported: %w", err)
	}
	return p.Describe()
}

// add adds compiler messages.
func (c *Checked) add(name string, list syntax.Errors) {
	for _, e := range list {
		c.Messages = append(c.Messages, messageOf(name, e))
	}
	var b strings.Builder
	_ = list.Print(&b) // a strings.Builder never fails
	c.Output += b.String()
}

func messageOf(name string, e *syntax.Error) Message {
	m := Message{Text: e.Msg, Warning: e.Warning}
	switch {
	case !e.Pos.IsKnown():
	case e.Pos.File() == name:
		m.Line, m.Col = int(e.Pos.Line()), int(e.Pos.Col())
	default:
		m.File, m.Line, m.Col = e.Pos.File(), int(e.Pos.Line()), int(e.Pos.Col())
	}
	return m
}

// A formatted is the result of formatting a program.
type formatted struct {
	Text     string    `json:"text"`
	Messages []Message `json:"messages"` // why the text was not changed
}

func formatProgram(_ context.Context, s Source, _ Progress) (*formatted, error) {
	if err := s.checkSize(); err != nil {
		return nil, err
	}
	text, err := format.Format([]byte(s.Text), s.Name)
	var list syntax.Errors
	if errors.As(err, &list) {
		out := &Checked{}
		out.add(s.Name, list)
		return &formatted{s.Text, out.Messages}, nil
	}
	if err != nil {
		return nil, err
	}
	return &formatted{Text: string(text), Messages: []Message{}}, nil
}
