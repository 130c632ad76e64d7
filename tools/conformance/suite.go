// Package conformance runs the compiler and the embedded switch over a checkout
// of p4c's test suite. Each program runs in a process of its own, by the verbs
// that a user would type, so that a crash or a hang is one program's result and
// not the end of the run.
package conformance

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
)

// A Suite is one run over a checkout of p4c.
type Suite struct {
	P4LB    string        // the binary that is tried
	Dir     string        // the checkout
	JSONDir string        // NAME.json that p4c compiled, for the category stf; "": our own
	Match   string        // only programs with this in their names
	Timeout time.Duration // of one program

	want     []string
	temp     string
	programs []*program
	v1model  map[string]bool // whether a file includes v1model.p4, by path
}

// ErrNoSuite is returned for a folder that is no checkout of p4c.
var ErrNoSuite = errors.New("no testdata/p4_16_samples in it")

// Categories are the checks for which a program can be tried.
var Categories = []string{"samples", "v1model", "p4info", "stf", "errors"}

// A status is how one program fared in one category.
type status int

const (
	absent status = iota // the category does not apply
	passed
	notSupported
	failed
)

// An Outcome is one program's result in one category, with the reason where
// it did not pass.
type Outcome struct {
	Program string `json:"program"`
	Reason  string `json:"reason,omitempty"`
	status  status
}

// A Result is the outcome of one category.
type Result struct {
	Category     string    `json:"category"`
	Total        int       `json:"total"`
	Passed       int       `json:"passed"`
	NotSupported []Outcome `json:"not_supported"`
	Failed       []Outcome `json:"failed"`
}

// Run runs the wanted Categories and returns their results in order.
func (s *Suite) Run(ctx context.Context, want []string) ([]*Result, error) {
	if err := s.open(); err != nil {
		return nil, err
	}
	defer os.RemoveAll(s.temp)
	s.want = want
	var results []*Result
	for _, name := range Categories {
		if slices.Contains(want, name) {
			results = append(results, &Result{Category: name, NotSupported: []Outcome{}, Failed: []Outcome{}})
		}
	}
	err := s.each(ctx, func(p *program) { s.try(ctx, p) }, func(p *program) {
		for _, r := range results {
			o := p.outcomes[r.Category]
			o.Program = p.name
			if o.status == absent {
				continue
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
	})
	return results, err
}

// each runs f for every program, as many at once as there are cores, and then
// done for each in order.
func (s *Suite) each(ctx context.Context, f, done func(*program)) error {
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

// open finds the programs of the suite.
func (s *Suite) open() error {
	s.v1model = map[string]bool{}
	samples := filepath.Join(s.Dir, "testdata", "p4_16_samples")
	if _, err := os.Stat(samples); err != nil {
		return fmt.Errorf("%s: %w", s.Dir, ErrNoSuite)
	}
	if err := s.find(samples, false); err != nil {
		return err
	}
	if err := s.find(filepath.Join(s.Dir, "testdata", "p4_16_errors"), true); err != nil {
		return err
	}
	var err error
	s.temp, err = os.MkdirTemp("", "p4lb-conformance-")
	return err
}

// find adds the programs below dir.
func (s *Suite) find(dir string, bad bool) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".p4" {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		name := strings.TrimSuffix(filepath.ToSlash(rel), ".p4")
		if strings.Contains(name, s.Match) {
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
