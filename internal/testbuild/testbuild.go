// Package testbuild builds p4lb for tests that run it as a process.
package testbuild

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// P4lb builds the command in a folder and returns its path. root is the path of the
// repository. P4lb looks at every source file, because the go command reuses the
// result of a test until a file changes that the test itself looked at.
func P4lb(root, dir string) (string, error) {
	for _, sources := range []string{"cmd", "codegen", "controller", "fitting", "internal", "templates"} {
		err := filepath.WalkDir(filepath.Join(root, sources), func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				_, err = os.Stat(path)
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	binary := filepath.Join(dir, "p4lb")
	out, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, filepath.Join(root, "cmd/p4lb")).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building p4lb: %v: %s", err, out)
	}
	return binary, nil
}
