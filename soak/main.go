// Command soak attacks a p4lb binary with the input that once hung it, took the
// machine's memory or wrote where it should not, and its switch with clients
// that want too much, for a stated time, and prints what each attack took. A process that takes more memory or longer than it may
// is killed, and the attack has won.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// limits are what a process may take.
type limits struct {
	time   time.Duration
	memory int64         // in MiB
	write  time.Duration // of the primary of a switch, but for the slowest hundredth
	end    time.Duration // of a command that is interrupted
}

// An outcome is what became of one attack.
type outcome struct {
	took   time.Duration // of processors
	memory int64         // the most that it had, in MiB
	writes time.Duration // what writes took, of a switch
	lost   string        // why the attack has won; "" if it has not
}

func main() {
	binary := flag.String("p4lb", "bin/p4lb", "the `BINARY` to attack")
	length := flag.Duration("for", time.Minute, "go on for `TIME`, once round at least")
	memory := flag.Int64("memory", 1024, "what a process may take, in `MiB`")
	progress := flag.Duration("progress", 30*time.Second, "the `TIME` within which it must end")
	write := flag.Duration("write", 100*time.Millisecond, "the `TIME` within which a switch does 99 of 100 writes of others")
	end := flag.Duration("end", time.Second, "the `TIME` within which a command ends that is interrupted")
	flag.Parse()
	path, err := filepath.Abs(*binary)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	if !soak(path, *length, limits{*progress, *memory, *write, *end}) {
		os.Exit(1)
	}
}

// soak runs all attacks, harder each time, until the time is over. It reports
// whether all of them have been held off.
func soak(binary string, length time.Duration, l limits) bool {
	held := true
	fmt.Printf("%-44s %8s %8s %10s\n", "ATTACK", "CPU", "MiB", "WRITES P99")
	report := func(name string, o outcome) {
		held = held && o.lost == ""
		writes := ""
		if o.writes > 0 {
			writes = o.writes.Round(time.Microsecond).String()
		}
		fmt.Printf("%-44s %7.2fs %8d %10s  %s\n", name, o.took.Seconds(), o.memory, writes, o.lost)
	}
	// Clients are of this process, which grows by them, and what it has had counts
	// for those that it begins later: so the commands come first.
	began, n := time.Now(), 1
	for ; n == 1 || time.Since(began) < length/2; n++ {
		for _, a := range append(attacks(min(n, 3)), liars()...) {
			report(a.name, a.run(binary, l))
		}
		for _, i := range interruptions(min(n, 3)) {
			report("SIGINT: "+i.name, i.run(binary, l, []float64{0.1, 0.3, 0.5, 0.7, 0.9, 0.97}))
		}
	}
	for n = 1; n == 1 || time.Since(began) < length; n++ {
		for _, s := range sieges() {
			report("switch: "+s.name, s.lay(binary, l, 3*time.Second, 50_000*min(n, 4)))
		}
		for _, s := range chipSieges() {
			report("switch --bfrt: "+s.name, s.lay(binary, l, 3*time.Second, 50_000*min(n, 4)))
		}
	}
	return held
}

// run runs an attack in a folder of its own.
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
	if a.lie != nil {
		var stop func()
		if address, stop, err = listen(a.lie); err != nil {
			return outcome{lost: err.Error()}
		}
		defer stop()
	}
	for name, text := range a.files {
		text = strings.ReplaceAll(text, "ADDRESS", address)
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
			return outcome{lost: err.Error()}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.time)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, a.args...)
	cmd.Dir = work
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
		o.lost = "does not end"
	case o.memory > l.memory:
		o.lost = "takes more memory than it may"
	case a.code >= 0 && code != a.code:
		o.lost = fmt.Sprintf("exit code %d, want %d: %.200s", code, a.code, text)
	case !strings.Contains(string(text), a.says):
		o.lost = fmt.Sprintf("it says %.200q, want something with %q", text, a.says)
	case strings.Contains(string(text), "goroutine "):
		o.lost = fmt.Sprintf("it died: %.200s", text)
	case strings.ContainsAny(string(text), "\x1b\x07"):
		o.lost = fmt.Sprintf("it says what a terminal obeys: %.200q", text)
	case !onlyBelow(dir, filepath.Join("a", "b")):
		o.lost = "it has written outside of its folder"
	}
	return o
}

// onlyBelow reports whether all files of dir are below one folder of it.
func onlyBelow(dir, folder string) bool {
	found, _ := filepath.Glob(filepath.Join(dir, "*"))
	inner, _ := filepath.Glob(filepath.Join(dir, filepath.Dir(folder), "*"))
	return len(found) == 1 && len(inner) == 1
}
