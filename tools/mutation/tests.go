package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// copyTree copies the files that git knows, as they are now, to dir.
func copyTree(dir string) error {
	names, err := exec.Command("git", "ls-files", "-z", "--recurse-submodules").Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		data, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted and not committed
		}
		if err != nil {
			return err
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(to, data, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

// An outcome is what happened to a mutant.
type outcome struct {
	kind kind
	by   string // the package whose tests failed
}

type kind int

const (
	survived kind = iota
	killed
	unexecuted
	invalid
)

func (o outcome) String() string {
	switch o.kind {
	case killed:
		return "killed by " + o.by
	case unexecuted:
		return "NOT EXECUTED"
	case invalid:
		return "does not compile"
	}
	return "SURVIVED"
}

// tests runs tests of a copy of the tree.
type tests struct {
	dir      string
	module   string
	options  options
	packages []testPackage
	// executed caches which lines of a package the tests of another execute.
	executed map[[2]string][]span
	unfit    map[string]bool // packages that are left out
}

// A testPackage is a package with tests, and all packages that they import.
type testPackage struct {
	path string
	uses map[string]bool
}

// A span is a range of lines of a file that tests execute.
type span struct {
	file     string
	from, to int
}

func newTests(dir string, o options) (*tests, error) {
	t := &tests{dir: dir, options: o, executed: map[[2]string][]span{}, unfit: map[string]bool{}}
	out, err := t.goCommand(10*time.Minute, "list", "-m")
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, out)
	}
	t.module = strings.TrimSpace(string(out))
	out, err = t.goCommand(10*time.Minute, "list", "-f",
		`{{.ImportPath}}|{{join .Deps " "}}|{{join .TestImports " "}} {{join .XTestImports " "}}|{{len .TestGoFiles}}{{len .XTestGoFiles}}`, "./...")
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, out)
	}
	deps, imports := map[string][]string{}, map[string][]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 4 {
			continue
		}
		deps[f[0]] = strings.Fields(f[1])
		if f[3] != "00" {
			imports[f[0]] = strings.Fields(f[2])
		}
	}
	for p, list := range imports {
		uses := map[string]bool{p: true}
		for _, i := range append(list, p) {
			uses[i] = true
			for _, d := range deps[i] {
				uses[d] = true
			}
		}
		t.packages = append(t.packages, testPackage{p, uses})
	}
	return t, nil
}

// goCommand runs go in the copy.
func (t *tests) goCommand(limit time.Duration, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = t.dir
	cmd.WaitDelay = time.Second
	return cmd.CombinedOutput()
}

// near returns the packages whose tests may execute code of p, its own tests first,
// then those that import the least besides.
func (t *tests) near(p string) []string {
	var list []testPackage
	for _, q := range t.packages {
		if q.uses[p] {
			list = append(list, q)
		}
	}
	slices.SortFunc(list, func(a, b testPackage) int {
		if a.path == p || b.path == p {
			return btoi(b.path == p) - btoi(a.path == p)
		}
		if n := len(a.uses) - len(b.uses); n != 0 {
			return n
		}
		return strings.Compare(a.path, b.path)
	})
	var paths []string
	for _, q := range list {
		paths = append(paths, q.path)
	}
	return paths
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// try runs the tests that execute the line of a mutant until one fails.
func (t *tests) try(m mutant) (outcome, error) {
	file := filepath.Join(t.dir, m.file)
	src, err := os.ReadFile(file)
	if err != nil {
		return outcome{}, err
	}
	pkg := path.Join(t.module, path.Dir(m.file))
	var run []string
	near := t.near(pkg)
	for _, q := range near[:min(t.options.tests, len(near))] {
		spans, err := t.lines(q, pkg)
		if err != nil {
			return outcome{}, err
		}
		if slices.ContainsFunc(spans, func(s span) bool { return s.file == m.file && s.from <= m.line && m.line <= s.to }) {
			run = append(run, q)
		}
	}
	if err := os.WriteFile(file, m.apply(src), 0o644); err != nil {
		return outcome{}, err
	}
	defer os.WriteFile(file, src, 0o644)
	if out, err := t.goCommand(t.options.timeout+5*time.Minute, "build", "./"+path.Dir(m.file)); err != nil {
		if bytes.Contains(out, []byte(".go:")) {
			return outcome{kind: invalid}, nil
		}
		return outcome{}, fmt.Errorf("go build: %w\n%s", err, out)
	}
	if len(run) == 0 {
		return outcome{kind: unexecuted}, nil
	}
	for _, q := range run {
		if _, err := t.test(t.options.timeout, q); err != nil {
			return outcome{killed, strings.TrimPrefix(q, t.module+"/")}, nil
		}
	}
	return outcome{kind: survived}, nil
}

// test runs the short tests of a package.
func (t *tests) test(limit time.Duration, p string, args ...string) ([]byte, error) {
	args = append([]string{"test", "-vet=off", "-short", "-failfast", "-timeout", limit.String()}, args...)
	return t.goCommand(limit+5*time.Minute, append(args, p)...)
}

// duration returns the time that go test prints after the package.
func duration(out []byte) time.Duration {
	for field := range strings.FieldsSeq(string(out)) {
		if d, err := time.ParseDuration(field); err == nil {
			return d
		}
	}
	return 0
}

// lines returns the lines of a package that the tests of another execute.
func (t *tests) lines(test, pkg string) ([]span, error) {
	key := [2]string{test, pkg}
	if list, ok := t.executed[key]; ok {
		return list, nil
	}
	profile := filepath.Join(t.dir, "cover.out")
	defer os.Remove(profile)
	if t.unfit[test] {
		return nil, nil
	}
	out, err := t.test(5*t.options.timeout, test, "-coverpkg", pkg, "-coverprofile", profile)
	if err != nil { // they would kill each mutant
		fmt.Printf("%s: left out, its tests fail without a change: %v\n%s", test, err, out)
		t.unfit[test] = true
		return nil, nil
	}
	// A package that comes close to the limit would kill each mutant.
	if took := duration(out); took > t.options.timeout/2 {
		fmt.Printf("%s: left out, its tests take %v: raise -timeout\n", test, took.Round(time.Second))
		t.unfit[test] = true
		return nil, nil
	}
	f, err := os.Open(profile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []span
	for s := bufio.NewScanner(f); s.Scan(); {
		// file:line.column,line.column statements count
		name, rest, ok := strings.Cut(s.Text(), ":")
		var from, fromColumn, to, toColumn, statements, count int
		if n, _ := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &from, &fromColumn, &to, &toColumn, &statements, &count); ok && n == 6 && count > 0 {
			list = append(list, span{strings.TrimPrefix(name, t.module+"/"), from, to})
		}
	}
	t.executed[key] = list
	return list, nil
}
