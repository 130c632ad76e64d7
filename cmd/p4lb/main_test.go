package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/examples"
	"github.com/p4lb/p4lb/internal/lab/dataset"
	"github.com/p4lb/p4lb/internal/text/plain"
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

func TestMain(m *testing.M) {
	testscript.Main(withState{m}, map[string]func(){"p4lb": main})
}

// withState runs the tests with a separate folder for the state of deployments.
type withState struct{ m *testing.M }

func (w withState) Run() int {
	dir, err := os.MkdirTemp("", "p4lb-test-state-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.Setenv("XDG_STATE_HOME", dir)
	return w.m.Run()
}

// TestScripts runs testdata/script, at least one script per verb. With -short,
// for the race detector, it skips scripts whose verbs have only one goroutine.
func TestScripts(t *testing.T) {
	p := scripts()
	p.UpdateScripts = *update
	all, err := filepath.Glob("testdata/script/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		if testing.Short() && inOneGoroutine(t, file) {
			t.Logf("%s is left to the plain run: its verbs have one goroutine", file)
			continue
		}
		p.Files = append(p.Files, file)
	}
	if len(p.Files) < len(all)/2 {
		t.Fatalf("%d scripts of %d are run, want half of them at least", len(p.Files), len(all))
	}
	testscript.Run(t, p)
}

// alone lists the verbs that start no goroutines. gen starts some with --all, unless it refuses it.
var alone = strings.Fields("advise compile completion fit fmt gen lint man manifest new resources schemes test topo version")

// inOneGoroutine reports whether a script uses only such verbs.
func inOneGoroutine(t *testing.T, file string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(`(?m)^p4lb gen --all`).Match(text) {
		return false
	}
	verbs := regexp.MustCompile(`(?m)^[^#\n]*\bp4lb ([a-z0-9]+)`).FindAllSubmatch(text, -1)
	return len(verbs) > 0 && !slices.ContainsFunc(verbs, func(m [][]byte) bool { return !slices.Contains(alone, string(m[1])) })
}

// scripts returns the parameters of testscript.
func scripts() testscript.Params {
	return testscript.Params{
		Setup: func(env *testscript.Env) error {
			// The race detector delays the end of each process by a second.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
			env.Setenv("GOGC", "") // p4lb sets it unless given
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "namespaces":
				// Users can mount file systems in their own namespace unless
				// the host forbids it.
				return exec.Command("unshare", "-Urm", "true").Run() == nil, nil
			case "bmv2": // requirements of deploy --target bmv2
				_, err1 := exec.LookPath("simple_switch_grpc")
				_, err2 := exec.LookPath("ip")
				return os.Geteuid() == 0 && err1 == nil && err2 == nil, nil
			}
			return false, fmt.Errorf("there is no condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"example": example,
			"address": address,

			"observations": observations,
		},
	}
}

// exits runs a program and checks its exit code: exits 2 p4lb compile.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG]...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// example copies files of the examples into the script's folder.
func example(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: example FILE...")
	}
	for _, arg := range args {
		ts.Check(fs.WalkDir(examples.FS, arg, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir():
				return os.MkdirAll(ts.MkAbs(name), 0o777)
			}
			text, err := examples.FS.ReadFile(name)
			if err != nil {
				return err
			}
			return plain.WriteFile(ts.MkAbs(name), text)
		}))
	}
}

// address sets variables to addresses in use, or to free ones, all of them different:
// address taken|free VAR...
func address(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[0] != "taken" && args[0] != "free" {
		ts.Fatalf("usage: address taken|free VAR...")
	}
	for _, name := range args[1:] {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		ts.Check(err)
		ts.Setenv(name, l.Addr().String())
		if args[0] == "free" {
			defer l.Close() // after the others have theirs
			continue
		}
		ts.Defer(func() { l.Close() })
	}
}

// observations writes a dataset for fit: observations FILE ROWS.
func observations(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: observations FILE ROWS")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(plain.WriteFile(ts.MkAbs(args[0]), dataset.Synthetic(n)))
}

func TestDigits(t *testing.T) {
	for _, c := range []struct {
		value float64
		want  string
	}{{0.1234, "0.123"}, {1.234, "1.23"}, {12.34, "12.3"}, {1234.5, "1234"}} {
		if got := fmt.Sprintf("%.*f", digits(c.value), c.value); got != c.want {
			t.Errorf("%v is shown as %s, want %s", c.value, got, c.want)
		}
	}
}

// TestInterrupted interrupts a long verb, which must stop with the exit code of
// an interrupt.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs strings.Builder
	if code := run(ctx, []string{"bench"}, nil, &out, &errs); code != cli.ExitInterrupted {
		t.Errorf("exit code %d, want %d", code, cli.ExitInterrupted)
	}
	if out.String() != "" || errs.String() != "error: interrupted\n" {
		t.Errorf("got %q and %q", out.String(), errs.String())
	}
}

// TestInterruptedInput interrupts a verb that waits for input.
func TestInterruptedInput(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	silent, _ := io.Pipe()
	var out, errs strings.Builder
	asked := readerFunc(func(p []byte) (int, error) {
		cancel()
		return silent.Read(p)
	})
	if code := run(ctx, []string{"fmt", "-"}, asked, &out, &errs); code != cli.ExitInterrupted {
		t.Errorf("exit code %d, want %d: %s", code, cli.ExitInterrupted, &errs)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
