package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// An interruption is a command that receives SIGINT while it works. It must end
// soon, without half-written files and without temporary files.
type interruption struct {
	name   string
	files  map[string]string
	before [][]string // commands that prepare its input
	args   []string
	// grows is set if the output consists of several files, each written
	// completely, with content that may differ between runs.
	grows bool
	// endless is set if the command does not end by itself.
	endless bool
}

// interruptions returns all interruptions. n scales the work.
func interruptions(n int) []interruption {
	large := p4("", "table t { key = { hdr.h.a: exact; } actions = { NoAction; } const entries = {"+numbered(10000*n, "#: NoAction();\n")+"} }", "t.apply();", "")
	small := p4("", "", "std.egress_spec = 2;", "")
	packets := strings.Repeat("packet 1 0000000000000000\nexpect 2 0000000000000000\n", 20000*n)
	record := recorded(40000*n, "µs")
	var observed strings.Builder
	observed.WriteString("clock_us,switch,port,egress_traffic,occupancy,dequeue_interval\n")
	for i := range 20000 * n {
		fmt.Fprintf(&observed, "%d,l1,1,%d,%d,%d.25\n", i, i*7919%100000, i*31%100, i*17%50)
	}
	topo := []string{"topo", "leaf-spine", "--leaves", fmt.Sprint(20 * n), "--spines", "16", "--hosts", "40", "-o", "net.yaml"}
	run := strings.Replace(experiment, "duration: 2ms", fmt.Sprintf("loads: [0.7]\nseeds: %d\nduration: 50ms", 4*n), 1)
	run = strings.Replace(run, "size: 10KB", "workload: websearch", 1)
	kept := [][]string{{"lab", "run", "x.yaml", "--store", "kept", "-o", "first"}}
	return []interruption{
		{name: "compile", files: map[string]string{"x.p4": large}, args: []string{"compile", "x.p4", "-o", "x.json", "--p4info", "x.txtpb"}},
		{name: "fmt -w", files: map[string]string{"x.p4": large}, args: []string{"fmt", "-w", "x.p4"}},
		{name: "manifest init", files: map[string]string{"x.p4": large}, args: []string{"manifest", "init", "x.p4"}},
		{name: "gen --all", args: []string{"gen", "--all", "-o", "out"}},
		{name: "test", files: map[string]string{"x.p4": small, "x.stf": packets}, args: []string{"test", "x.p4", "x.stf"}},
		{name: "switch --load", files: map[string]string{"x.p4": large}, args: []string{"switch", "--load", "x.p4", "--grpc", "127.0.0.1:0"}, endless: true},
		{name: "topo leaf-spine", args: topo},
		{name: "topo show", before: [][]string{topo}, args: []string{"topo", "show", "net.yaml", "-o", "again.yaml"}},
		{name: "topo routes", before: [][]string{topo}, args: []string{"topo", "routes", "net.yaml"}},
		{name: "topo graph", before: [][]string{topo}, args: []string{"topo", "graph", "net.yaml", "-o", "net.svg"}},
		{name: "advise", before: [][]string{topo}, args: []string{"advise", "--topology", "net.yaml", "--set", "rtt=16us", "--set", "buffer=256", "--scheme", "letflow", "-o", "p.yaml"}},
		{name: "inspect --replay", files: map[string]string{"x.csv": record}, args: []string{"inspect", "--replay", "x.csv"}},
		{name: "inspect --replay --watch", files: map[string]string{"x.csv": record}, args: []string{"inspect", "--replay", "x.csv", "--watch"}},
		{name: "fit, with a picture", files: map[string]string{"x.csv": observed.String()}, args: []string{"fit", "--data", "x.csv", "--degree", "8", "-o", "m.json", "--plot", "m.svg"}},
		{name: "lab run", files: map[string]string{"x.yaml": run}, args: []string{"lab", "run", "x.yaml", "-o", "out", "--cores", "1"}, grows: true},
		{name: "lab report, with PDFs", files: map[string]string{"x.yaml": run}, before: kept, args: []string{"lab", "report", "x.yaml", "--store", "kept", "-o", "out"}, grows: true},
		{name: "results verify", files: map[string]string{"x.yaml": run}, before: kept, args: []string{"results", "verify", "x", "--sample", "4", "--store", "kept"}},
		{name: "results export", files: map[string]string{"x.yaml": run}, before: kept, args: []string{"results", "export", "x", "--store", "kept", "-o", "x.parquet"}},
		{name: "resources, with a hanging compiler", files: map[string]string{"p4c": "#!/bin/sh\necho $$ >pid\nsleep 1000\n"},
			args: []string{"resources", "--scheme", "ecmp", "--compiler", "./p4c", "--assembler", "./p4c", "-I", "."}, endless: true, grows: true},
	}
}

