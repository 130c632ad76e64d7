// Command prose reports phrases in comments, strings and Markdown that readers
// stumble over.
//
//	prose [-update] [-max N] [FILE...]
//
// Without files it checks every Go and Markdown file of the repository. It prints
// each finding as file:line: phrase: suggestion. baseline.txt states how many
// findings a file may have; more are an error. The flag -update lowers these
// allowances to the current findings, and never raises one.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// baselineFile lists the files that still have findings, with their number.
const baselineFile = "tools/prose/baseline.txt"

func main() {
	update := flag.Bool("update", false, "lower the allowances of "+baselineFile+" to the present findings")
	most := flag.Int("max", 40, "print at most `N` findings")
	flag.Parse()
	if err := run(os.Stdout, flag.Args(), *update, *most); err != nil {
		fmt.Fprintf(os.Stderr, "prose: %v\n", err)
		os.Exit(1)
	}
}

// run checks the files named, or all files of the repository in the current
// folder. It returns an error if a file exceeds its allowance.
func run(w io.Writer, files []string, update bool, most int) error {
	allowed, err := readBaseline(baselineFile)
	if err != nil {
		return err
	}
	all := len(files) == 0
	if all {
		if files, err = list(os.DirFS(".")); err != nil {
			return err
		}
	}
	found := map[string][]finding{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(filepath.Clean(name))
		if list := check(name, string(text)); len(list) > 0 {
			found[name] = list
		}
	}
	if update {
		return writeBaseline(baselineFile, lower(allowed, found, all))
	}
	return report(w, allowed, found, most)
}

// report prints the findings of the files that exceed their allowance.
func report(w io.Writer, allowed map[string]int, found map[string][]finding, most int) error {
	over, printed := 0, 0
	for _, name := range slices.Sorted(maps.Keys(found)) {
		list := found[name]
		if len(list) <= allowed[name] {
			continue
		}
		over++
		for _, f := range list {
			if printed++; printed <= most {
				fmt.Fprintf(w, "%s:%d: %q: %s\n", name, f.line, f.phrase, f.advice)
			}
		}
		if allowed[name] > 0 {
			fmt.Fprintf(w, "%s: %d findings, %d allowed by %s\n", name, len(list), allowed[name], baselineFile)
		}
	}
	if printed > most {
		fmt.Fprintf(w, "%d more findings: -max %d prints them\n", printed-most, printed)
	}
	if over > 0 {
		return fmt.Errorf("%d files have phrases that are hard to read: rewrite the sentences (CONTRIBUTING.md, Style)", over)
	}
	return nil
}

// lower returns the new allowances: at most the previous ones and at most the
// number of findings. Files that were not checked keep theirs. If there were no
// allowances at all, all findings are allowed.
func lower(allowed map[string]int, found map[string][]finding, all bool) map[string]int {
	first := len(allowed) == 0
	next := map[string]int{}
	if !all {
		maps.Copy(next, allowed)
	}
	for name, list := range found {
		n := len(list)
		if !first {
			n = min(n, allowed[name])
		}
		next[name] = n
	}
	maps.DeleteFunc(next, func(_ string, n int) bool { return n == 0 })
	return next
}

// list returns the Go and Markdown files below a folder, without test data,
// generated files and hidden folders.
func list(tree fs.FS) ([]string, error) {
	var files []string
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(base, ".") || slices.Contains([]string{"testdata", "bin", "build", "dist"}, base)):
			return fs.SkipDir
		case d.IsDir() || strings.HasSuffix(base, ".pb.go"):
		case path.Ext(base) == ".go", path.Ext(base) == ".md":
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

// readBaseline reads lines of a number and a file. A file that does not exist
// allows nothing.
func readBaseline(name string) (map[string]int, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	allowed := map[string]int{}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for n := 1; lines.Scan(); n++ {
		count, file, ok := strings.Cut(lines.Text(), "\t")
		number, err := strconv.Atoi(count)
		if !ok || err != nil || number < 1 {
			return nil, fmt.Errorf("%s:%d: %q: want a number, a tab and a file", name, n, lines.Text())
		}
		allowed[file] = number
	}
	return allowed, nil
}

func writeBaseline(name string, allowed map[string]int) error {
	var b strings.Builder
	for _, file := range slices.Sorted(maps.Keys(allowed)) {
		fmt.Fprintf(&b, "%d\t%s\n", allowed[file], file)
	}
	return os.WriteFile(name, []byte(b.String()), 0o666)
}
