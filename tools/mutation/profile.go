package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A profile describes which lines each test of a package executes when it runs
// alone.
type profile struct {
	Tests []testTime
	// Lines lists per file the executed ranges of lines with the tests that execute them.
	Lines map[string][]executed
}

// A testTime states how long a test takes alone. Other work on the machine changes
// Took, but hardly CPU.
type testTime struct {
	Name      string
	Took, CPU time.Duration
}

type executed struct {
	From, To int
	Tests    []int
}

// A testRun is a run of tests of one package: top-level tests, or subtests of one test.
type testRun struct {
	parent    string
	names     []string
	took, cpu time.Duration
}

// pattern returns the value of -test.run.
func (r testRun) pattern() string {
	if r.parent == "" {
		return "^(" + strings.Join(r.names, "|") + ")$"
	}
	var names []string
	for _, name := range r.names {
		names = append(names, regexp.QuoteMeta(strings.TrimPrefix(name, r.parent+"/")))
	}
	return "^" + r.parent + "$/^(" + strings.Join(names, "|") + ")$"
}

// runTime is the CPU time above which a run is split. Cheap tests then run first, and an
// expensive test, which the limit may exclude, excludes no cheap one.
const runTime = 10 * time.Second

// runs returns the runs of the tests that execute a mutant, the cheapest first.
func (p *profile) runs(m *mutant, fit func(name string) bool) []testRun {
	tests := map[int]bool{}
	for file, lines := range p.Lines {
		if file != m.file && (!m.global || path.Dir(file) != path.Dir(m.file)) {
			continue
		}
		for _, e := range lines {
			if m.global || e.From <= m.reached && m.reached <= e.To {
				for _, i := range e.Tests {
					tests[i] = true
				}
			}
		}
	}
	byCPU := func(i, j int) int { return cmp.Or(cmp.Compare(p.Tests[i].CPU, p.Tests[j].CPU), cmp.Compare(i, j)) }
	var list []testRun
	last := map[string]int{} // by parent: the index of its last run
	for _, i := range slices.SortedFunc(maps.Keys(tests), byCPU) {
		name := p.Tests[i].Name
		if !fit(name) {
			continue
		}
		parent, _, sub := strings.Cut(name, "/")
		if !sub {
			parent = ""
		}
		at, ok := last[parent]
		if !ok || list[at].cpu+p.Tests[i].CPU > runTime {
			at = len(list)
			last[parent], list = at, append(list, testRun{parent: parent})
		}
		r := &list[at]
		r.names = append(r.names, name)
		r.took += p.Tests[i].Took
		r.cpu += p.Tests[i].CPU
	}
	slices.SortStableFunc(list, func(a, b testRun) int { return cmp.Compare(a.cpu, b.cpu) })
	return list
}

// profile returns the profile of a package's tests, from the cache if possible.
func (t *tests) profile(q testPackage) (*profile, error) {
	if p := t.profiles[q.path]; p != nil {
		return p, nil
	}
	sum, err := t.sum(q)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(t.options.cache, sum+".json")
	p := &profile{}
	data, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(data, p) != nil {
		if p, err = t.measure(q); err != nil {
			return nil, err
		}
		if data, err = json.Marshal(p); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(t.options.cache, 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return nil, err
		}
	}
	t.profiles[q.path] = p
	return p, nil
}

