package experiment

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

func (j *labJob) addExplain(cmd *cobra.Command) {
	cmd.Flags().StringVar(&j.explain, "explain", "", "run the variations of the experiment (vary:) instead, and report how much each detail that the paper omits changes the numbers of `FIGURE`, or of all figures")
}

// tellMechanisms prints the recorded reasons why rows disagree with the paper.
func (j *labJob) tellMechanisms(list []*spec.Experiment) error {
	known, err := lab.Mechanisms(list, j.explain)
	if err != nil || len(known) == 0 || j.c.Quiet {
		return err
	}
	fmt.Fprintln(j.c.Out, "why rows disagree with the paper; numbers are counters of recorded runs, reasons without numbers follow from the design of the scheme:")
	for i := range known {
		fmt.Fprintf(j.c.Out, "- %s\n", &known[i])
	}
	fmt.Fprintln(j.c.Out)
	j.c.Out.Flush()
	return nil
}

// explainAll screens the open choices of the experiments that have a section vary.
func (j *labJob) explainAll(cmd *cobra.Command, list []*spec.Experiment) error {
	if err := j.check(cmd); err != nil {
		return err
	}
	if !slices.Equal(j.worlds, []string{lab.Sim}) || j.looks() > 0 {
		return cli.UsageError(cmd, "--explain runs in the simulator and cannot show a single run")
	}
	names := lists.Map(list, func(x *spec.Experiment) string { return x.Name })
	list = slices.DeleteFunc(list, func(x *spec.Experiment) bool { return x.Vary == nil })
	if len(list) == 0 {
		return fmt.Errorf("%s: no variations to explain with: want a section vary in the experiment", strings.Join(names, ", "))
	}
	document, err := j.document()
	if err != nil {
		return err
	}
	defer document(nil)
	var sections []byte
	for i, x := range list {
		dir := j.dir
		switch {
		case dir == "":
			dir = filepath.Join("results", plain.Folder(x.Name)+"-explained")
		case len(list) > 1:
			dir = filepath.Join(dir, plain.Folder(x.Name))
		}
		bar := newLabProgress(j.c, x.Name)
		r := &lab.Runner{
			Dir: dir, Cores: j.cores, Within: j.within, Resume: j.resume, Parquet: j.parquet, Read: cli.Besides(j.dirs...), Limits: j.limits(), Rounds: j.rounds,
			Progress: bar.ended,
		}
		s, err := r.Explain(cmd.Context(), x)
		bar.close()
		if err != nil {
			return explainLab(err)
		}
		if i > 0 {
			fmt.Fprintln(j.c.Out)
		}
		if err := cli.Show(j.c.Out, cli.Table, s.Table(), nil); err != nil {
			return err
		}
		fmt.Fprintln(j.c.Out)
		for _, line := range s.Summary() {
			fmt.Fprintln(j.c.Out, line)
		}
		command := cmd.CommandPath() + " " + strings.Join(cmd.Flags().Args(), " ") + " --explain " + j.explain
		if err := s.Keep(dir, command); err != nil {
			return err
		}
		fmt.Fprintf(j.c.Out, "\n%s\n", filepath.Join(dir, "sensitivity.svg"))
		sections = append(sections, s.Markdown(command)...)
	}
	return document(sections)
}
