package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
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
			continue // deleted, but not committed
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

// plant writes the mutants into the changed copy, each as a copy of its function's
// body that runs if the mutant is selected. It omits mutants that do not compile.
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
		folders["./"+path.Dir(m.file)] = true
	}
	check, err := newChecker(t.original, slices.Sorted(maps.Keys(folders)))
	if err != nil {
		return err
	}
	for _, m := range list {
		ok, err := check.compiles(path.Join(t.module, path.Dir(m.file)), m)
		switch {
		case err != nil:
			return err
		case !ok:
			t.invalid[m] = true
		case m.body == [2]int{}:
			t.alone[m] = true
		default:
			files[m.file] = append(files[m.file], m)
		}
	}
	for file, list := range files {
		if err := t.write(file, list); err != nil {
			return err
		}
	}
	return nil
}

// write writes a file with copies of bodies.
func (t *tests) write(file string, list []*mutant) error {
	src, err := os.ReadFile(filepath.Join(t.original, file))
	if err != nil {
		return err
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b *mutant) int { return a.body[0] - b.body[0] })
	at := packageClause(src)
	var out strings.Builder
	fmt.Fprintf(&out, "%s; import mutant__ %q", src[:at], t.module+"/internal/mutant")
	for _, m := range list {
		out.Write(src[at : m.body[0]+1])
		at = m.body[0] + 1
		fmt.Fprintf(&out, "\nif mutant__.Number == %d {%s%s%s%s\n}\n", m.number, src[at:m.from], m.text, src[m.to:m.body[1]-1], m.end)
	}
	out.Write(src[at:])
	return os.WriteFile(filepath.Join(t.changed, file), []byte(out.String()), 0o644)
}

var packageLine = regexp.MustCompile(`(?m)^package \w+`)

// packageClause returns the offset after the package clause.
func packageClause(src []byte) int { return packageLine.FindIndex(src)[1] }

// plantAlone writes a mutant that is compiled separately. restore undoes the
// change.
func (t *tests) plantAlone(m *mutant) (restore func(), err error) {
	file := filepath.Join(t.changed, m.file)
	before, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	src, err := os.ReadFile(filepath.Join(t.original, m.file))
	if err != nil {
		return nil, err
	}
	restore = func() { os.WriteFile(file, before, 0o644) }
	return restore, os.WriteFile(file, m.apply(src), 0o644)
}