// used returns the module's packages that the tests of q import, including q.
func (t *tests) used(q testPackage) []string {
	var list []string
	for p := range q.uses {
		if p == t.module || strings.HasPrefix(p, t.module+"/") {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return list
}

// sum returns a hash of the files that determine a profile.
func (t *tests) sum(q testPackage) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, "2", q.path, t.options.timeout, t.options.short)
	for _, p := range t.used(q) {
		folder := filepath.Join(t.original, strings.TrimPrefix(p, t.module))
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && path != folder && (p != q.path && d.Name() == "testdata" || p == t.module):
				return filepath.SkipDir
			case d.IsDir() || p != q.path && strings.HasSuffix(path, "_test.go"):
				return nil
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			fmt.Fprintln(h, strings.TrimPrefix(path, t.original))
			_, err = io.Copy(h, f)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return path.Base(q.path) + "-" + hex.EncodeToString(h.Sum(nil)[:12]), nil
}

// splitFrom is the duration above which a test's subtests are measured separately.
const splitFrom = 4 * time.Second

// measure runs each test of a package in the original copy alone.
func (t *tests) measure(q testPackage) (*profile, error) {
	fmt.Printf("%s: measuring which lines each test executes\n", q.path)
	binary := filepath.Join(t.changed, ".tests", "measure")
	if _, err := goCommand(t.original, "test", "-c", "-vet=off", "-cover", "-coverpkg="+strings.Join(t.used(q), ","), "-o", binary, q.path); err != nil {
		return nil, err
	}
	defer os.Remove(binary)
	m := measurement{dir: filepath.Join(t.original, strings.TrimPrefix(q.path, t.module)), binary: binary, module: t.module, limit: t.options.timeout, short: t.options.shortFlag(),
		data: filepath.Join(t.changed, ".tests", "data"), lines: map[string]map[[2]int][]int{}}
	out, _, err := runTests(m.dir, t.options.timeout, nil, binary, "-test.list=^(Test|Example|Fuzz)")
	if err != nil {
		return nil, fmt.Errorf("%s: listing tests: %w\n%s", q.path, err, out)
	}
	for name := range strings.FieldsSeq(string(out)) {
		if !regexp.MustCompile(`^(Test|Example|Fuzz)\w*$`).MatchString(name) {
			continue
		}
		if err := m.test(name); err != nil {
			return nil, err
		}
	}
	return m.profile(), nil
}

type measurement struct {
	dir, binary, data, module, short string
	limit                            time.Duration
	tests                            []testTime
	lines                            map[string]map[[2]int][]int
}

// test measures a test. If it takes long, it measures each of its subtests, unless that
// would take ten times as long.
func (m *measurement) test(name string) error {
	out, took, err := m.run(testRun{names: []string{name}})
	var subtests []string
	if took.CPU > splitFrom {
		for _, s := range regexp.MustCompile(`(?m)^=== RUN   (`+name+`/[^/\n]+)$`).FindAllSubmatch(out, -1) {
			subtests = append(subtests, string(s[1]))
		}
	}
	if len(subtests) < 2 {
		return m.add(took, err)
	}
	for i, s := range subtests {
		_, each, failed := m.run(testRun{parent: name, names: []string{s}})
		if i == 0 && time.Duration(len(subtests))*each.CPU > 10*took.CPU {
			// The subtests, such as the seeds of a fuzz target, share most of the work.
			_, took, err = m.run(testRun{names: []string{name}})
			return m.add(took, err)
		}
		if err := m.add(each, failed); err != nil {
			return err
		}
	}
	return nil
}

// run runs tests and returns their output and times, with the first name.
func (m *measurement) run(r testRun) ([]byte, testTime, error) {
	took := testTime{Name: r.names[0]}
	if err := os.RemoveAll(m.data); err != nil {
		return nil, took, err
	}
	if err := os.MkdirAll(m.data, 0o755); err != nil {
		return nil, took, err
	}
	start := time.Now()
	out, cpu, err := runTests(m.dir, m.limit, []string{"GOCOVERDIR=" + m.data}, m.binary, m.short, "-test.v", "-test.gocoverdir="+m.data, "-test.run="+r.pattern())
	took.Took, took.CPU = time.Since(start), cpu
	return out, took, err
}

// add adds the lines that a test has executed.
func (m *measurement) add(test testTime, failed error) error {
	switch {
	case failed != nil && test.Took >= m.limit:
		fmt.Printf("%s: left out, it takes longer than %v (-timeout)\n", test.Name, m.limit)
		return nil
	case failed != nil:
		fmt.Printf("%s: left out, it fails without a mutant: %v\n", test.Name, failed)
		return nil
	}
	text := filepath.Join(m.data, "text")
	if _, err := goCommand(m.dir, "tool", "covdata", "textfmt", "-i="+m.data, "-o="+text); err != nil {
		return err
	}
	data, err := os.ReadFile(text)
	if err != nil {
		return err
	}
	n := len(m.tests)
	m.tests = append(m.tests, test)
	for line := range strings.Lines(string(data)) {
		// file:line.column,line.column statements count
		file, rest, ok := strings.Cut(line, ":")
		var from, fromColumn, to, toColumn, statements, count int
		if n, _ := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &from, &fromColumn, &to, &toColumn, &statements, &count); !ok || n != 6 || count == 0 {
			continue
		}
		file = strings.TrimPrefix(file, m.module+"/")
		if m.lines[file] == nil {
			m.lines[file] = map[[2]int][]int{}
		}
		at := [2]int{from, to}
		if list := m.lines[file][at]; len(list) == 0 || list[len(list)-1] != n {
			m.lines[file][at] = append(list, n)
		}
	}
	return nil
}

func (m *measurement) profile() *profile {
	p := &profile{Tests: m.tests, Lines: map[string][]executed{}}
	for file, ranges := range m.lines {
		for at, tests := range ranges {
			p.Lines[file] = append(p.Lines[file], executed{at[0], at[1], tests})
		}
		slices.SortFunc(p.Lines[file], func(a, b executed) int { return a.From - b.From })
	}
	return p
}
