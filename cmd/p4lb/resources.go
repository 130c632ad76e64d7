package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/own"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// tofinoCompilers are the names of compilers with a Tofino backend.
var tofinoCompilers = []string{"p4c-barefoot", "bf-p4c"}

func newResources(c *cli.Console) *cobra.Command {
	j := &resourcesJob{c: c}
	cmd := &cobra.Command{
		Use:   "resources [FILE.p4...] [--arch tna|t2na] [--scheme SCHEME]... [--ports N]... [-o FORMAT]",
		Short: "Measure the Tofino resources of programs with the open compiler",
		Long: `Resources generates schemes for Tofino (tna) or Tofino 2 (t2na), compiles each with
the open compiler p4c, and prints its resources in the form of RLB's Table I: the
stages of ingress and egress, and for both together SRAM and TCAM blocks, bytes of
the match crossbars, hash bits, gateways, VLIW instructions and stateful ALUs.

With a FILE.p4, resources measures that program for TNA or T2NA and prints one line per
pipe. It refuses programs for v1model, which have no such resources.

The compiler is p4c-barefoot, the Tofino backend of p4lang/p4c, on PATH or named
by --compiler. -I adds its include folders if it does not find them. If its
assembler bfas is on PATH, or named by --assembler, resources also assembles the
programs for the hardware. For Tofino 2 it passes --no-clot to the compiler, as
the assembler miscounts payload that stays in the deparser's buffers (CLOTs).
A scheme that the architecture lacks, or that does not fit, has a line with the
reason.`,
		Example: `  p4lb resources --scheme letflow --ports 4
  p4lb resources --arch t2na --ports 2 --ports 4 --ports 8 -o csv
  p4lb resources mine.p4 -I include -D WIDE=1`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, ok := lintTargets[j.arch]; !ok {
				return cli.UsageError(cmd, "--arch %s: want tna or t2na", j.arch)
			}
			if len(args) > 0 && len(j.schemes) == 0 && cmd.Flags().Changed("ports") {
				return cli.UsageError(cmd, "--ports is for generated schemes: the program %s has its own size", args[0])
			}
			if j.programs = args; cmd.Flags().Changed("arch") {
				j.wanted = j.arch
			}
			return j.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&j.arch, "arch", "tna", "compile for the architecture `ARCH`: tna or t2na")
	flags.StringArrayVar(&j.schemes, "scheme", nil, "measure this `SCHEME` (repeatable; default the whole catalogue)")
	flags.IntSliceVar(&j.ports, "ports", []int{4}, "number of paths of the largest group (repeatable)")
	flags.StringVar(&j.compiler, "compiler", "", "run this compiler `FILE`")
	flags.StringVar(&j.assembler, "assembler", "", "run this assembler `FILE`")
	flags.StringArrayVarP(&j.includes, "include", "I", nil, "add a `DIR` with the compiler's includes (repeatable)")
	flags.StringArrayVarP(&j.defines, "define", "D", nil, "define a macro in a FILE.p4, as `NAME[=VALUE]` (repeatable)")
	flags.DurationVar(&j.timeout, "timeout", 5*time.Minute, "limit the `TIME` of a compilation")
	cli.AddFormat(cmd, &j.form, cli.Table, cli.JSON, cli.CSV)
	cli.CompleteLater(cmd, "scheme", codegen.Names)
	cli.CompleteWith(cmd, "arch", []string{"tna", "t2na"})
	return cmd
}

// A resourcesJob is one run of the resources verb.
type resourcesJob struct {
	c         *cli.Console
	programs  []string // files
	wanted    string   // the architecture by flag, "" if there is none
	arch      string
	schemes   []string
	ports     []int
	compiler  string
	assembler string
	includes  []string
	defines   []string
	timeout   time.Duration
	form      cli.Format
}

// A consumption contains the resources of one program, or in Note the reason
// why there are none.
type consumption struct {
	Scheme  string  `json:"scheme"`
	Paths   int     `json:"paths,omitempty"` // of schemes
	Lines   int     `json:"lines,omitempty"`
	Ingress int     `json:"ingress_stages,omitempty"`
	Egress  int     `json:"egress_stages,omitempty"`
	Taken   *demand `json:"resources,omitempty"`
	Note    string  `json:"note,omitempty"`
}

