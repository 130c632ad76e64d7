// Package own makes a user's P4 program a scheme that can be used like a scheme
// of the catalogue. Its name is a path: of a folder, of a P4_16 program with a
// manifest in the same folder, or of the manifest.
//
//	mine/
//	    mine.p4              the program, for all roles
//	    mine.manifest.yaml   its meaning, see docs/manifest.md
//	    mine.stf             its packet tests
//	    experiment.yaml      an experiment for p4lb lab run
//
// Alternatively a folder has one program per role, each with a manifest that
// names the role. A manifest may name a program elsewhere.
//
// Complete adds missing parts of a manifest from the program's P4Info. Init
// writes a first manifest for a program, Scaffold a folder with an example.
package own

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// Source returns a source of schemes by path, relative to a folder.
func Source(dir string) scheme.Source { return place{machine{}, dir}.source }

// SourceIn returns a source of schemes by path in a file system.
func SourceIn(files fs.FS) scheme.Source { return place{files, "/"}.source }

func (p place) source(name string) (scheme.Scheme, error) {
	if !IsPath(name) {
		return nil, p.folderOf(name)
	}
	return p.open(name)
}

// folderOf returns an error for an unknown scheme if a folder has its name.
func (p place) folderOf(name string) error {
	if _, err := codegen.Parse(name); err == nil {
		return nil
	}
	if _, err := p.inFolder(name); err == nil {
		return &misnamed{name}
	}
	return nil
}

// misnamed is the error for a folder that is named without a slash.
type misnamed struct{ name string }

func (e *misnamed) Error() string {
	return fmt.Sprintf("there is no scheme %q, but there is a folder", e.name)
}

// Hint returns the correct name of the folder.
func (e *misnamed) Hint() string { return fmt.Sprintf("./%s is the scheme in the folder", e.name) }

// IsPath reports whether the name of a scheme is a path: it contains a slash,
// is "." or "..", or has an extension of a scheme's files.
func IsPath(name string) bool {
	return strings.ContainsRune(name, '/') || name == "." || name == ".." || slices.Contains(endings, filepath.Ext(name))
}

// endings are the extensions of files that stand for a scheme.
var endings = []string{".p4", ".yaml", ".yml", ".json"}

// manifestEnds are the suffixes of manifests, after the name of the program.
var manifestEnds = []string{".manifest.yaml", ".manifest.yml", ".manifest.json"}

// A Scheme is a load balancer written by a user.
type Scheme struct {
	path    string // as the user wrote it
	name    string
	sources []*source
}

var _ scheme.Scheme = (*Scheme)(nil)

// A source is a program with its manifest.
type source struct {
	files        fs.FS  // see place
	manifestFile string // name in messages
	manifestText []byte
	folder       string // folder of the manifest
	manifest     *manifest.Manifest
	program      string // its file
	shown        string // its name in messages

	mu    sync.Mutex
	built map[string]*scheme.Program // by settings
}

// Open reads the manifests of a scheme. Build compiles its programs.
func Open(dir, path string) (*Scheme, error) { return place{machine{}, dir}.open(path) }

func (p place) open(path string) (*Scheme, error) {
	files, err := p.manifests(path)
	if err != nil {
		return nil, err
	}
	s := &Scheme{path: path}
	for _, f := range files {
		one, err := p.readSource(f)
		if err != nil {
			return nil, err
		}
		if err := s.add(one); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// add adds the program for a role.
func (s *Scheme) add(one *source) error {
	m := one.manifest
	s.name = cmp.Or(s.name, m.Scheme)
	first := one
	if len(s.sources) > 0 {
		first = s.sources[0]
	}
	switch {
	case m.Scheme != s.name:
		return fmt.Errorf("%s: the scheme is %s, but in %s it is %s: want one name", one.manifestFile, m.Scheme, first.manifestFile, s.name)
	case m.Arch != first.manifest.Arch:
		return fmt.Errorf("%s: the program is for %s, but %s is for %s: want one architecture", one.manifestFile, m.Arch, first.manifestFile, first.manifest.Arch)
	}
	for _, other := range s.sources {
		if other.manifest.Role == m.Role {
			roles := "the role " + m.Role
			if m.Role == "" {
				roles = "all roles"
			}
			return fmt.Errorf("%s: %s is also for %s: want one program per role", one.manifestFile, other.manifestFile, roles)
		}
	}
	s.sources = append(s.sources, one)
	return nil
}

// manifests returns the manifests that a path stands for, named as the user
// would name them.
func (p place) manifests(path string) ([]string, error) {
	info, err := p.stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("no scheme %s: no such file or folder", path)
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", path, bare(err))
	case info.IsDir():
		return p.inFolder(path)
	case filepath.Ext(path) != ".p4":
		return []string{path}, nil
	}
	for _, f := range besides(path) {
		if _, err := p.stat(f); err == nil {
			return []string{f}, nil
		}
	}
	return nil, &missing{path, besides(path)[0]}
}

// HasManifest reports whether a file is a manifest, or a program with a
// manifest.
func HasManifest(file string) bool {
	list := []string{file}
	if filepath.Ext(file) == ".p4" {
		list = besides(file)
	}
	return slices.ContainsFunc(list, func(f string) bool {
		_, err := os.Stat(f)
		return err == nil && slices.ContainsFunc(manifestEnds, func(end string) bool { return strings.HasSuffix(f, end) })
	})
}

// besides returns the possible names of a program's manifest.
func besides(program string) []string {
	return lists.Map(manifestEnds, func(end string) string { return strings.TrimSuffix(program, ".p4") + end })
}

func (p place) inFolder(path string) ([]string, error) {
	entries, err := fs.ReadDir(p.files, p.name(path))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, bare(err))
	}
	var list, programs []string
	for _, e := range entries {
		file := filepath.Join(path, e.Name())
		isManifest := slices.ContainsFunc(manifestEnds, func(end string) bool {
			return strings.HasSuffix(e.Name(), end) || e.Name() == end[1:]
		})
		switch {
		case e.IsDir():
		case isManifest:
			list = append(list, file)
		case filepath.Ext(file) == ".p4":
			programs = append(programs, file)
		}
	}
	switch {
	case len(list) > 0:
		return list, nil
	case len(programs) > 0:
		return nil, &missing{programs[0], besides(programs[0])[0]}
	}
	return nil, fmt.Errorf("%s is not a scheme: want a program NAME.p4 with a manifest NAME.manifest.yaml", path)
}

