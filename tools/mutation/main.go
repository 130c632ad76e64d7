// Command mutation measures how many changes to the code the tests detect.
//
//	mutation [-n N] [-seed S] [-group LIST] [-packages N] [-timeout TIME] [-limit TIME] [-short] [-at FILE:LINE]
//
// A mutant is a copy of the code with one expression or statement changed. For each
// mutant, the command runs the tests that execute the changed line, the package's
// own tests first, until one fails. If no test fails, the behaviour is untested or
// the change has no effect. The seed determines the sample of mutants. The command
// prints the score of each group of packages.
//
// All work is done on copies of the repository in a temporary folder. A coverage
// profile for each test lists the lines that it executes. Profiles are kept in the
// folder of -cache until a file that the package depends on changes. One copy
// contains all mutants of the sample at once, so each package is compiled only
// once: each mutant is a copy of its function's body, and runs if a file names the
// mutant.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// defaultGroups are the groups of packages that are sampled without -group.
const defaultGroups = "cmd/p4lb/internal/network,internal/lab/store,internal/server/bfrt,internal/p4/types," +
	"internal/scheme/own,internal/scheme/manifest,controller+internal/controller,internal/lab"

type options struct {
	n, packages    int
	seed           uint64
	timeout, limit time.Duration
	short          bool
	groups         []string
	at, cache      string
}

// shortFlag returns the flag of test binaries for short tests.
func (o *options) shortFlag() string { return fmt.Sprintf("-test.short=%v", o.short) }

func main() {
	o := options{}
	flag.IntVar(&o.n, "n", 160, "try `N` mutants, spread evenly over the groups")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the sample")
	flag.DurationVar(&o.timeout, "timeout", time.Minute, "leave out tests that take longer than this `TIME`")
	flag.DurationVar(&o.limit, "limit", 3*time.Minute, "run tests for at most this CPU `TIME` per mutant, the cheapest packages first")
	flag.BoolVar(&o.short, "short", false, "run only short tests: faster, but many tests of whole experiments are missing")
	flag.IntVar(&o.packages, "packages", 0, "run the tests of the `N` nearest packages only (0: of all)")
	groups := flag.String("group", defaultGroups, "`LIST` of package folders with their subfolders; + joins folders of one group")
	flag.StringVar(&o.at, "at", "", "try all mutants of one line, `FILE:LINE`")
	flag.StringVar(&o.cache, "cache", "build/mutation", "`FOLDER` of the coverage profiles")
	flag.Parse()
	o.groups = strings.Split(*groups, ",")
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	original, changed := filepath.Join(dir, "original"), filepath.Join(dir, "changed")
	for _, to := range []string{original, changed} {
		if err := copyTree(to); err != nil {
			return err
		}
	}
	list, err := sample(original, o)
	if err != nil {
		return err
	}
	t, err := newTests(original, changed, list, o)
	if err != nil {
		return err
	}
	var all score
	groups := map[string]*score{}
	for i, m := range list {
		r, err := t.try(m)
		if err != nil {
			return err
		}
		fmt.Printf("%d/%d %s:%d: %s: %s\n", i+1, len(list), m.file, m.line, m.what, r)
		if groups[m.group] == nil {
			groups[m.group] = &score{}
		}
		groups[m.group].add(r)
		all.add(r)
	}
	for _, g := range o.groups {
		if s := groups[g]; s != nil {
			fmt.Printf("%-40s %s\n", g, s)
		}
	}
	fmt.Printf("%-40s %s\n", "all", &all)
	return nil
}

// sample returns the mutants to try, numbered from 1.
func sample(dir string, o options) ([]*mutant, error) {
	list, err := choose(dir, o)
	for i, m := range list {
		m.number = i + 1
	}
	return list, err
}

func choose(dir string, o options) ([]*mutant, error) {
	if o.at != "" {
		file, line, _ := strings.Cut(o.at, ":")
		list, err := mutants(dir, filepath.ToSlash(file))
		var at []*mutant
		for _, m := range list {
			if fmt.Sprint(m.line) == line {
				m.group = o.groups[0]
				at = append(at, m)
			}
		}
		if err == nil && len(at) == 0 {
			err = fmt.Errorf("%s: nothing to change there", o.at)
		}
		return at, err
	}
	r := rand.New(rand.NewPCG(o.seed, 0))
	var list []*mutant
	for i, g := range o.groups {
		var group []*mutant
		for folder := range strings.SplitSeq(g, "+") {
			part, err := folderMutants(dir, folder)
			if err != nil {
				return nil, err
			}
			group = append(group, part...)
		}
		if len(group) == 0 {
			return nil, fmt.Errorf("%s: no Go files: name folders of packages", g)
		}
		r.Shuffle(len(group), func(i, j int) { group[i], group[j] = group[j], group[i] })
		n := o.n*(i+1)/len(o.groups) - o.n*i/len(o.groups)
		for _, m := range group[:min(n, len(group))] {
			m.group = g
			list = append(list, m)
		}
	}
	return list, nil
}

// A score counts the outcomes of mutants.
type score struct{ killed, survived, unexecuted, invalid int }

func (s *score) add(r outcome) {
	switch r.kind {
	case killed:
		s.killed++
	case survived:
		s.survived++
	case unexecuted:
		s.unexecuted++
	default:
		s.invalid++
	}
}

func (s *score) String() string {
	percent := 0.0
	if n := s.killed + s.survived; n > 0 {
		percent = 100 * float64(s.killed) / float64(n)
	}
	return fmt.Sprintf("%3d killed, %2d survived (%.0f %%), %2d not executed, %2d do not compile", s.killed, s.survived, percent, s.unexecuted, s.invalid)
}
