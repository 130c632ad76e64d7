// Package own makes anybody's program a scheme, which stands wherever one of the
// catalogue does. Its name is a path: of a folder, of a P4_16 program with its
// manifest beside it, or of the manifest.
//
//	mine/
//	    mine.p4              the program, for all roles
//	    mine.manifest.yaml   what it means, see docs/manifest.md
//	    mine.stf             its packet tests
//	    experiment.yaml      what p4lb lab run runs
//
// A folder may have a program for each role instead, each with its manifest,
// which names the role. A manifest may name a program elsewhere.
//
// What a manifest leaves out, the program's P4Info says (Complete). Init writes
// a first manifest from a program, Scaffold a folder to begin with.
package own

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// Source finds schemes by paths, which are relative to a folder.
func Source(dir string) scheme.Source {
	return func(name string) (scheme.Scheme, error) {
		if !IsPath(name) {
			return nil, folderOf(dir, name)
		}
		return Open(dir, name)
	}
}

// folderOf is the error about a name that is no row of the catalogue, where a
// folder is called that.
func folderOf(dir, name string) error {
	if _, err := codegen.Parse(name); err == nil {
		return nil
	}
	if list, err := inFolder(dir, name); err == nil && len(list) > 0 {
		return &misnamed{name}
	}
	return nil
}

// misnamed is the error about a folder without a slash in its name.
type misnamed struct{ name string }

func (e *misnamed) Error() string { return fmt.Sprintf("there is no scheme %q, but a folder", e.name) }

// Hint says how a folder is named.
func (e *misnamed) Hint() string { return fmt.Sprintf("./%s is the scheme in the folder", e.name) }

// IsPath reports whether the name of a scheme is a path: it has a slash, or is
// "." or ends as the files do that a scheme is made of.
func IsPath(name string) bool {
	return strings.ContainsRune(name, '/') || name == "." || name == ".." || slices.Contains(endings, filepath.Ext(name))
}

// endings are what the names of files end in that stand for a scheme.
var endings = []string{".p4", ".yaml", ".yml", ".json"}

// manifestEnds are what the names of manifests end in, beside a program.
var manifestEnds = []string{".manifest.yaml", ".manifest.yml", ".manifest.json"}

// A Scheme is a load balancer that somebody has written.
type Scheme struct {
	path    string // as the user names it
	name    string
	sources []*source
}

var _ scheme.Scheme = (*Scheme)(nil)

// A source is a program with its manifest, as they were read.
type source struct {
	manifestFile string // as messages call it
	manifestText []byte
	folder       string // of the manifest
	manifest     *manifest.Manifest
	program      string // its file
	shown        string // and what messages call that

	mu    sync.Mutex
	built map[string]*scheme.Program // by what is set
}

