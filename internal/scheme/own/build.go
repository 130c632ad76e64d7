package own

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// Build compiles the program for a role and completes its manifest.
func (s *Scheme) Build(p codegen.Params) (*scheme.Program, error) {
	one := s.sourceOf(p.Role)
	switch {
	case one == nil:
		roles := lists.Map(s.sources, func(one *source) string { return one.manifest.Role })
		return nil, fmt.Errorf("%s has no program for the role %s: want %s", s.path, p.Role, strings.Join(roles, " and "))
	case p.Arch != "" && p.Arch != string(one.manifest.Arch):
		return nil, fmt.Errorf("%s is a program for %s, not for %s", s.path, one.manifest.Arch, p.Arch)
	case p.IPv6:
		return nil, fmt.Errorf("%s is a user program: it forwards IPv6 if its own tables do: leave out ipv6", s.path)
	case p.Coeffs != nil:
		return nil, fmt.Errorf("%s is a user program: only generated schemes use a fitted polynomial", s.path)
	}
	known, _ := s.Parameters("")
	for _, name := range slices.Sorted(maps.Keys(p.Set)) {
		if !slices.ContainsFunc(known, func(k codegen.Param) bool { return k.Name == name }) {
			return nil, fmt.Errorf("%s has no parameter %s: want a macro that its manifest defines", s.path, name)
		}
	}
	return one.build(s.name, p.Set, p.Provenance)
}

// sourceOf returns the program for a role, or the program for all roles, or
// nil.
func (s *Scheme) sourceOf(role string) *source {
	for _, want := range []string{role, ""} {
		for _, one := range s.sources {
			if one.manifest.Role == want {
				return one
			}
		}
	}
	if role == "" {
		return s.sources[0]
	}
	return nil
}

// defines returns the names of the macros in the manifest.
func (s *source) defines() []string { return slices.Sorted(maps.Keys(s.manifest.Defines)) }

// build compiles the program, once per combination of settings.
func (s *source) build(name string, set map[string]string, made *codegen.Provenance) (*scheme.Program, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var defines []string
	m := *s.manifest
	m.Parameters = slices.Clone(m.Parameters)
	for _, macro := range s.defines() {
		value, ok := set[macro]
		if !ok {
			value = m.Defines[macro]
		}
		defines = append(defines, macro+"="+value)
		m.Parameters = append(m.Parameters, manifest.Parameter{Name: macro, Text: value})
	}
	if made != nil {
		m.Provenance = manifest.MadeBy(made.Version, "gen", append([]string{"--scheme", name}, made.Flags...))
	}
	key := fmt.Sprintf("%q %v", defines, m.Provenance)
	if p := s.built[key]; p != nil {
		return p, nil
	}
	compiled, err := compile(s.files, s.program, s.shown, string(m.Arch), s.includes(), defines)
	if err != nil {
		return nil, err
	}
	if err := manifest.CheckFile(s.manifestFile, s.manifestText, &m, compiled.P4Info); err != nil {
		return nil, err
	}
	Complete(&m, compiled.P4Info)
	m.Program, m.Includes, m.Defines = "", nil, nil // the program has been compiled
	text, err := fs.ReadFile(s.files, rooted(s.program))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", s.shown, bare(err))
	}
	if m.Provenance != nil {
		m.Provenance.Licence = syntax.Licence(text)
	}
	// The manifest is part of the digest, because its entries change the
	// behavior.
	digest := scheme.Digest(slices.Concat(compiled.JSON(), s.manifestText))
	p := scheme.New(name, string(m.Arch), m, digest, func() ([]byte, *p4.Program, error) {
		return text, compiled, nil
	})
	s.built[key] = p
	return p, nil
}

// includes returns the include folders, which are relative to the manifest in
// the manifest.
func (s *source) includes() []string {
	return lists.Map(s.manifest.Includes, func(dir string) string { return within(s.folder, dir) })
}

// compile compiles a program with its include files, which may be anywhere.
func compile(files fs.FS, program, shown, arch string, includes, defines []string) (*p4.Program, error) {
	name := rooted(program)
	o := p4.Options{Arch: arch, Defines: defines}
	for _, dir := range includes {
		o.IncludeDirs = append(o.IncludeDirs, rooted(dir))
	}
	here, there := path.Dir("/"+name)+"/", filepath.Dir(shown)
	if here == "//" {
		here = "/"
	}
	o.Show = func(name string) string {
		if rest, ok := strings.CutPrefix("/"+name, here); ok {
			return filepath.Join(there, rest)
		}
		return "/" + name
	}
	compiled, err := p4.Compile(files, name, o)
	if err != nil {
		return nil, err
	}
	return compiled, nil
}

// A place is a folder relative to which schemes are named.
type place struct {
	files fs.FS // from its root
	dir   string
}

// name returns the name of a file in the file system.
func (p place) name(path string) string { return rooted(within(p.dir, path)) }

func (p place) stat(path string) (fs.FileInfo, error) { return fs.Stat(p.files, p.name(path)) }

// rooted returns the name of a file from the root of a file system. In machine it may
// be relative to the current folder.
func rooted(file string) string {
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}
	return cmp.Or(strings.TrimPrefix(filepath.ToSlash(file), "/"), ".")
}

// machine is the file system of this machine from its root.
type machine struct{}

// Open implements fs.FS.
func (machine) Open(name string) (fs.File, error) { return plain.OpenFile("/" + name) }

// ReadFile reads a source file.
func (machine) ReadFile(name string) ([]byte, error) { return plain.ReadFile("/" + name) }

// Stat implements fs.StatFS.
func (machine) Stat(name string) (fs.FileInfo, error) { return os.Stat("/" + name) }

// ReadDir implements fs.ReadDirFS.
func (machine) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir("/" + name) }
