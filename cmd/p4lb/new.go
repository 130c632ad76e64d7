package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/own"
	"github.com/p4lb/p4lb/internal/text/plain"
)

func newNew(c *cli.Console) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "new FOLDER [--from SCHEME]",
		Short: "Create a folder for your own load balancer",
		Long: `New creates a folder with a small working load balancer: a P4_16 program for
v1model, its manifest, packet tests, and an experiment against schemes of the
catalogue.

To create, test, compare and deploy it:

  p4lb new mine
  cd mine
  p4lb test                  # run its packet tests
  p4lb lab run               # run its experiment
  p4lb deploy --scheme . --topology qall

The program maps flows to paths by a hash. A comment marks the place for a better
choice. docs/own-program.md explains each step.

--from copies the programs of a scheme of the catalogue instead, one for leaves
and one for spines, with its feedback: queue lengths that switches share (drill,
qall), congestion that packets carry back (conga), flowlets (letflow). You may
change all of it, the manifests included.`,
		Example: `  p4lb new mine
  p4lb new mine --from conga
  p4lb new mine && p4lb lab run mine`,
		Args: cli.WantArgs(1, 1, "a folder to create"),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := args[0]
			name := filepath.Base(filepath.Clean(dir))
			files, err := own.Scaffold(name)
			if from != "" {
				files, err = scaffoldFrom(from, name)
			}
			if err != nil {
				return err
			}
			if list, err := os.ReadDir(dir); err == nil && len(list) > 0 {
				return fmt.Errorf("%s is not empty: want a new folder", dir)
			} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("creating %s: %w", dir, plain.Bare(err))
			}
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return fmt.Errorf("creating %s: %w", dir, plain.Bare(err))
			}
			var out cli.Outputs
			defer out.Discard()
			for _, f := range files {
				if err := out.Stage(filepath.Join(dir, f.Name), f.Text); err != nil {
					return err
				}
			}
			if err := out.Commit(); err != nil {
				return err
			}
			for _, f := range files {
				fmt.Fprintf(c.Out, "%-40s %s\n", filepath.Join(dir, f.Name), f.About)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "start from the programs of `SCHEME`, such as letflow, drill, conga or qall")
	cli.CompleteLater(cmd, "from", codegen.Names)
	return cmd
}

// fromNames are short names for rows of the catalogue to start from.
var fromNames = map[string]string{"qall": "qall-poly3"}

// pathsFrom is the size of the largest group of paths of a program that new
// --from copies.
const pathsFrom = 16

// scaffoldFrom returns the programs of a scheme, for leaves and spines.
func scaffoldFrom(from, name string) ([]own.File, error) {
	s, err := cli.LibraryFrom(".").Find(cmp.Or(fromNames[from], from))
	if err != nil {
		return nil, err
	}
	return own.FromCatalogue(s, name, codegen.Params{Ports: pathsFrom, MaxPort: 64}, string(fabric.Leaf), string(fabric.Spine))
}
