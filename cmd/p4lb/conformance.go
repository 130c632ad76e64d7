package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// newConformance makes a developer's verb: it runs the compiler and the
// embedded switch over a checkout of p4c's test suite. Each program runs in a
// process of its own, by the same verbs that a user would type, so that a crash
// or a hang is one program's result and not the end of the run.
func newConformance(c *cli) *cobra.Command {
	s := &suite{c: c, v1model: map[string]bool{}}
	var form format
	var only []string
	cmd := &cobra.Command{
		Use:    "conformance --p4c DIR [--only CATEGORY]...",
		Short:  "Run p4c's test suite",
		Hidden: true,
		Long: `Conformance runs p4lb over a checkout of github.com/p4lang/p4c.

  samples  every program in p4_16_samples: no crash, no hang
  v1model  those that include v1model.p4: compiled
  p4info   their P4Info: equal to the expected one as a message
  stf      their packet tests: passed on the embedded switch
  errors   every program in p4_16_errors: rejected, on a line that p4c names`,
		Args: wantArgs(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range only {
				if !slices.Contains(categories, name) {
					return usageError(cmd, "--only %s: want %s", name, strings.Join(categories, ", "))
				}
			}
			if len(only) == 0 {
				only = categories
			}
			results, err := s.run(cmd.Context(), only)
			if err != nil {
				return err
			}
			return s.show(form, results)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.dir, "p4c", "", "a checkout of p4c")
	flags.StringArrayVar(&only, "only", nil, "a category to run (repeatable; all where absent)")
	flags.StringVar(&s.match, "run", "", "run only programs whose name contains this")
	flags.StringVar(&s.jsonDir, "json", "", "a folder of NAME.json that p4c compiled: the stf category runs these")
	flags.DurationVar(&s.timeout, "timeout", 20*time.Second, "how long one program may take")
	addFormat(cmd, &form, formatTable, formatJSON)
	return cmd
}

var categories = []string{"samples", "v1model", "p4info", "stf", "errors"}

// A status is how one program fared in one category.
type status int

const (
	absent status = iota // the category does not apply
	passed
	notSupported
	failed
)

// An outcome is one program's result in one category, with the reason where
// it did not pass.
type outcome struct {
	Program string `json:"program"`
	Reason  string `json:"reason,omitempty"`
	status  status
}

// A result is what came out of one category.
type result struct {
	Category     string    `json:"category"`
	Total        int       `json:"total"`
	Passed       int       `json:"passed"`
	NotSupported []outcome `json:"not_supported"`
	Failed       []outcome `json:"failed"`
}

func (r *result) add(o outcome) {
	if o.status == absent {
		return
	}
	r.Total++
	switch o.status {
	case passed:
		r.Passed++
	case notSupported:
		r.NotSupported = append(r.NotSupported, o)
	case failed:
		r.Failed = append(r.Failed, o)
	}
}

// run runs the wanted categories and returns their results in order.
func (s *suite) run(ctx context.Context, want []string) ([]*result, error) {
	if err := s.open(); err != nil {
		return nil, err
	}
	defer os.RemoveAll(s.temp)
	s.want = want
	var results []*result
	for _, name := range categories {
		if slices.Contains(want, name) {
			results = append(results, &result{Category: name, NotSupported: []outcome{}, Failed: []outcome{}})
		}
	}
	err := s.each(ctx, func(p *program) { s.try(ctx, p) }, func(p *program) {
		for _, r := range results {
			o := p.outcomes[r.Category]
			o.Program = p.name
			r.add(o)
		}
	})
	return results, err
}

// each runs f for every program, as many at once as there are cores, and then
// done for each in order.
func (s *suite) each(ctx context.Context, f, done func(*program)) error {
	jobs := make(chan *program)
	var wg sync.WaitGroup
	for range runtime.NumCPU() {
		wg.Go(func() {
			for p := range jobs {
				f(p)
			}
		})
	}
	for _, p := range s.programs {
		if ctx.Err() != nil {
			break
		}
		jobs <- p
	}
	close(jobs)
	wg.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, p := range s.programs {
		done(p)
	}
	return nil
}

// show prints one line per category, and the reasons with -v.
func (s *suite) show(form format, results []*result) error {
	if form == formatJSON {
		return show(s.c.out, form, nil, results)
	}
	for _, r := range results {
		fmt.Fprintf(s.c.out, "%-8s %4d programs  %4d passed (%.1f %%)  %d not supported%s  %d failed%s\n",
			r.Category, r.Total, r.Passed, 100*float64(r.Passed)/float64(max(r.Total, 1)),
			len(r.NotSupported), names(r.NotSupported), len(r.Failed), names(r.Failed))
	}
	if !s.c.verbose {
		return nil
	}
	for _, r := range results {
		for _, o := range slices.Concat(r.NotSupported, r.Failed) {
			fmt.Fprintf(s.c.out, "%s: %s: %s\n", r.Category, o.Program, o.Reason)
		}
	}
	return nil
}

func names(list []outcome) string {
	if len(list) == 0 {
		return ""
	}
	all := make([]string, len(list))
	for i, o := range list {
		all[i] = o.Program
	}
	return " (" + strings.Join(all, " ") + ")"
}

// open finds the programs of the suite.
func (s *suite) open() error {
	if s.dir == "" {
		return &failure{code: exitUsage, err: errors.New("--p4c is missing: name a checkout of p4c")}
	}
	samples := filepath.Join(s.dir, "testdata", "p4_16_samples")
	if _, err := os.Stat(samples); err != nil {
		return hinted(fmt.Errorf("--p4c %s: no testdata/p4_16_samples in it", s.dir), "want a checkout of github.com/p4lang/p4c")
	}
	if err := s.find(samples, false); err != nil {
		return err
	}
	if err := s.find(filepath.Join(s.dir, "testdata", "p4_16_errors"), true); err != nil {
		return err
	}
	var err error
	s.temp, err = os.MkdirTemp("", "p4lb-conformance-")
	return err
}

// find adds the programs below dir.
func (s *suite) find(dir string, bad bool) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".p4" {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		name := strings.TrimSuffix(filepath.ToSlash(rel), ".p4")
		if strings.Contains(name, s.match) {
			s.programs = append(s.programs, &program{
				name:    name,
				path:    path,
				bad:     bad,
				v1model: s.includesV1model(path) && !strings.Contains(name, "/include/"),
			})
		}
		return nil
	})
}
