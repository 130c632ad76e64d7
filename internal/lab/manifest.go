package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/provenance"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// record contains everything needed to repeat an experiment. It contains no time or location,
// so a repetition writes the same manifest.
type record struct {
	Format     string            `json:"format"`
	Name       string            `json:"name"`
	Versions   map[string]string `json:"versions"`
	Experiment any               `json:"experiment"` // with all defaults filled in
	Workloads  map[string]string `json:"workloads,omitempty"`
	Topologies map[string]string `json:"topologies"`
	Warnings   []spec.Warning    `json:"warnings,omitempty"`
	Rows       []manifestRow     `json:"rows"`
	Runs       []string          `json:"runs"`
}

// manifestRow is a scheme in a case.
type manifestRow struct {
	Case       string            `json:"case,omitempty"`
	Label      string            `json:"label"`
	Scheme     string            `json:"scheme"`
	Engine     string            `json:"engine"`
	Arch       string            `json:"arch,omitempty"` // "": v1model
	Parameters map[string]string `json:"parameters"`
	Programs   map[string]string `json:"programs"` // digests by role
	Seeds      []uint64          `json:"seeds"`
	Loads      []spec.LoadLevel  `json:"loads"`
}

// manifestFile is the name of the manifest in a folder of results.
const manifestFile = "manifest.json"

const manifestFormat = "p4lb-lab 1"

// keepManifest writes the manifest of the runs to come.
func (r *Runner) keepManifest(x *spec.Experiment, jobs []*Job) error {
	if err := r.clean(); err != nil {
		return err
	}
	if err := os.MkdirAll(r.Dir, 0o777); err != nil {
		return fileError("making", r.Dir, err)
	}
	repeatable := *x // drop the sections that cases have inherited
	repeatable.Full, repeatable.Targets = nil, nil
	m := record{
		Format: manifestFormat, Name: x.Name, Versions: versions(), Experiment: repeatable,
		Workloads: map[string]string{}, Topologies: map[string]string{},
	}
	var err error
	if m.Warnings, err = x.Lint(r.Read); err != nil {
		return err
	}
	for _, j := range jobs {
		row := manifestRow{
			Case: j.Case.Name, Label: j.Scheme.Label, Scheme: j.Scheme.Scheme, Engine: j.Scheme.Engine, Arch: j.Scheme.Arch,
			Parameters: j.setup.parameters(), Programs: j.setup.digests(), Seeds: j.Case.Seeds, Loads: j.Case.Loads,
		}
		if !slices.ContainsFunc(m.Rows, func(o manifestRow) bool { return o.Case == row.Case && o.Label == row.Label }) {
			m.Rows = append(m.Rows, row)
		}
		m.Topologies[j.setup.named.Name] = string(j.setup.named.YAML())
		for _, t := range j.Case.Traffic {
			if d := t.Distribution(); d != nil {
				m.Workloads[d.Name] = string(d.Text())
			}
		}
		m.Runs = append(m.Runs, j.Name())
	}
	return writeJSON(filepath.Join(r.Dir, manifestFile), m)
}

// clean removes the remains of an earlier experiment from the folder: the runs that its manifest
// names, unless this experiment continues them, and incomplete runs. It does not touch other
// files.
func (r *Runner) clean() error {
	runs := filepath.Join(r.Dir, "runs")
	made, err := madeRuns(filepath.Join(r.Dir, manifestFile))
	if err != nil {
		if list, _ := os.ReadDir(runs); len(list) > 0 {
			return fmt.Errorf("%s holds runs and no %s: want another folder", r.Dir, manifestFile)
		}
		return nil
	}
	if !r.Resume {
		if err := removeRuns(runs, made); err != nil {
			return err
		}
	}
	return filepath.WalkDir(runs, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return fileError("reading", name, err)
		case d.IsDir() && strings.HasPrefix(d.Name(), tempPrefix):
			os.RemoveAll(name)
			return fs.SkipDir
		}
		return nil
	})
}

// madeRuns lists the runs named by a manifest.
func madeRuns(file string) ([]string, error) {
	text, err := plain.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var m struct {
		Format string   `json:"format"`
		Runs   []string `json:"runs"`
	}
	if err := json.Unmarshal(text, &m); err != nil || m.Format != manifestFormat {
		return nil, errors.New("not a manifest of an experiment")
	}
	return m.Runs, nil
}

func removeRuns(dir string, names []string) error {
	runs, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fileError("reading", dir, err)
	}
	defer runs.Close()
	for _, name := range names {
		if err := removeRun(runs, name); err != nil {
			return err
		}
	}
	return nil
}

// removeRun removes the folder of a run, and parent folders that become empty. The name comes
// from a file and could lead elsewhere, for example through a link, so only folders inside runs
// are removed.
func removeRun(runs *os.Root, name string) error {
	name = filepath.FromSlash(name)
	if !filepath.IsLocal(name) || filepath.Clean(name) == "." {
		return nil
	}
	if err := runs.RemoveAll(name); err != nil {
		return fileError("removing", filepath.Join(runs.Name(), name), err)
	}
	for dir := filepath.Dir(name); dir != "." && runs.Remove(dir) == nil; {
		dir = filepath.Dir(dir)
	}
	return nil
}

// versions returns the versions that determine a result: the release, its commit, and Go.
func versions() map[string]string {
	b := provenance.This()
	return map[string]string{"go": runtime.Version(), "p4lb": b.Version, "commit": b.Revision()}
}
