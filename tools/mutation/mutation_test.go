package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const program = `package p

import "fmt"

// max returns the larger number.
func larger(a, b int) int {
	if a < b {
		return b
	}
	fmt.Println("a")
	n := 0
	n++
	n = a + 1
	return n
}
`

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Each kind of change, at its line, changes the text and nothing else.
func TestMutants(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "p.go", program)
	list, err := mutants(dir, "p.go")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range list {
		changed := string(m.apply([]byte(program)))
		for i, line := range strings.Split(changed, "\n") {
			if old := strings.Split(program, "\n")[i]; line != old {
				if i+1 != m.line {
					t.Errorf("%s: line %d changes, not %d", m.what, i+1, m.line)
				}
				got = append(got, strings.TrimSpace(line))
			}
		}
	}
	want := []string{"if a <= b {", "", "n := (0+1)", "n--", "_ = a + 1", "n = a - 1", "n = a + (1+1)"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A mutant is killed by a test that checks the result, survives one that does not,
// and is reported if no test executes its line.
func TestTry(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "go.mod", "module m\n\ngo 1.24\n")
	write(t, dir, "a/a.go", "package a\n\nfunc Add(x, y int) int { return x + y }\n\nfunc Unused(x int) int {\n\treturn x + 1\n}\n\nfunc Twice(x int) int {\n\treturn x * 2\n}\n")
	write(t, dir, "a/a_test.go", "package a\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n\tTwice(2)\n}\n")
	write(t, dir, "b/b.go", "package b\n\nimport \"m/a\"\n\nfunc Four() int { return a.Twice(2) }\n")
	write(t, dir, "b/b_test.go", "package b\n\nimport \"testing\"\n\nfunc TestFour(t *testing.T) {\n\tif Four() != 4 {\n\t\tt.Fatal()\n\t}\n}\n")
	r, err := newTests(dir, options{tests: 4, timeout: 1e11})
	if err != nil {
		t.Fatal(err)
	}
	list, err := mutants(dir, "a/a.go")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"3 + -> -": "killed by a", "6 + -> -": "NOT EXECUTED", "6 1 -> 1+1": "NOT EXECUTED",
		"10 * -> +": "SURVIVED", "10 2 -> 2+1": "killed by b",
	}
	for _, m := range list {
		key := string('0'+rune(m.line%10)) + " " + m.what
		if m.line == 10 {
			key = "1" + key
		}
		got, err := r.try(m)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != want[key] {
			t.Errorf("%s: %s, want %s", key, got, want[key])
		}
		delete(want, key)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}