// run interrupts the command after the given fractions of its work.
func (i *interruption) run(binary string, l limits, moments []float64) (o outcome) {
	whole, work, err := i.finish(binary, l)
	if err != nil {
		return outcome{lost: err.Error()}
	}
	for _, at := range moments {
		took, err := i.interrupt(binary, l, time.Duration(at*float64(work)), whole)
		if o.took = max(o.took, took); err != nil {
			o.lost = fmt.Sprintf("interrupted at %.0f %%: %v", at*100, err)
			return o
		}
	}
	return o
}

// place creates a folder with the command's input, and one for temporary files.
func (i *interruption) place(binary string) (dir, temp string, err error) {
	top, err := os.MkdirTemp("", "p4lb-soak-")
	if err != nil {
		return "", "", err
	}
	dir, temp = filepath.Join(top, "work"), filepath.Join(top, "temp")
	err = errors.Join(os.Mkdir(dir, 0o755), os.Mkdir(temp, 0o755))
	for name, text := range i.files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	for _, args := range i.before {
		if cmd := i.command(context.Background(), binary, dir, temp, args); err == nil {
			if text, e := cmd.CombinedOutput(); e != nil {
				err = fmt.Errorf("%v: %v: %.300s", args, e, text)
			}
		}
	}
	return dir, temp, err
}

func (i *interruption) command(ctx context.Context, binary, dir, temp string, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+temp)
	return cmd
}

// finish lets the command end normally, and returns its output files and its
// CPU time.
func (i *interruption) finish(binary string, l limits) (whole map[string][]byte, work time.Duration, err error) {
	if i.endless {
		return nil, 2 * time.Second, nil
	}
	dir, temp, err := i.place(binary)
	defer os.RemoveAll(filepath.Dir(dir))
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), max(l.time, time.Minute))
	defer cancel()
	cmd := i.command(ctx, binary, dir, temp, i.args)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return nil, 0, fmt.Errorf("it fails without interruption: %v: %.300s", err, text)
	}
	return filesBelow(dir), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// interrupt interrupts the command after it has used at of CPU time, and
// returns how long it took to end.
func (i *interruption) interrupt(binary string, l limits, at time.Duration, whole map[string][]byte) (took time.Duration, err error) {
	dir, temp, err := i.place(binary)
	defer os.RemoveAll(filepath.Dir(dir))
	if err != nil {
		return 0, err
	}
	before := filesBelow(dir)
	ctx, cancel := context.WithTimeout(context.Background(), max(2*l.time, time.Minute))
	defer cancel()
	cmd := i.command(ctx, binary, dir, temp, i.args)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan struct{})
	go func() { defer close(ended); cmd.Wait() }()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	begun := time.Now()
	progress := func() time.Duration {
		if i.endless {
			return time.Since(begun)
		}
		return worked(cmd.Process.Pid, begun)
	}
	for progress() < at {
		select {
		case <-tick.C:
			continue
		case <-ended:
		}
		break
	}
	begin := time.Now()
	cmd.Process.Signal(os.Interrupt)
	<-ended
	took = time.Since(begin)
	code := cmd.ProcessState.ExitCode()
	switch {
	case ctx.Err() != nil || took > l.end:
		return took, fmt.Errorf("it took %v to end", took.Round(time.Millisecond))
	case cmd.ProcessState.String() == "signal: interrupt": // the process had not installed its signal handler yet
	case code < 0 || died(said.String()):
		return took, fmt.Errorf("it crashed: %v: %.300s", cmd.ProcessState, &said)
	}
	if list := filesBelow(temp); len(list) > 0 {
		return took, fmt.Errorf("temporary files left: %v", slices.Sorted(maps.Keys(list)))
	}
	for name, text := range filesBelow(dir) {
		old, was := before[name]
		done, is := whole[name]
		switch {
		case was && bytes.Equal(text, old), is && bytes.Equal(text, done):
		case i.grows && !strings.HasPrefix(filepath.Base(name), ".") && !strings.Contains(name, "/."):
		default:
			return took, fmt.Errorf("%s is half-written, with %d bytes", name, len(text))
		}
	}
	return took, i.childGone(dir)
}

// childGone waits until the process with the number in the file pid has ended.
func (i *interruption) childGone(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		return nil // it has not started
	}
	for began := time.Now(); alive(strings.TrimSpace(string(text))); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			return errors.New("its child process is still running")
		}
	}
	return nil
}

// filesBelow reads all files in a folder.
func filesBelow(dir string) map[string][]byte {
	list := map[string][]byte{}
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			name, _ := filepath.Rel(dir, path)
			list[name], _ = os.ReadFile(path)
		}
		return nil
	})
	return list
}
