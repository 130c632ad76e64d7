package experiment

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/lab/store"
)

// A labChoice is which experiments a verb is about: files, those of papers, or
// those that a store has.
type labChoice struct {
	full   bool
	engine string
	seeds  int
	rounds int

	dirs []string // of the files
}

const choiceUse = "[FILE.yaml|FOLDER|PAPER|STORED]…"

func (q *labChoice) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&q.full, "full", false, "at the size of the paper's own network, where the experiment is a smaller one")
	f.StringVar(&q.engine, "engine", "", "what the switches run: p4 or native (default as the file says)")
	f.IntVar(&q.seeds, "seeds", 0, "run with the seeds 1 to `N` (default as the file says)")
	cli.CompleteWith(cmd, "engine", []string{spec.EngineP4, spec.EngineNative})
}

// load reads the experiments; st, if not nil, may have them.
func (q *labChoice) load(cmd *cobra.Command, c *cli.Console, st *store.Store, args []string) ([]*spec.Experiment, error) {
	if len(args) == 0 {
		args = []string{"."}
	}
	var list []*spec.Experiment
	for _, name := range args {
		more, err := q.named(cmd.Context(), c, st, name)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, q.adjust(cmd, list)
}

func (q *labChoice) adjust(cmd *cobra.Command, list []*spec.Experiment) error {
	for _, x := range list {
		if err := x.Adjust(q.engine, q.seeds); err != nil {
			return cli.UsageError(cmd, "%w", err)
		}
	}
	return nil
}

// named reads the experiments of one argument. What is no file may be a paper, an
// experiment of one, or one in the store.
func (q *labChoice) named(ctx context.Context, c *cli.Console, st *store.Store, name string) ([]*spec.Experiment, error) {
	if _, err := os.Stat(name); err != nil && name != "-" && !strings.ContainsAny(name, "/"+string(filepath.Separator)) {
		if list, err := lab.Paper(name, "", q.full); err == nil {
			return list, nil
		}
		if st != nil && filepath.Ext(name) != ".yaml" {
			kept, err := (&lab.Archive{Store: st}).Find(ctx, name, c.Caution)
			if err != nil {
				return nil, err
			}
			x, err := kept.Experiment(cli.LibraryFrom("."))
			return []*spec.Experiment{x}, err
		}
	}
	x, err := q.file(c, name)
	if err != nil {
		return nil, err
	}
	if q.full {
		x = x.Whole()
	}
	return []*spec.Experiment{x}, nil
}

func (q *labChoice) file(c *cli.Console, name string) (*spec.Experiment, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		name = filepath.Join(name, "experiment.yaml")
	}
	text, err := c.ReadSource(name)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(name)
	q.dirs = append(q.dirs, dir)
	x, err := spec.Load(cli.DisplayName(name), text, cli.Besides(dir), cli.LibraryFrom(dir))
	if err != nil {
		return nil, err
	}
	if x.Name == "" {
		x.Name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	}
	return x, nil
}
