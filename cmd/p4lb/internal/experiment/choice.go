package experiment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/lab/store"
)

// A labChoice selects the experiments of a verb: files, experiments of papers, or
// experiments in a store.
type labChoice struct {
	full   bool
	engine string
	seeds  string
	rounds int

	dirs []string // folders of the files
}

const choiceUse = "[FILE.yaml|FOLDER|PAPER|STORED]…"

func (q *labChoice) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&q.full, "full", false, "run at the size of the paper's network, if the experiment is smaller")
	f.StringVar(&q.engine, "engine", "", "run the switches with this `ENGINE`: p4 or native (default: the file's)")
	f.StringVar(&q.seeds, "seeds", "", "run with the seeds 1 to `N`, or with a list such as 3,5,8-12 (default: the file's)")
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
	var seeds spec.Seeds
	if q.seeds != "" {
		var err error
		if seeds, err = spec.ParseSeeds(q.seeds); err != nil {
			return cli.UsageError(cmd, "--%w", err)
		}
	}
	for _, x := range list {
		if err := x.Adjust(q.engine, seeds); err != nil {
			return cli.UsageError(cmd, "%w", err)
		}
	}
	return nil
}

// named reads the experiments of one argument: a file, a paper, an experiment of a paper,
// or an experiment in the store.
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
	list, err := q.file(c, name)
	if err != nil {
		return nil, err
	}
	for i, x := range list {
		if q.full {
			list[i] = x.Whole()
		}
	}
	return list, nil
}

// documentMark separates the experiments of a file.
const documentMark = "---"

// documents cuts a file into the texts of its experiments. Each keeps the lines before
// it as empty ones, so that messages have the lines of the file.
func documents(text string) []string {
	var list []string
	var one strings.Builder
	n, lines := 0, 0
	for line := range strings.Lines(text) {
		n++
		if strings.TrimRight(line, " \t\r\n") != documentMark {
			one.WriteString(line)
			if t := strings.TrimSpace(line); t != "" && t[0] != '#' {
				lines++
			}
			continue
		}
		if lines > 0 {
			list = append(list, one.String())
			one.Reset()
			one.WriteString(strings.Repeat("\n", n))
			lines = 0
		} else {
			one.WriteString("\n")
		}
	}
	if lines > 0 || list == nil {
		list = append(list, one.String())
	}
	return list
}

func (q *labChoice) file(c *cli.Console, name string) ([]*spec.Experiment, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		name = filepath.Join(name, "experiment.yaml")
	}
	text, err := c.ReadSource(name)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(name)
	q.dirs = append(q.dirs, dir)
	var list []*spec.Experiment
	for i, one := range documents(string(text)) {
		x, err := spec.Load(cli.DisplayName(name), []byte(one), cli.Besides(dir), cli.LibraryFrom(dir))
		if err != nil {
			return nil, err
		}
		if x.Name == "" {
			x.Name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
			if i > 0 {
				x.Name += fmt.Sprintf("-%d", i+1)
			}
		}
		list = append(list, x)
	}
	return list, nil
}
