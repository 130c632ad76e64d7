package p4lb_test

import (
	"encoding/json"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Every package compiles for linux and darwin on arm64, which have releases. Some
// files are only compiled there. The test checks types and generates no code, which
// would take minutes.
func TestOtherPlatforms(t *testing.T) {
	if testing.Short() {
		t.Skip("types do not depend on the race detector, and this takes several seconds")
	}
	for _, platform := range []string{"linux/arm64", "darwin/arm64"} {
		if platform == runtime.GOOS+"/"+runtime.GOARCH {
			continue // compiled by this test run
		}
		goos, goarch, _ := strings.Cut(platform, "/")
		t.Run(goos+"-"+goarch, func(t *testing.T) { checkTypes(t, goos, goarch) })
	}
}

// A listed is a package as go list prints it.
type listed struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	ImportMap  map[string]string
	Module     *struct{ Main bool }
}

// checkTypes checks the types of all packages of the module for a platform.
func checkTypes(t *testing.T, goos, goarch string) {
	list := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./...")
	list.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	checked := map[string]*types.Package{"unsafe": types.Unsafe}
	fset := token.NewFileSet()
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p listed
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		own := p.Module != nil && p.Module.Main
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		config := types.Config{
			Importer:         mapped{p.ImportMap, checked},
			IgnoreFuncBodies: !own,
			FakeImportC:      true,
			Sizes:            types.SizesFor(build.Default.Compiler, goarch),
			Error: func(err error) {
				if own {
					t.Error(err)
				}
			},
		}
		checked[p.ImportPath], _ = config.Check(p.ImportPath, fset, files, nil)
	}
}

// mapped finds checked packages by the paths of import declarations.
type mapped struct {
	names   map[string]string
	checked map[string]*types.Package
}

// Import implements types.Importer.
func (m mapped) Import(path string) (*types.Package, error) {
	if name := m.names[path]; name != "" {
		path = name
	}
	return m.checked[path], nil
}
