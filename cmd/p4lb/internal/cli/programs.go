package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/network/p4app"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// AddSourceFlags adds the flags for includes and macros to cmd.
func AddSourceFlags(cmd *cobra.Command, opts *p4.Options) {
	cmd.Flags().StringArrayVarP(&opts.IncludeDirs, "include", "I", nil, "search `DIR` for includes (repeatable)")
	cmd.Flags().StringArrayVarP(&opts.Defines, "define", "D", nil, "define a macro, as `NAME[=VALUE]` (repeatable)")
}

// CheckProgram reads and checks the program in the named file, and prints its
// errors.
func (c *Console) CheckProgram(name string, opts p4.Options) (*p4.Program, error) {
	if filepath.Ext(name) == ".json" {
		return nil, fmt.Errorf("reading %s: this is JSON, not P4: want the .p4 source", name)
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the current folder: %w", err)
	}
	host := &hostFS{cwd: cwd}
	file := host.file(name)
	opts.IncludeDirs = slices.Clone(opts.IncludeDirs) // the caller may reuse its slice
	for i, dir := range opts.IncludeDirs {
		info, err := os.Stat(dir)
		if err != nil {
			return nil, fmt.Errorf("-I %s: %w", dir, plain.Bare(err))
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

// Runnable reads a program for a switch: BMv2 JSON and its P4Info, or P4, which
// it compiles. The file p4info overrides the P4Info unless the name is "". An
// empty program name returns nil.
func (c *Console) Runnable(program, p4info string, opts p4.Options) ([]byte, *configv1.P4Info, error) {
	switch {
	case program == "":
		return nil, nil, nil
	case filepath.Ext(program) == ".json":
		text, err := c.ReadSource(program)
		if err != nil {
			return nil, nil, err
		}
		info, err := c.readP4Info(program, p4info)
		return text, info, err
	}
	p, err := c.CheckProgram(program, opts)
	if err != nil {
		return nil, nil, err
	}
	if err := p.Lower(); err != nil {
		return nil, nil, c.Diagnose(err)
	}
	if err := p.Describe(); err != nil {
		return nil, nil, c.Diagnose(err)
	}
	if err := c.Warn(p.Warnings, false); err != nil {
		return nil, nil, err
	}
	if p4info == "" {
		return p.JSON(), p.P4Info, nil
	}
	info, err := c.readP4Info(program, p4info)
	return p.JSON(), info, err
}

// readP4Info reads the named file, or, if the name is "", the P4Info file
// beside a JSON program.
func (c *Console) readP4Info(program, name string) (*configv1.P4Info, error) {
	if name == "" {
		base := strings.TrimSuffix(program, ".json")
		beside := []string{base + ".p4info.txtpb", base + ".txtpb", base + ".p4info.txt"} // as written by gen, by compile, and by users of p4c
		i := slices.IndexFunc(beside, func(name string) bool { _, err := os.Stat(name); return err == nil })
		if i < 0 {
			return nil, Hinted(fmt.Errorf("loading %s: its P4Info is missing", program), "name it with --p4info, or put it into %s", beside[0])
		}
		name = beside[i]
	}
	text, err := c.ReadSource(name)
	if err != nil {
		return nil, err
	}
	info := &configv1.P4Info{}
	if err := prototext.Unmarshal(text, info); err != nil {
		what := strings.TrimLeft(strings.TrimPrefix(err.Error(), "proto:"), " \u00a0") // protobuf deliberately varies this space
		return nil, fmt.Errorf("reading %s: not P4Info in text form: %s", DisplayName(name), what)
	}
	return info, nil
}

// Entries reads a file of entries for a program.
func (c *Console) Entries(file string, info *configv1.P4Info) (*p4app.Entries, error) {
	text, err := c.ReadSource(file)
	if err != nil {
		return nil, err
	}
	return p4app.ParseEntries(DisplayName(file), text, info)
}
