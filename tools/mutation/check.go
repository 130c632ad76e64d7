package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// A checker type-checks packages of the original copy with one change.
type checker struct {
	dir     string
	files   map[string][]string // by import path
	exports map[string]string   // files with the types of packages, by import path
	fset    *token.FileSet
	imports types.Importer
}

// newChecker returns a checker for the packages in folders.
func newChecker(dir string, folders []string) (*checker, error) {
	c := &checker{dir: dir, files: map[string][]string{}, exports: map[string]string{}, fset: token.NewFileSet()}
	out, err := goCommand(dir, append([]string{"list", "-export", "-deps", "-f", `{{.ImportPath}}|{{.Export}}|{{join .GoFiles " "}}`}, folders...)...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Split(strings.TrimSpace(line), "|"); len(f) == 3 {
			c.exports[f[0]], c.files[f[0]] = f[1], strings.Fields(f[2])
		}
	}
	c.imports = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(c.exports[path]) })
	return c, nil
}

// compiles reports whether a package compiles with a mutant.
func (c *checker) compiles(pkg string, m *mutant) (bool, error) {
	if len(c.files[pkg]) == 0 {
		return false, fmt.Errorf("%s: go list names no files", pkg)
	}
	var files []*ast.File
	for _, name := range c.files[pkg] {
		file := filepath.Join(c.dir, path.Dir(m.file), name)
		text, err := os.ReadFile(file)
		if err != nil {
			return false, err
		}
		if name == path.Base(m.file) {
			text = m.apply(text)
		}
		f, err := parser.ParseFile(c.fset, file, text, parser.SkipObjectResolution)
		if err != nil {
			return false, nil
		}
		files = append(files, f)
	}
	config := types.Config{Importer: c.imports}
	_, err := config.Check(pkg, c.fset, files, nil)
	return err == nil, nil
}
