// Package conformance runs the compiler and the embedded switch over a checkout of
// p4c's test suite. Each program is compiled and tested in separate p4lb processes,
// as a user would do it. So a crash or a hang is the result of one program and does
// not end the run.
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
	P4LB    string        // the p4lb binary under test
	Dir     string        // the checkout
	JSONDir string        // folder of NAME.json files compiled by p4c, for the category stf; "": compile with p4lb
	Match   string        // only run programs with this text in their names
	Timeout time.Duration // time limit of one program

	want     []string
	temp     string
	programs []*program
	v1model  map[string]bool // cache: whether a file includes v1model.p4, by path
}

// ErrNoSuite is returned for a folder that is not a checkout of p4c.
var ErrNoSuite = errors.New("no testdata/p4_16_samples in it")

// Categories are the kinds of checks.
var Categories = []string{"samples", "v1model", "p4info", "stf", "errors"}

// A status is the result of one program in one category.
type status int

const (
	absent status = iota // the category does not apply
	passed
	notSupported
	failed
)

// An Outcome is one program's result in one category, with the reason if it did not
// pass.
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

// each runs f for every program, in parallel on all cores, and then calls done for
// each program in order.
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
