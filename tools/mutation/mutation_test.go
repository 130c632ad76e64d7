package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
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
// and is reported if no test executes its line. Changes of package variables, of functions
// with labels, and of conditions of cases that no test meets are tried too.
func TestTry(t *testing.T) {
	original, changed := t.TempDir(), t.TempDir()
	for _, dir := range []string{original, changed} {
		write(t, dir, "go.mod", "module m\n\ngo 1.24\n")
		write(t, dir, "a/a.go", `package a

func Add(x, y int) int { return x + y }

func Unused(x int) int {
	return x + 1
}

func Twice(x int) int {
	return x * 2
}

var three = 3

func Count() (n int) {
all:
	for range three {
		n++
		continue all
	}
	return n
}

func Fill(list []int) { list[0] = 7 }

func Join(x string) string { return x + x }

func Sign(x int) string {
	switch {
	case x < 0:
		return "-"
	case x > 8:
		return "large"
	}
	return "+"
}
`)
		write(t, dir, "a/a_test.go", `package a

import "testing"

func TestAdd(t *testing.T) {
	if Add(1, 2) != 3 {
		t.Fatal()
	}
	Twice(2)
}

func TestCount(t *testing.T) {
	list := []int{0, 0}
	if Fill(list); Count() != 3 || list[0] != 7 || list[1] != 0 {
		t.Fatal()
	}
}

func TestSign(t *testing.T) {
	if Sign(0) != "+" || Sign(8) != "+" {
		t.Fatal()
	}
}

func TestFails(t *testing.T) {
	if Add(1, 2) != 4 {
		t.Fatal()
	}
}
`)
		write(t, dir, "b/b.go", "package b\n\nimport \"m/a\"\n\nfunc Four() int { return a.Twice(2) }\n")
		write(t, dir, "b/b_test.go", "package b\n\nimport \"testing\"\n\nfunc TestFour(t *testing.T) {\n\tif Four() != 4 {\n\t\tt.Fatal()\n\t}\n}\n")
	}
	list, err := mutants(original, "a/a.go")
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range list {
		m.number = i + 1
	}
	tests, err := newTests(original, changed, list, options{timeout: time.Minute, limit: time.Minute, cache: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range list {
		o, err := tests.try(m)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d %s: %s", m.line, m.what, o))
	}
	want := []string{
		"3 + -> -: killed by a", "6 + -> -: NOT EXECUTED", "6 1 -> 1+1: NOT EXECUTED",
		"10 * -> +: SURVIVED", "10 2 -> 2+1: killed by b", "13 3 -> 3+1: killed by a",
		"18 ++ reversed: killed by a", "24 assignment removed: list[0] = 7: killed by a", "24 0 -> 0+1: killed by a", "24 7 -> 7+1: killed by a",
		"26 + -> -: does not compile",
		"30 < -> <=: killed by a", "30 0 -> 0+1: killed by a", "32 > -> >=: killed by a", "32 8 -> 8+1: SURVIVED",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Cheap tests run before expensive ones, whether they are subtests or not.
func TestRunsInOrder(t *testing.T) {
	tests := []testTime{
		{Name: "TestLong", CPU: 200 * time.Second}, {Name: "TestB", CPU: 2 * time.Second}, {Name: "TestC", CPU: time.Second},
		{Name: "TestS/one", CPU: 4 * time.Second}, {Name: "TestS/two", CPU: 20 * time.Second}, {Name: "TestOther", CPU: time.Second},
		{Name: "TestD", CPU: 8 * time.Second}, {Name: "TestUnfit", CPU: time.Second},
	}
	p := &profile{Tests: tests, Lines: map[string][]executed{"a.go": {{From: 3, To: 5, Tests: []int{0, 1, 2, 3, 4, 6, 7}}, {From: 9, To: 9, Tests: []int{5}}}}}
	var got []string
	for _, r := range p.runs(&mutant{file: "a.go", reached: 4}, func(name string) bool { return name != "TestUnfit" }) {
		got = append(got, fmt.Sprintf("%s %v", r.pattern(), r.cpu))
	}
	want := []string{"^(TestC|TestB)$ 3s", "^TestS$/^(one)$ 4s", "^(TestD)$ 8s", "^TestS$/^(two)$ 20s", "^(TestLong)$ 3m20s"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
