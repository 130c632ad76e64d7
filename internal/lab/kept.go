package lab

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/lab/store"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// A Kept is the description of an experiment that is stored next to its runs. It contains
// everything needed to repeat the experiment, and the keys of its runs. Its content does not
// depend on the process that writes it.
type Kept struct {
	Format  string            `json:"format"`
	Name    string            `json:"name"`
	Digest  string            `json:"digest"` // digest of the names and keys of the runs
	World   string            `json:"world,omitempty"`
	Version int               `json:"result_version"`
	Rounds  int               `json:"rounds,omitempty"`
	Form    string            `json:"form"`            // see writeForm
	Files   map[string]string `json:"files,omitempty"` // contents of the files that the experiment names
	Runs    []KeptRun         `json:"runs"`

	entry string // name of the folder in which it was found
}

// A KeptRun is a run of an experiment.
type KeptRun struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

const (
	keptFile   = "experiment.json"
	keptFormat = "p4lb-experiment 1"
)

// ID returns the name under which an experiment is stored: its name and a part of its digest, so
// that a changed experiment has another ID.
func (k *Kept) ID() string {
	id := plain.Folder(k.Name) + "-" + k.Digest[:8]
	if k.World != "" {
		id += "-" + k.World
	}
	return id
}

// describe returns the stored description of an experiment.
func (r *Runner) describe(x *spec.Experiment, jobs []*Job) *Kept {
	k := &Kept{Format: keptFormat, Name: x.Name, World: r.World, Version: resultVersion, Rounds: r.Rounds, Files: x.ReadFiles()}
	if k.World == Sim {
		k.World = ""
	}
	k.Runs = lists.Map(jobs, func(j *Job) KeptRun { return KeptRun{j.Name(), j.Key()} })
	k.Digest = digestOf(k.Runs)
	var b bytes.Buffer
	plain := *x
	plain.Vary = nil // vary belongs to the experiment, not to its runs
	spec.WriteForm(&b, "", plain)
	k.Form = b.String()
	return k
}

func digestOf(runs []KeptRun) string {
	sum := sha256.New()
	for _, run := range runs {
		fmt.Fprintf(sum, "%s %s\n", run.Name, run.Key)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// KeepExperiment writes the description of an experiment into the folder and the
// store.
func (r *Runner) KeepExperiment(ctx context.Context, k *Kept) error {
	text, err := json.MarshalIndent(k, "", " ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if r.Dir != "" {
		err = writeFile(filepath.Join(r.Dir, keptFile), text)
	}
	if r.Store != nil && err == nil {
		err = r.Store.PutText(ctx, "experiments/"+k.ID()+"/"+keptFile, text)
	}
	return err
}

// parseKept parses the output of KeepExperiment. where is its location for messages.
func parseKept(where string, text []byte) (*Kept, error) {
	k := new(Kept)
	err := json.Unmarshal(text, k)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: not a description of an experiment: %w", where, err)
	case !strings.HasPrefix(k.Format, "p4lb-experiment "):
		return nil, fmt.Errorf("%s: not a description of an experiment: format %q, want %q", where, k.Format, keptFormat)
	case k.Format != keptFormat:
		return nil, fmt.Errorf("%s: format %q: this p4lb reads %q", where, k.Format, keptFormat)
	}
	if digestOf(k.Runs) != k.Digest {
		return nil, fmt.Errorf("%s has another digest than it says: it is not used", where)
	}
	// The following values become names of files and objects. They may come from an
	// attacker, who could also have written the digest.
	if k.World != "" && !slices.Contains(Worlds, k.World) {
		return nil, fmt.Errorf("%s is of the world %q, which is none: it is not used", where, k.World)
	}
	for _, run := range k.Runs {
		if !filepath.IsLocal(filepath.FromSlash(run.Name)) || !store.IsKey(run.Key) {
			return nil, fmt.Errorf("%s names a run %q with the key %q: it is not used", where, run.Name, run.Key)
		}
	}
	return k, nil
}

// Experiment restores the experiment. library contains the schemes; nil is the catalogue. It does
// not check that this version of p4lb produces the same results: their keys do so when the
// experiment runs.
func (k *Kept) Experiment(library *scheme.Library) (*spec.Experiment, error) {
	x, err := spec.FromForm([]byte(k.Form))
	if err != nil {
		return nil, fmt.Errorf("experiment %s: %w", k.ID(), err)
	}
	err = x.Complete("experiment "+k.ID(), func(name string) ([]byte, error) {
		if text, ok := k.Files[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}, library)
	return x, err
}