// missing is the error for a program without a manifest.
type missing struct{ program, manifest string }

func (e *missing) Error() string {
	return fmt.Sprintf("%s has no manifest: want %s", e.program, e.manifest)
}

// Hint describes how to create one.
func (e *missing) Hint() string {
	return fmt.Sprintf("create one with p4lb manifest init %s -o %s", e.program, e.manifest)
}

// within returns the path of a file named relative to a folder.
func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// bare removes the operation and the path from an error, for a message that
// contains the path.
func bare(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// readSource reads a manifest and finds its program.
func (p place) readSource(file string) (*source, error) {
	text, err := fs.ReadFile(p.files, p.name(file))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, bare(err))
	}
	m, err := manifest.Decode(file, text)
	if err != nil {
		return nil, err
	}
	s := &source{files: p.files, manifestFile: file, manifestText: text, folder: filepath.Dir(within(p.dir, file)), manifest: m, built: map[string]*scheme.Program{}}
	s.shown, err = p.programOf(file, m)
	if err != nil {
		return nil, err
	}
	s.program = within(p.dir, s.shown)
	return s, nil
}

// programOf returns the program that a manifest names, or the one in its
// folder.
func (p place) programOf(file string, m *manifest.Manifest) (string, error) {
	if m.Program != "" {
		program := m.Program
		if !filepath.IsAbs(program) {
			program = filepath.Join(filepath.Dir(file), program)
		}
		if _, err := p.stat(program); err != nil {
			return "", fmt.Errorf("%s: program: %s: %w", file, program, bare(err))
		}
		return program, nil
	}
	for _, end := range manifestEnds {
		if base, ok := strings.CutSuffix(file, end); ok {
			if _, err := p.stat(base + ".p4"); err == nil {
				return base + ".p4", nil
			}
		}
	}
	list, err := fs.Glob(p.files, path.Join(p.name(filepath.Dir(file)), "*.p4"))
	if err == nil && len(list) == 1 {
		return filepath.Join(filepath.Dir(file), path.Base(list[0])), nil
	}
	return "", fmt.Errorf("%s: there are %d programs in its folder: name one in the manifest, as in program: mine.p4", file, len(list))
}

// Name returns the name in the manifests.
func (s *Scheme) Name() string { return s.name }

// Archs returns the architecture of the programs.
func (s *Scheme) Archs() []string { return []string{string(s.sources[0].manifest.Arch)} }

// Parameters returns the macros in the manifests, whose values can be changed.
func (s *Scheme) Parameters(string) ([]codegen.Param, error) {
	var list []codegen.Param
	for _, one := range s.sources {
		for _, name := range one.defines() {
			known := func(p codegen.Param) bool { return p.Name == name }
			if !slices.ContainsFunc(list, known) {
				list = append(list, codegen.Param{
					Name: name, Unit: codegen.Number, Default: one.manifest.Defines[name], Meaning: "a macro of " + one.shown,
				})
			}
		}
	}
	return list, nil
}

// Roles returns the roles that have a program; "" stands for all.
func (s *Scheme) Roles() []string {
	return lists.Map(s.sources, func(one *source) string { return one.manifest.Role })
}

// Native returns an error: there is no model of a program that p4lb has not
// generated.
func (s *Scheme) Native() error {
	return fmt.Errorf("%s is a user program: the native engine supports only schemes of the catalogue: use the engine p4", s.path)
}

// Folders returns the folders with files that the programs include, besides the
// compiler's own folders.
func (s *Scheme) Folders() []string {
	var list []string
	for _, one := range s.sources {
		list = append(append(list, filepath.Dir(one.program)), one.includes()...)
	}
	return list
}

// Tests are the packet tests of a program.
type Tests struct {
	Role  string // role of the program
	Files []string
}

// Tests returns the packet tests in the folders of a scheme's manifests. If the
// scheme has several programs, the names of the tests begin with the name of
// their program.
func (s *Scheme) Tests(dir string) ([]Tests, error) {
	var list []Tests
	for _, one := range s.sources {
		files, err := filepath.Glob(filepath.Join(filepath.Dir(within(dir, one.manifestFile)), "*.stf"))
		if err != nil {
			return nil, fmt.Errorf("listing the tests of %s: %w", s.path, err)
		}
		base := strings.TrimSuffix(filepath.Base(one.program), ".p4")
		files = slices.DeleteFunc(files, func(f string) bool { return len(s.sources) > 1 && !strings.HasPrefix(filepath.Base(f), base) })
		if len(files) > 0 {
			list = append(list, Tests{one.manifest.Role, files})
		}
	}
	return list, nil
}