func (j *resourcesJob) run(ctx context.Context) error {
	if j.compiler == "" {
		j.compiler = firstInPath(tofinoCompilers...)
	}
	if j.compiler == "" {
		return cli.Hinted(errNoCompiler, "build p4lang/p4c with -DENABLE_TOFINO=ON and put p4c-barefoot on PATH, or name it with --compiler")
	}
	if j.assembler == "" {
		j.assembler = firstInPath("bfas")
	}
	for _, name := range []string{j.compiler, j.assembler} {
		if err := canRun(name); err != nil {
			return err
		}
	}
	if len(j.schemes) == 0 && len(j.programs) == 0 {
		j.schemes = codegen.Names()
	}
	dir, err := os.MkdirTemp("", "p4lb-resources")
	if err != nil {
		return fmt.Errorf("creating a folder for the compiler: %w", err)
	}
	defer plain.Temp(dir)()
	defer os.RemoveAll(dir)
	var list []consumption
	for _, file := range j.programs {
		own, err := j.measureOwn(ctx, dir, file)
		if err != nil {
			return err
		}
		list = append(list, own...)
	}
	for _, name := range j.schemes {
		s, err := cli.LibraryFrom(".").Find(name)
		if err != nil {
			return err
		}
		for _, n := range j.ports {
			u, err := j.measure(ctx, dir, s, n)
			if err != nil {
				return err
			}
			list = append(list, u)
			j.c.Log.Debug("compiled", "scheme", name, "paths", n, "ingress", u.Ingress, "egress", u.Egress)
		}
	}
	rows := cli.Grid{{"SCHEME", "PATHS", "LINES", "INGRESS", "EGRESS", "SRAM", "TCAM", "EXACT", "TERNARY", "HASH", "GATEWAY", "VLIW", "SALU", "NOTE"}}
	for _, u := range list {
		rows = append(rows, u.row())
	}
	return cli.Show(j.c.Out, j.form, rows, list)
}

// canRun checks that a program exists. It accepts the empty name.
func canRun(name string) error {
	if name == "" {
		return nil
	}
	_, err := exec.LookPath(name)
	if missing := (*exec.Error)(nil); errors.As(err, &missing) {
		return fmt.Errorf("finding %s: %w", name, plain.Bare(missing.Err))
	}
	return err
}

var errNoCompiler = errors.New("no compiler for Tofino on PATH")

// measure compiles one program. If the program cannot be generated or compiled,
// Note contains the reason. Other errors end the run.
func (j *resourcesJob) measure(ctx context.Context, dir string, s scheme.Scheme, ports int) (consumption, error) {
	u := consumption{Scheme: s.Name(), Paths: ports}
	p, err := scheme.Make(s, codegen.Params{Arch: j.arch, Ports: ports})
	if err != nil {
		_, u.Note, _ = strings.Cut(err.Error(), ": ")
		return u, nil
	}
	text, err := p.Text()
	if err != nil {
		return u, err
	}
	u.Lines = lineCount(text)
	source := filepath.Join(dir, "program.p4")
	if err := os.WriteFile(source, text, 0o666); err != nil {
		return u, fmt.Errorf("writing the program: %w", plain.Bare(err))
	}
	list, err := j.build(ctx, u, source, filepath.Join(dir, "out"), includesOf(s))
	if err != nil {
		return u, err
	}
	return list[0], nil
}

// measureOwn compiles a program of the user's own.
func (j *resourcesJob) measureOwn(ctx context.Context, dir, file string) ([]consumption, error) {
	p, err := j.c.CheckProgram(file, p4.Options{IncludeDirs: j.includes, Defines: j.defines, Arch: j.wanted})
	if err != nil {
		return nil, err
	}
	if _, ok := lintTargets[p.Arch]; !ok {
		return nil, cli.Hinted(fmt.Errorf("measuring %s: %w", cli.DisplayName(file), errNotTofino), "stages and memory blocks are Tofino's: want #include <tna.p4> or <t2na.p4>, and a Switch as main")
	}
	one := *j
	one.arch = p.Arch
	text, err := plain.ReadFile(file)
	if err != nil {
		return nil, plain.Bare(err)
	}
	return one.build(ctx, consumption{Scheme: cli.DisplayName(file), Lines: lineCount(text)}, file, filepath.Join(dir, "out"), nil)
}

