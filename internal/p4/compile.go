// Package p4 compiles P4_16 programs to BMv2 JSON and P4Info. It is the façade of
// the compiler; the stages are the packages syntax, types, lower and describe.
//
// Programs for Tofino (TNA, T2NA) become BMv2 documents too, which name their
// architecture. Package dataplane runs these documents; simple_switch and the
// hardware do not. Use p4c to compile for the hardware. Unsupported constructs of
// TNA and T2NA are errors with a position; docs/tofino.md lists them.
//
// The program and its includes are read from an fs.FS; no other file is opened.
// core.p4, v1model.p4, tna.p4 and t2na.p4 are built in.
package p4

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/describe"
	"github.com/p4lb/p4lb/internal/p4/lower"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
	"github.com/p4lb/p4lb/p4src"
)

// Options tune a compilation; the zero value is good for most programs.
type Options struct {
	// IncludeDirs are folders of the program's file system. They are searched for
	// included files in order, before the built-in files.
	IncludeDirs []string
	// Defines are macros, written NAME (which defines it as 1) or NAME=VALUE.
	Defines []string
	// Arch is one of Archs. If it is empty, it follows from the program's includes.
	Arch string
	// Show maps a name in the file system to the name that messages show; nil keeps
	// the names.
	Show func(name string) string
}

// A Program is a checked program with the outputs that have been generated from it.
type Program struct {
	File *syntax.File
	Info *types.Info
	Arch string // one of Archs, "" where the program has no main

	Config *bmv2.Config     // nil before Lower
	P4Info *configv1.P4Info // nil before Describe
	Schema *bfrt.Schema     // nil before DescribeBfRt
	// Entries are the entries that the program gives its tables; nil before
	// DescribeEntries.
	Entries []describe.Entry

	Warnings syntax.Errors
}

// Compile compiles the named program. The error, if any, is a syntax.Errors.
func Compile(fsys fs.FS, name string, opts Options) (*Program, error) {
	p, err := Check(fsys, name, opts)
	if err != nil {
		return nil, err
	}
	if err := p.Lower(); err != nil {
		return nil, err
	}
	if err := p.Describe(); err != nil {
		return nil, err
	}
	return p, nil
}

// CompileText compiles a program that is in memory. Name is its path, as fs.FS
// writes paths, for messages and for the document.
func CompileText(name string, text []byte, opts Options) (*Program, error) {
	return Compile(syntax.OneFile(name, text), name, opts)
}

// Check reads and checks the named program, which may be written for any
// architecture. The error, if any, is a syntax.Errors.
func Check(fsys fs.FS, name string, opts Options) (*Program, error) {
	file, arch, errs := parse(fsys, name, opts)
	if file == nil {
		return nil, errs
	}
	info, more := types.Check(file)
	errs = append(errs, more...)
	if opts.Arch != "" && arch != "" && arch != opts.Arch {
		errs = append(errs, &syntax.Error{
			Pos: mainDecl(file).Pos(),
			Msg: fmt.Sprintf("this is a program for %s; %[2]s wants #include <%[2]s.p4>", arch, opts.Arch),
		})
	}
	errs = errs.Clean()
	if err := errs.Err(); err != nil {
		if e := foreign(file); e != nil && foreignPackages[mainPackage(mainDecl(file)).Value] != "" { // The main package is of another architecture, which most likely causes the other errors.
			return nil, append(syntax.Errors{e}, errs...)
		}
		return nil, err
	}
	return &Program{File: file, Info: info, Arch: arch, Warnings: errs}, nil
}

// parse reads a program and finds its architecture. It may read the program twice,
// because the predefined macros depend on the architecture.
func parse(fsys fs.FS, name string, opts Options) (*syntax.File, string, syntax.Errors) {
	arch := cmp.Or(opts.Arch, Archs[0])
	file, errs := parseFor(fsys, name, opts, arch)
	if file == nil {
		return nil, "", errs
	}
	is := archOf(file)
	if is == "" || is == arch || opts.Arch != "" {
		return file, is, errs
	}
	if file, errs = parseFor(fsys, name, opts, is); file == nil {
		return nil, "", errs
	}
	return file, is, errs
}

