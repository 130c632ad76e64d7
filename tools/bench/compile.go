package bench

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/p4lb/p4lb/examples"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
	"github.com/p4lb/p4lb/p4src"
)

// benchProgram is the program used to measure the compiler.
const benchProgram = "flowlet.p4"

// Compile measures the compiler, as a process and stage by stage.
func Compile(ctx context.Context, runs int) ([]Measurement, error) {
	source, err := examples.FS.ReadFile(benchProgram)
	if err != nil {
		return nil, err
	}
	process, err := benchProcess(ctx, source, runs)
	if err != nil {
		return nil, err
	}
	list, err := benchStages(ctx, runs)
	return append(list, process...), err
}

// benchProcess measures p4lb compile as a process.
func benchProcess(ctx context.Context, source []byte, runs int) ([]Measurement, error) {
	dir, err := os.MkdirTemp("", "p4lb-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, benchProgram)
	if err := os.WriteFile(program, source, 0o666); err != nil {
		return nil, err
	}
	u, err := startAndWeigh(ctx, runs, "", "compile", program,
		"-o", filepath.Join(dir, "out.json"), "--p4info", filepath.Join(dir, "out.txtpb"))
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("p4lb compile %s -o --p4info, process from start to end, median of %d", benchProgram, runs)
	return []Measurement{
		{"compile.process", milliseconds(median(u.wall)), "ms", what},
		{"compile.process_memory", float64(u.memory) / 1024, "MiB", "its own peak resident memory, one run"},
	}, nil
}

// stages are the stages timed by compileStages, in order.
var stages = []struct{ name, what string }{
	{"scan", "preprocess and scan"},
	{"parse", "preprocess, scan and parse"},
	{"check", "resolve, type and fold"},
	{"lower", "lower to BMv2"},
	{"p4info", "generate the P4Info of"},
	{"write", "write JSON and P4Info as text of"},
}

// benchStages measures the compiler's stages separately.
func benchStages(ctx context.Context, runs int) ([]Measurement, error) {
	spent := make([][]time.Duration, len(stages)+1) // the last element is for all stages together
	for range runs {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		// Garbage of one run must not be collected during the next one.
		runtime.GC()
		marks, err := compileStages()
		if err != nil {
			return nil, err
		}
		for i := range stages {
			spent[i] = append(spent[i], marks[i+1].Sub(marks[i]))
		}
		spent[len(stages)] = append(spent[len(stages)], marks[len(stages)].Sub(marks[1]))
	}
	where := fmt.Sprintf(" %s, median of %d in a warm process", benchProgram, runs)
	var list []Measurement
	for i, stage := range stages {
		list = append(list, Measurement{"compile." + stage.name, milliseconds(median(spent[i])), "ms", stage.what + where})
	}
	total := milliseconds(median(spent[len(stages)]))
	return append(list, Measurement{"compile.total", total, "ms", "parse to write," + where}), nil
}

// compileStages compiles the program and returns the times when it began and
// when each stage ended. The first stage scans the program separately, so the
// other stages scan it again.
func compileStages() ([]time.Time, error) {
	marks := []time.Time{time.Now()}
	mark := func() { marks = append(marks, time.Now()) }
	opts := syntax.Options{Includes: p4src.Include()}
	if _, errs := syntax.Scan(examples.FS, benchProgram, opts); errs.Err() != nil {
		return nil, errs
	}
	mark()
	file, errs := syntax.Parse(examples.FS, benchProgram, opts)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	mark()
	info, list := types.Check(file)
	if err := syntax.Errors(list).Err(); err != nil {
		return nil, err
	}
	mark()
	p := &p4.Program{File: file, Info: info}
	if err := p.Lower(); err != nil {
		return nil, err
	}
	mark()
	if err := p.Describe(); err != nil {
		return nil, err
	}
	mark()
	p.JSON()
	p.P4InfoText()
	mark()
	return marks, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median[T cmp.Ordered](list []T) T {
	slices.Sort(list)
	return list[len(list)/2]
}