// build compiles a source and measures each of its pipes. A program with several has the
// names of the pipes in the lines.
func (j *resourcesJob) build(ctx context.Context, u consumption, source, out string, includes []string) ([]consumption, error) {
	if err := os.RemoveAll(out); err != nil {
		return nil, fmt.Errorf("removing the last output of the compiler: %w", plain.Bare(err))
	}
	if text, err := j.compile(ctx, source, out, includes); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		u.Note = "does not compile: " + firstError(text, err)
		return []consumption{u}, nil
	}
	name := strings.TrimSuffix(filepath.Base(source), filepath.Ext(source)) + ".bfa"
	pipes, err := filepath.Glob(filepath.Join(out, "*", name))
	if err == nil && len(pipes) == 0 {
		err = fmt.Errorf("reading the output of the compiler: there is no %s: want one for each pipe", name)
	}
	if err != nil {
		return nil, err
	}
	var list []consumption
	for _, assembly := range pipes {
		of := u
		if len(pipes) > 1 {
			of.Scheme += " " + filepath.Base(filepath.Dir(assembly))
		}
		if err := j.measurePipe(ctx, &of, assembly); err != nil {
			return nil, err
		}
		list = append(list, of)
	}
	return list, nil
}

// measurePipe reads the stages and the resources of a pipe, and assembles it.
func (j *resourcesJob) measurePipe(ctx context.Context, u *consumption, assembly string) (err error) {
	if u.Ingress, u.Egress, err = stagesOf(assembly); err != nil {
		return err
	}
	if u.Taken, err = demandOf(filepath.Join(filepath.Dir(assembly), "logs", "resources.json")); err != nil {
		return err
	}
	if have := lintTargets[j.arch].Stages; max(u.Ingress, u.Egress) > have {
		u.Note = fmt.Sprintf("does not fit: %s has %d stages", lintTargets[j.arch].Name, have)
	} else if j.assembler != "" {
		if text, err := j.assemble(ctx, assembly); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			u.Note = "does not assemble: " + firstError(text, err)
		}
	}
	return nil
}

// target returns the compiler's name for the switch.
func (j *resourcesJob) target() string {
	if j.arch == "t2na" {
		return "tofino2"
	}
	return "tofino"
}

// assemble runs the assembler on the output of the compiler for a pipe.
func (j *resourcesJob) assemble(ctx context.Context, assembly string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	return j.output(ctx, j.assembler, "--target", j.target(), "-o", filepath.Join(filepath.Dir(assembly), "binary"), assembly)
}

// output runs a program and returns its output.
func (j *resourcesJob) output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cli.Group(cmd)
	text, err := cmd.CombinedOutput()
	if ctx.Err() == context.DeadlineExceeded {
		err = fmt.Errorf("no result after %v", j.timeout)
	}
	return string(text), err
}

// includesOf returns the include folders of a program of the user's own.
func includesOf(s scheme.Scheme) []string {
	if mine, ok := s.(*own.Scheme); ok {
		return mine.Folders()
	}
	return nil
}

// compile runs the compiler and returns its messages.
func (j *resourcesJob) compile(ctx context.Context, source, out string, more []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	number := "1"
	if j.arch == "t2na" {
		number = "2"
	}
	args := []string{"--target", j.target(), "--arch", j.arch, "-D__TARGET_TOFINO__=" + number, "-g", "-o", out}
	if j.arch == "t2na" {
		args = append(args, "--no-clot")
	}
	for _, dir := range slices.Concat(j.includes, more) {
		args = append(args, "-I", dir)
	}
	for _, d := range j.defines {
		args = append(args, "-D"+d)
	}
	return j.output(ctx, j.compiler, append(args, source)...)
}

// firstError returns the first error message in a compiler's output, or else
// err.
func firstError(text string, err error) string {
	for line := range strings.Lines(text) {
		if _, rest, ok := strings.Cut(line, "error:"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return err.Error()
}

// row returns the consumption as a row of the table.
func (u consumption) row() []string {
	row := []string{u.Scheme, "-"}
	if u.Paths > 0 {
		row[1] = fmt.Sprint(u.Paths)
	}
	if u.Taken == nil {
		for range 11 {
			row = append(row, "-")
		}
		return append(row, u.Note)
	}
	d := u.Taken
	for _, n := range []int{u.Lines, u.Ingress, u.Egress, d.SRAM, d.TCAM, d.Exact, d.Ternary, d.HashBits, d.Gateways, d.VLIW, d.StatefulALUs} {
		row = append(row, fmt.Sprint(n))
	}
	return append(row, u.Note)
}

// firstInPath returns the path of the first of the programs that exists.
func firstInPath(names ...string) string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