// defines returns the macros of a compilation: those that p4c defines for the
// target, then the options. An option overrides a target's macro.
func defines(arch string, opts []string) []string {
	name := func(define string) string { n, _, _ := strings.Cut(define, "="); return n }
	target := targets[arch]
	if slices.ContainsFunc(opts, func(d string) bool { return name(d) == name(target) }) {
		return opts
	}
	return append([]string{target}, opts...)
}

func parseFor(fsys fs.FS, name string, opts Options, arch string) (*syntax.File, syntax.Errors) {
	return syntax.Parse(fsys, name, syntax.Options{
		IncludeDirs: opts.IncludeDirs,
		Includes:    p4src.Include(),
		Absent:      absent,
		Defines:     defines(arch, opts.Defines),
		Show:        opts.Show,
	})
}

// Main returns the name of the package that the program instantiates as main, or ""
// if it has no main.
func (p *Program) Main() string {
	main := p.Info.Top["main"]
	if main == nil || main.Kind != types.InstObj {
		return ""
	}
	if pkg, ok := main.Type.(*types.Package); ok {
		return pkg.Name
	}
	return ""
}

// WantArch returns an error, a syntax.Errors, if the program is written for an
// architecture that is not in Archs. A program without a main passes.
func (p *Program) WantArch() error {
	if e := foreign(p.File); e != nil {
		return syntax.Errors{e}
	}
	return nil
}

// Lower sets Config. The error, if any, is a syntax.Errors; it is "not supported"
// for valid P4_16 that BMv2 JSON cannot express.
func (p *Program) Lower() error {
	if p.Main() == "" {
		return syntax.Errors{{Msg: p.File.Name + " has no main, there is nothing to run", Class: syntax.NoMain}}
	}
	if err := p.WantArch(); err != nil {
		return err
	}
	config, errs := lower.Lower(p.File, p.Info, lower.Options{Program: p.File.Name, Arch: p.Arch})
	if err := p.add(errs); err != nil {
		return err
	}
	p.Config = config
	return nil
}

// Describe sets P4Info. It also works for programs that Lower does not support. The
// error, if any, is a syntax.Errors.
func (p *Program) Describe() error {
	info, errs := describe.P4Info(p.File, p.Info, p.Arch)
	if err := p.add(errs); err != nil {
		return err
	}
	p.P4Info = info
	return nil
}

// DescribeBfRt sets Schema, the schema that Intel's SDE has of a program for
// Tofino. The error, if any, is a syntax.Errors. It does not repeat the warnings of
// Describe.
func (p *Program) DescribeBfRt() error {
	schema, errs := describe.BfRt(p.File, p.Info, p.Arch)
	if schema == nil {
		return p.add(errs)
	}
	p.Schema = schema
	return nil
}

// DescribeEntries sets Entries. The error, if any, is a syntax.Errors. It does not
// repeat the warnings of Describe.
func (p *Program) DescribeEntries() error {
	list, errs := describe.Entries(p.File, p.Info, p.Arch)
	if errs.Err() != nil {
		return p.add(errs)
	}
	p.Entries = list
	return nil
}

// add stores the warnings of a stage. If there are errors, it returns them with all
// warnings so far.
func (p *Program) add(errs syntax.Errors) error {
	all := slices.Concat(p.Warnings, errs).Clean()
	if err := all.Err(); err != nil {
		return err
	}
	p.Warnings = all
	return nil
}

// JSON returns the Config as a document. simple_switch loads it if the program is
// for v1model.
func (p *Program) JSON() []byte {
	var b bytes.Buffer
	p.Config.Write(&b) // a bytes.Buffer never fails
	return b.Bytes()
}

// P4InfoText returns P4Info in the text form of protocol buffers.
func (p *Program) P4InfoText() []byte { return describe.Text(p.P4Info) }

// EntriesText returns Entries as the text of the P4Runtime WriteRequest that
// inserts them.
func (p *Program) EntriesText() []byte { return describe.EntriesText(p.Entries) }
