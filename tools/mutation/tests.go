package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// An outcome is the result of a mutant.
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

// tests runs the tests of two copies of the repository.
type tests struct {
	original, changed string // folders of the copies; the second holds the mutants
	number            string // the file that names the mutant to run
	module            string
	options           options
	packages          []testPackage
	binaries          map[string]string   // test binaries of the changed copy by package
	profiles          map[string]*profile // by package
	sound             map[string]bool     // test runs that pass without a mutant
	unfit             map[[2]string]bool  // tests that fail without a mutant, by package and name
	invalid           map[*mutant]bool    // mutants that do not compile
	alone             map[*mutant]bool    // mutants that are compiled separately
}

// A testPackage is a package with tests, and all packages that its tests import.
type testPackage struct {
	path string
	uses map[string]bool
}

func newTests(original, changed string, list []*mutant, o options) (*tests, error) {
	t := &tests{
		original: original, changed: changed, number: filepath.Join(changed, ".mutant"), options: o,
		binaries: map[string]string{}, profiles: map[string]*profile{}, sound: map[string]bool{}, unfit: map[[2]string]bool{},
		invalid: map[*mutant]bool{}, alone: map[*mutant]bool{},
	}
	out, err := goCommand(original, "list", "-m")
	if err != nil {
		return nil, err
	}
	t.module = strings.TrimSpace(string(out))
	out, err = goCommand(original, "list", "-f",
		`{{.ImportPath}}|{{join .Deps " "}}|{{join .TestImports " "}} {{join .XTestImports " "}}|{{len .TestGoFiles}}{{len .XTestGoFiles}}`, "./...")
	if err != nil {
		return nil, err
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
	return t, t.plant(list)
}

// goCommand runs go in a folder.
func goCommand(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go %s: %w\n%s", args[0], err, out)
	}
	return out, err
}

// near returns the packages whose tests may execute code of p. The package's own
// tests come first, then packages with few imports.
func (t *tests) near(p string) []testPackage {
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
	return list
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// try runs the tests that execute the line of a mutant until one fails.
func (t *tests) try(m *mutant) (outcome, error) {
	if t.invalid[m] {
		return outcome{kind: invalid}, nil
	}
	var spent time.Duration
	result := outcome{kind: unexecuted}
	near := t.near(path.Join(t.module, path.Dir(m.file)))
	if n := t.options.packages; n > 0 {
		near = near[:min(n, len(near))]
	}
	for _, q := range near {
		if spent > t.options.limit {
			break
		}
		p, err := t.profile(q)
		if err != nil {
			return outcome{}, err
		}
		for _, r := range p.runs(m, func(name string) bool { return !t.unfit[[2]string{q.path, name}] }) {
			if spent += r.cpu; spent > t.options.limit && result.kind == survived {
				break
			}
			result.kind = survived
			failed, err := t.fails(m, q.path, r)
			if err != nil {
				return outcome{}, err
			}
			if failed {
				return outcome{killed, strings.TrimPrefix(q.path, t.module+"/")}, nil
			}
		}
	}
	return result, nil
}

// fails reports whether tests fail with a mutant that pass without it.
func (t *tests) fails(m *mutant, pkg string, r testRun) (bool, error) {
	for {
		_, err := t.test(m, pkg, r)
		if err == nil || !errors.As(err, new(*exec.ExitError)) && !errors.Is(err, context.DeadlineExceeded) {
			return false, err
		}
		key := pkg + " " + r.pattern()
		if t.sound[key] {
			return true, nil
		}
		out, err := t.test(nil, pkg, r)
		if err == nil {
			t.sound[key] = true
			return true, nil
		}
		bad := failures(out)
		kept := slices.DeleteFunc(slices.Clone(r.names), func(name string) bool { return slices.Contains(bad, name) })
		if len(kept) == len(r.names) {
			bad, kept = r.names, nil
		}
		for _, name := range bad {
			fmt.Printf("%s: %s: left out, it fails in the copy of the repository\n", pkg, name)
			t.unfit[[2]string{pkg, name}] = true
		}
		if r.names = kept; len(kept) == 0 {
			return false, nil
		}
	}
}

var failure = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)

// failures returns the names of the tests that failed.
func failures(out []byte) []string {
	var names []string
	for _, m := range failure.FindAllSubmatch(out, -1) {
		names = append(names, string(m[1]))
	}
	return names
}

// test runs tests of the changed copy with a mutant, or none.
func (t *tests) test(m *mutant, pkg string, r testRun) ([]byte, error) {
	number := 0
	if m != nil {
		number = m.number
	}
	if err := os.WriteFile(t.number, []byte(strconv.Itoa(number)), 0o644); err != nil {
		return nil, err
	}
	binary, alone := t.binaries[pkg], m != nil && t.alone[m]
	if binary == "" || alone {
		binary = filepath.Join(t.changed, ".tests", strings.ReplaceAll(pkg, "/", "+"))
		if alone {
			binary += ".alone"
		}
		if m == nil || !alone {
			t.binaries[pkg] = binary
		}
		restore := func() {}
		if alone { // a separate binary is used only once
			var err error
			if restore, err = t.plantAlone(m); err != nil {
				return nil, err
			}
		}
		_, err := goCommand(t.changed, "test", "-c", "-vet=off", "-o", binary, pkg)
		restore()
		if err != nil {
			return nil, err
		}
	}
	limit := 10*r.took + 10*time.Second
	out, _, err := runTests(filepath.Join(t.changed, strings.TrimPrefix(pkg, t.module)), limit, nil, binary, t.options.shortFlag(), "-test.run="+r.pattern(), "-test.failfast")
	return out, err
}

// maxMemory limits the virtual memory of tests, in KiB: a mutant may allocate without end.
const maxMemory = "16000000"

// runTests runs a test binary and returns its output and the CPU time that it used.
func runTests(dir string, limit time.Duration, env []string, binary string, args ...string) ([]byte, time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit+10*time.Second)
	defer cancel()
	args = append([]string{"-c", `ulimit -v ` + maxMemory + ` 2>/dev/null; exec "$@"`, "sh", binary, "-test.timeout=" + limit.String()}, args...)
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stop := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = stop
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		stop() // ends child processes that the tests started
	}
	if errors.Is(err, exec.ErrWaitDelay) { // a child kept the output open
		err = nil
	}
	var used time.Duration
	if s := cmd.ProcessState; s != nil {
		used = s.UserTime() + s.SystemTime()
	}
	return out, used, err
}
