package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/p4"
)

// AddSourceFlags gives cmd the flags that say how a program is read.
func AddSourceFlags(cmd *cobra.Command, opts *p4.Options) {
	cmd.Flags().StringArrayVarP(&opts.IncludeDirs, "include", "I", nil, "look for includes in `DIR` (repeatable)")
	cmd.Flags().StringArrayVarP(&opts.Defines, "define", "D", nil, "define a macro, as `NAME[=VALUE]` (repeatable)")
}

// CheckProgram reads and checks the program in the named file, and prints what
// is wrong with it.
func (c *Console) CheckProgram(name string, opts p4.Options) (*p4.Program, error) {
	host, err := newHostFS()
	if err != nil {
		return nil, err
	}
	file := host.file(name)
	opts.IncludeDirs = slices.Clone(opts.IncludeDirs) // the caller's may be used again
	for i, dir := range opts.IncludeDirs {
		info, err := os.Stat(dir)
		if err != nil {
			return nil, fmt.Errorf("-I %s: %w", dir, BareError(err))
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("-I %s: not a folder", dir)
		}
		opts.IncludeDirs[i] = host.folder(dir)
	}
	opts.Show = host.show
	p, err := p4.Check(host, file, opts)
	if err != nil {
		return nil, c.Diagnose(err)
	}
	return p, nil
}

// LoadProgram reads BMv2 JSON, or compiles P4.
func (c *Console) LoadProgram(name string, opts p4.Options) (*bmv2.Config, error) {
	if filepath.Ext(name) == ".json" {
		text, err := c.ReadSource(name)
		if err != nil {
			return nil, err
		}
		config, err := bmv2.Load(text)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		return config, nil
	}
	p, err := c.CheckProgram(name, opts)
	if err != nil {
		return nil, err
	}
	if err := p.Lower(); err != nil {
		return nil, c.Diagnose(err)
	}
	return p.Config, c.Warn(p.Warnings, false)
}
