package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// TestCheck has findings in comments, strings and Markdown, and none in code,
// directives, short strings and code blocks.
func TestCheck(t *testing.T) {
	const code = "package p\n\n" +
		"// F says what is kept.\n" + // 3
		"//go:generate nobody\n" +
		"func whoever() {\n" +
		"\tprint(\"what is\")\n" + // too short to be prose
		"\tprint(\"the switch that nobody reads\")\n" + // 7
		"\tprint(`two lines of text\nthe packets that there are`)\n" + // 9
		"}\n"
	const page = "# Page\n\nPrograms are told of it.\n\n    what is code\n\n```\nnobody\n```\nmade anew\n"
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"a.go": {code, `3 "says what" 3 "what is" 7 "nobody" 9 "that there are"`},
		"a.md": {page, `3 "are told" 3 "told of" 10 "anew"`},
	} {
		var got []string
		for _, f := range check(name, c.text) {
			got = append(got, fmt.Sprintf("%d %q", f.line, f.phrase))
		}
		// Findings of one line come in the order of the rules.
		for _, want := range strings.SplitAfter(c.want, `" `) {
			if want = strings.TrimSpace(want); !strings.Contains(strings.Join(got, " "), want) {
				t.Errorf("%s: no finding %s in %v", name, want, got)
			}
		}
		if want := strings.Count(c.want, `"`) / 2; len(got) != want {
			t.Errorf("%s: %d findings, want %d: %v", name, len(got), want, got)
		}
	}
}

// TestBaseline fails a file that exceeds its allowance, and no other.
func TestBaseline(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	try := func(update bool) (string, error) {
		var out strings.Builder
		err := run(&out, nil, update, 10)
		return out.String(), err
	}
	write("a.md", "made anew\n")
	if out, err := try(false); err == nil || !strings.Contains(out, `a.md:1: "anew": again`) {
		t.Fatalf("a finding without an allowance: %v\n%s", err, out)
	}
	write(baselineFile, "1\ta.md\n")
	if out, err := try(false); err != nil {
		t.Fatalf("a finding that is allowed: %v\n%s", err, out)
	}
	write("a.md", "made anew, and anew\n")
	if _, err := try(true); err != nil {
		t.Fatal(err)
	}
	if out, err := try(false); err == nil || !strings.Contains(out, "a.md: 2 findings, 1 allowed") {
		t.Fatalf("-update raised an allowance: %v\n%s", err, out)
	}
	write("a.md", "made again\n")
	if _, err := try(true); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(baselineFile); err != nil || len(text) > 0 {
		t.Errorf("-update keeps an allowance of a file without findings: %q, %v", text, err)
	}
	write(baselineFile, "many\ta.md\n")
	if _, err := try(false); err == nil || !strings.Contains(err.Error(), "baseline.txt:1:") {
		t.Errorf("an allowance that is no number: %v", err)
	}
}

// TestList leaves test data, generated files and build output out.
func TestList(t *testing.T) {
	tree := fstest.MapFS{"a.go": {}, "b/a.md": {}, "b/testdata/a.go": {}, "x.pb.go": {}, "build/a.md": {}, ".git/a.go": {}, "a.txt": {}}
	if files, err := list(tree); err != nil || strings.Join(files, " ") != "a.go b/a.md" {
		t.Errorf("%v, %v", files, err)
	}
}