// Open reads the manifests of a scheme; its programs are compiled by Build.
func Open(dir, path string) (*Scheme, error) {
	files, err := manifests(dir, path)
	if err != nil {
		return nil, err
	}
	s := &Scheme{path: path}
	for _, f := range files {
		one, err := readSource(dir, f)
		if err != nil {
			return nil, err
		}
		if err := s.add(one); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// add adds the program of a role.
func (s *Scheme) add(one *source) error {
	m := one.manifest
	s.name = cmp.Or(s.name, m.Scheme)
	first := one
	if len(s.sources) > 0 {
		first = s.sources[0]
	}
	switch {
	case m.Scheme != s.name:
		return fmt.Errorf("%s: the scheme is %s, and in %s %s: want one name", one.manifestFile, m.Scheme, first.manifestFile, s.name)
	case m.Arch != first.manifest.Arch:
		return fmt.Errorf("%s: the program is for %s, and that of %s for %s: want one architecture", one.manifestFile, m.Arch, first.manifestFile, first.manifest.Arch)
	}
	for _, other := range s.sources {
		if other.manifest.Role == m.Role {
			whom := "the role " + m.Role
			if m.Role == "" {
				whom = "all roles"
			}
			return fmt.Errorf("%s: %s is for %s as well: want one program for each role", one.manifestFile, other.manifestFile, whom)
		}
	}
	s.sources = append(s.sources, one)
	return nil
}

// manifests lists the files of the manifests that a path stands for, as the user
// would name them.
func manifests(dir, path string) ([]string, error) {
	info, err := os.Stat(within(dir, path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no scheme %s: no such file or folder", path)
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", path, bare(err))
	case info.IsDir():
		return inFolder(dir, path)
	case filepath.Ext(path) != ".p4":
		return []string{path}, nil
	}
	for _, f := range besides(path) {
		if _, err := os.Stat(within(dir, f)); err == nil {
			return []string{f}, nil
		}
	}
	return nil, &missing{path, besides(path)[0]}
}

// HasManifest reports whether a file is a manifest, or a program with one beside
// it.
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

// besides lists the names that the manifest of a program may have.
func besides(program string) []string {
	return lists.Map(manifestEnds, func(end string) string { return strings.TrimSuffix(program, ".p4") + end })
}

func inFolder(dir, path string) ([]string, error) {
	entries, err := os.ReadDir(within(dir, path))
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
	return nil, fmt.Errorf("%s is no scheme: it has neither a program NAME.p4 nor a manifest NAME.manifest.yaml", path)
}

// missing is the error about a program without a manifest.
type missing struct{ program, manifest string }

func (e *missing) Error() string {
	return fmt.Sprintf("%s has no manifest: there is no %s", e.program, e.manifest)
}

// Hint says how to get one.
func (e *missing) Hint() string {
	return fmt.Sprintf("p4lb manifest init %s -o %s writes a first one", e.program, e.manifest)
}

// within is where a file is that is named relative to a folder.
func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// bare strips the operation and path off an error, for a message that names the
// path itself.
func bare(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// readSource reads a manifest and finds its program.
func readSource(dir, file string) (*source, error) {
	text, err := plain.ReadFile(within(dir, file))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	m, err := manifest.Decode(file, text)
	if err != nil {
		return nil, err
	}
	s := &source{manifestFile: file, manifestText: text, folder: filepath.Dir(within(dir, file)), manifest: m, built: map[string]*scheme.Program{}}
	s.shown, err = programOf(dir, file, m)
	if err != nil {
		return nil, err
	}
	s.program = within(dir, s.shown)
	return s, nil
}

// programOf is the program of a manifest: the one that it names, or the one
// beside it.
func programOf(dir, file string, m *manifest.Manifest) (string, error) {
	if m.Program != "" {
		program := m.Program
		if !filepath.IsAbs(program) {
			program = filepath.Join(filepath.Dir(file), program)
		}
		if _, err := os.Stat(within(dir, program)); err != nil {
			return "", fmt.Errorf("%s: program: %s: %w", file, program, bare(err))
		}
		return program, nil
	}
	for _, end := range manifestEnds {
		if base, ok := strings.CutSuffix(file, end); ok {
			if _, err := os.Stat(within(dir, base+".p4")); err == nil {
				return base + ".p4", nil
			}
		}
	}
	list, err := filepath.Glob(within(dir, filepath.Join(filepath.Dir(file), "*.p4")))
	if err == nil && len(list) == 1 {
		return filepath.Join(filepath.Dir(file), filepath.Base(list[0])), nil
	}
	return "", fmt.Errorf("%s: there are %d programs beside it: name the one that it is about, as in program: mine.p4", file, len(list))
}

// Name is the scheme's, by its manifests.
func (s *Scheme) Name() string { return s.name }

// Archs has the one architecture that the programs are written for.
func (s *Scheme) Archs() []string { return []string{string(s.sources[0].manifest.Arch)} }

// Parameters are the macros that the manifests define, which can be defined
// otherwise.
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

// Native says that there is no model of a program that p4lb has not generated.
func (s *Scheme) Native() error {
	return fmt.Errorf("%s is a program of its own: the native engine knows the models of the catalogue alone, so it takes the engine p4", s.path)
}

// Folders are where the programs find what they include, besides the compiler's
// own folders.
func (s *Scheme) Folders() []string {
	var list []string
	for _, one := range s.sources {
		list = append(append(list, filepath.Dir(one.program)), one.includes()...)
	}
	return list
}

// Tests are the packet tests of a program.
type Tests struct {
	Role  string // that the program is for
	Files []string
}

// Tests lists the packet tests beside a scheme's manifests: where it has several
// programs, those of each begin with its name.
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
