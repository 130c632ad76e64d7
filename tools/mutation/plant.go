package main

import (
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

// selector is the package that changed code imports: Number is the mutant to run.
const selector = `package mutant

import (
	"os"
	"strconv"
)

var Number = func() int {
	data, _ := os.ReadFile(%q)
	n, _ := strconv.Atoi(string(data))
	return n
}()
`

// plant writes the mutants into the changed copy, each as a copy of its function's body
// that runs if the mutant is selected. It drops mutants that do not compile.
func (t *tests) plant(list []*mutant) error {
	if err := os.MkdirAll(filepath.Join(t.changed, ".tests"), 0o755); err != nil {
		return err
	}
	dir := filepath.Join(t.changed, "internal", "mutant")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "mutant.go"), fmt.Appendf(nil, selector, t.number), 0o644); err != nil {
		return err
	}
	files, folders := map[string][]*mutant{}, map[string]bool{}
	for _, m := range list {
		if m.body == [2]int{} {
			t.alone[m] = struct{}{}
			continue
		}
		files[m.file] = append(files[m.file], m)
		folders["./"+path.Dir(m.file)] = true
	}
	if len(files) == 0 {
		return nil
	}
	build := []string{"build", "-o", os.DevNull}
	for folder := range folders {
		build = append(build, folder)
	}
	slices.Sort(build[3:])
	copies := map[string][]span{}
	for file, list := range files {
		var err error
		if copies[file], err = t.write(file, list); err != nil {
			return err
		}
	}
	for {
		out, err := goCommand(t.changed, build...)
		if err == nil {
			return nil
		}
		dropped := map[string]bool{}
		for _, e := range compileError.FindAllSubmatch(out, -1) {
			file := path.Clean(filepath.ToSlash(string(e[1])))
			line, _ := strconv.Atoi(string(e[2]))
			for _, s := range copies[file] {
				if s.from <= line && line <= s.to && t.built[s.mutant] == nil {
					t.built[s.mutant] = &outcome{kind: invalid}
					dropped[file] = true
				}
			}
		}
		if len(dropped) == 0 {
			return err
		}
		for file := range dropped {
			files[file] = slices.DeleteFunc(files[file], func(m *mutant) bool { return t.built[m] != nil })
			if copies[file], err = t.write(file, files[file]); err != nil {
				return err
			}
		}
	}
}

var compileError = regexp.MustCompile(`(?m)^(\S+\.go):(\d+)`)

// A span is the range of lines of a mutant's copy.
type span struct {
	mutant   *mutant
	from, to int
}

// write writes a file with copies of bodies.
func (t *tests) write(file string, list []*mutant) ([]span, error) {
	src, err := os.ReadFile(filepath.Join(t.original, file))
	if err != nil {
		return nil, err
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b *mutant) int { return a.body[0] - b.body[0] })
	var out strings.Builder
	var spans []span
	line, at := 1, 0
	put := func(s string) {
		out.WriteString(s)
		line += strings.Count(s, "\n")
	}
	if len(list) > 0 {
		at = packageClause(src)
		put(string(src[:at]) + "; import mutant__ " + strconv.Quote(t.module+"/internal/mutant"))
	}
	for _, m := range list {
		put(string(src[at : m.body[0]+1]))
		at = m.body[0] + 1
		from := line
		put(fmt.Sprintf("\nif mutant__.Number == %d {%s%s%s\n}\n", m.number, src[at:m.from], m.text, src[m.to:m.body[1]-1]))
		spans = append(spans, span{m, from, line})
	}
	put(string(src[at:]))
	return spans, os.WriteFile(filepath.Join(t.changed, file), []byte(out.String()), 0o644)
}

var packageLine = regexp.MustCompile(`(?m)^package \w+`)

// packageClause returns the offset after the package clause.
func packageClause(src []byte) int { return packageLine.FindIndex(src)[1] }

// plantAlone writes a mutant that is compiled on its own. It reports whether the package
// compiles; restore undoes the change.
func (t *tests) plantAlone(m *mutant) (restore func(), ok bool, err error) {
	file := filepath.Join(t.changed, m.file)
	before, err := os.ReadFile(file)
	if err != nil {
		return nil, false, err
	}
	src, err := os.ReadFile(filepath.Join(t.original, m.file))
	if err != nil {
		return nil, false, err
	}
	restore = func() { os.WriteFile(file, before, 0o644) }
	if err := os.WriteFile(file, m.apply(src), 0o644); err != nil {
		return nil, false, err
	}
	if out, err := goCommand(t.changed, "build", "-o", os.DevNull, "./"+path.Dir(m.file)); err != nil {
		restore()
		if !compileError.Match(out) {
			return nil, false, err
		}
		return nil, false, nil
	}
	return restore, true, nil
}
