// Command soak attacks a p4lb binary with input that once made it hang, exhaust
// memory or write outside of its folder, and its servers with malicious
// clients, for a given time. It prints the resources used during each attack.
// An attack succeeds if a process exceeds its limit of time or memory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// limits are the limits of a process.
type limits struct {
	time   time.Duration
	memory int64         // in MiB
	write  time.Duration // 99th percentile of write times on a switch
	end    time.Duration // time to end after an interrupt
	// packets is the maximum slowdown of packets under attack; 0: no limit.
	packets float64
}

// An outcome is the result of one attack.
type outcome struct {
	took   time.Duration // CPU time
	memory int64         // peak memory in MiB
	quiet  time.Duration // 99th percentile of write times without attack
	writes time.Duration // 99th percentile under attack
	note   string        // additional text
	lost   string        // reason why the attack succeeded; "" if it failed
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == besieger {
		if err := besiege(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	binary := flag.String("p4lb", "bin/p4lb", "the `BINARY` to attack")
	length := flag.Duration("for", time.Minute, "run for `TIME`, but at least every attack once")
	memory := flag.Int64("memory", 1024, "memory limit of a process in `MiB`")
	progress := flag.Duration("progress", 30*time.Second, "`TIME` limit of a process")
	write := flag.Duration("write", 100*time.Millisecond, "`TIME` limit for 99 of 100 writes under attack")
	end := flag.Duration("end", time.Second, "`TIME` limit for ending after an interrupt")
	raced := flag.Bool("race", false, "build and attack a binary with the race detector, with higher limits")
	only := flag.String("only", "", "run only attacks with names that match the regular expression `PATTERN`")
	flag.Parse()
	names, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
	path, err := filepath.Abs(*binary)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	l := limits{*progress, *memory, *write, *end, 1.25}
	remove := func() {}
	if *raced {
		if path, remove, err = withRaceDetector(); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
		const slower = 20
		l = limits{slower * l.time, slower * l.memory, slower * l.write, slower * l.end, 0}
	}
	held := soak(path, *length, names, l)
	if remove(); !held {
		os.Exit(1)
	}
}

// withRaceDetector builds a binary with the race detector. The caller must call
// remove.
func withRaceDetector() (binary string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "p4lb-soak-")
	if err != nil {
		return "", nil, err
	}
	binary = filepath.Join(dir, "p4lb")
	if text, err := exec.Command("go", "build", "-race", "-trimpath", "-o", binary, "./cmd/p4lb").CombinedOutput(); err != nil {
		os.RemoveAll(dir)
		return "", nil, fmt.Errorf("building p4lb with the race detector: %v: %s", err, text)
	}
	return binary, func() { os.RemoveAll(dir) }, nil
}

// died reports whether the output of a process contains a Go crash or a data
// race.
func died(said string) bool {
	return strings.Contains(said, "goroutine ") || strings.Contains(said, "DATA RACE")
}

// soak runs the attacks with matching names, each round harder than the one
// before, until the time is over. It reports whether all of them failed.
func soak(binary string, length time.Duration, names *regexp.Regexp, l limits) bool {
	held := true
	fmt.Printf("%-50s %8s %6s %9s %9s\n", "", "", "", "WRITES", "P99 UNDER")
	fmt.Printf("%-50s %8s %6s %9s %9s\n", "ATTACK", "CPU", "MiB", "P99", "ATTACK")
	report := func(name string, run func() outcome) {
		if !names.MatchString(name) {
			return
		}
		o := run()
		held = held && o.lost == ""
		writes := [2]string{}
		for i, d := range []time.Duration{o.quiet, o.writes} {
			if d > 0 {
				writes[i] = d.Round(10 * time.Microsecond).String()
			}
		}
		fmt.Printf("%-50s %7.2fs %6d %9s %9s  %s%s\n", name, o.took.Seconds(), o.memory, writes[0], writes[1], o.note, o.lost)
	}
	// Clients run in this process, and its memory counts for processes that it
	// starts later, so the commands come first.
	began, n := time.Now(), 1
	for ; n == 1 || time.Since(began) < length/2; n++ {
		for _, a := range slices.Concat(attacks(min(n, 3)), liars(), stores(32)) {
			report(a.name, func() outcome { return a.run(binary, l) })
		}
		for _, i := range interruptions(min(n, 3)) {
			report("SIGINT: "+i.name, func() outcome { return i.run(binary, l, []float64{0.1, 0.3, 0.5, 0.7, 0.9, 0.97}) })
		}
	}
	for n = 1; n == 1 || time.Since(began) < length; n++ {
		for _, s := range allSieges() {
			report(s.title(), func() outcome { return s.lay(binary, l, 3*time.Second, 50_000*min(n, 4)) })
		}
	}
	return held
}

// run executes an attack in its own folder.
func (a *attack) run(binary string, l limits) (o outcome) {
	dir, err := os.MkdirTemp("", "p4lb-soak-")
	if err != nil {
		return outcome{lost: err.Error()}
	}
	defer os.RemoveAll(dir)
	work := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return outcome{lost: err.Error()}
	}
	address := ""
	if a.serve != nil {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return outcome{lost: err.Error()}
		}
		address = l.Addr().String()
		defer a.serve(l)()
	}
	for name, text := range a.files {
		text = strings.ReplaceAll(text, "ADDRESS", address)
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
			return outcome{lost: err.Error()}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.time)
	defer cancel()
	args := lists.Map(a.args, func(arg string) string { return strings.ReplaceAll(arg, "ADDRESS", address) })
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir, cmd.Env = work, append(os.Environ(), "AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x")
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return outcome{lost: err.Error()}
	}
	o.took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	o.memory = peak(cmd.ProcessState)
	code := cmd.ProcessState.ExitCode()
	switch {
	case ctx.Err() != nil:
		o.lost = "does not end in time"
	case o.memory > l.memory:
		o.lost = "exceeds the memory limit"
	case a.code >= 0 && code != a.code:
		o.lost = fmt.Sprintf("exit code %d, want %d: %.200s", code, a.code, text)
	case !strings.Contains(string(text), a.says):
		o.lost = fmt.Sprintf("output %.200q, want text containing %q", text, a.says)
	case died(string(text)):
		o.lost = fmt.Sprintf("it crashed: %.200s", text)
	case strings.ContainsAny(string(text), "\x1b\x07"):
		o.lost = fmt.Sprintf("control characters in the output: %.200q", text)
	case !onlyBelow(dir, filepath.Join("a", "b")):
		o.lost = "it wrote outside of its folder"
	}
	return o
}

// onlyBelow reports whether all files in dir are in one of its folders.
func onlyBelow(dir, folder string) bool {
	found, _ := filepath.Glob(filepath.Join(dir, "*"))
	inner, _ := filepath.Glob(filepath.Join(dir, filepath.Dir(folder), "*"))
	return len(found) == 1 && len(inner) == 1
}
