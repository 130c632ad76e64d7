package main

import (
	"bytes"
	"fmt"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/p4/format"
)

func newFmt(c *cli.Console) *cobra.Command {
	j := &fmtJob{c: c}
	cmd := &cobra.Command{
		Use:   "fmt [-w] [-l] [-d] [--check] FILE.p4...",
		Short: "Format P4 programs in canonical form",
		Long: `Fmt formats each program: it normalises indentation, spaces and alignment, and
keeps comments, preprocessor lines and line breaks in place. The file - is standard
input.`,
		Example: `  p4lb fmt -w *.p4         rewrite files that are not formatted
  p4lb fmt -d router.p4    show the changes
  p4lb fmt --check *.p4    for scripts: exit with 1 if a file is not formatted`,
		Args: cli.WantArgs(1, -1, "files, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var first error
			for _, name := range args {
				if name == "-" && j.write {
					return cli.UsageError(cmd, "-w and -: standard input cannot be rewritten")
				}
			}
			for _, name := range args {
				if err := j.file(name); err != nil {
					if first != nil {
						j.c.Report(first)
					}
					first = err
				}
			}
			if first == nil && j.check && j.changed {
				return cli.ErrReported
			}
			return first
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&j.write, "write", "w", false, "rewrite the files in place")
	flags.BoolVarP(&j.list, "list", "l", false, "list the files that would change")
	flags.BoolVarP(&j.diff, "diff", "d", false, "show the changes")
	flags.BoolVar(&j.check, "check", false, "exit with 1 if a file would change")
	return cmd
}

// A fmtJob is one run of the fmt verb.
type fmtJob struct {
	c                        *cli.Console
	write, list, diff, check bool
	changed                  bool
}

// file formats one file and handles the result as the flags request.
func (j *fmtJob) file(name string) error {
	old, err := j.c.ReadSource(name)
	if err != nil {
		return err
	}
	text, err := format.Format(old, cli.DisplayName(name))
	if err != nil {
		return j.c.Diagnose(err)
	}
	changed := !bytes.Equal(old, text)
	j.changed = j.changed || changed
	if changed && j.list {
		fmt.Fprintln(j.c.Out, cli.DisplayName(name))
	}
	if changed && j.diff {
		j.c.Out.Write(diff.Diff(name+" (original)", old, name+" (formatted)", text))
	}
	if changed && j.write {
		return rewrite(name, text)
	}
	if j.write || j.list || j.diff || j.check {
		return nil
	}
	_, err = j.c.Out.Write(text)
	return err
}

func rewrite(name string, text []byte) error {
	var out cli.Outputs
	defer out.Discard()
	if err := out.Stage(name, text); err != nil {
		return err
	}
	return out.Commit()
}
