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

// limits are what a process may take.
type limits struct {
	time   time.Duration
	memory int64         // in MiB
	write  time.Duration // of the primary of a switch, but for the slowest hundredth
	end    time.Duration // of a command that is interrupted
	// packets is how many times as long they may take; 0: as long as they want.
	packets float64
}

// An outcome is what became of one attack.
type outcome struct {
	took   time.Duration // of processors
	memory int64         // the most that it had, in MiB
	quiet  time.Duration // what writes took of a switch that nobody attacks
	writes time.Duration // what they took under attack
	note   string        // what else is to be said
	lost   string        // why the attack has won; "" if it has not
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
	length := flag.Duration("for", time.Minute, "go on for `TIME`, once round at least")
	memory := flag.Int64("memory", 1024, "what a process may take, in `MiB`")
	progress := flag.Duration("progress", 30*time.Second, "the `TIME` within which it must end")
	write := flag.Duration("write", 100*time.Millisecond, "the `TIME` within which a switch does 99 of 100 writes of others")
	end := flag.Duration("end", time.Second, "the `TIME` within which a command ends that is interrupted")
	raced := flag.Bool("race", false, "make a binary with the race detector, which lets it take longer and more, and attack that")
	only := flag.String("only", "", "attacks whose names match the `PATTERN`, a regular expression")
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

// withRaceDetector makes the binary of the program here, until remove.
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

// died reports whether what a process has said is what Go says of a crash or a race.
func died(said string) bool {
	return strings.Contains(said, "goroutine ") || strings.Contains(said, "DATA RACE")
}

// soak runs the attacks of these names, harder each time, until the time is over.
// It reports whether all of them have been held off.
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
	// Clients are of this process, which grows by them, and what it has had counts
	// for those that it begins later: so the commands come first.
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
		o.lost = "does not end"
	case o.memory > l.memory:
		o.lost = "takes more memory than it may"
	case a.code >= 0 && code != a.code:
		o.lost = fmt.Sprintf("exit code %d, want %d: %.200s", code, a.code, text)
	case !strings.Contains(string(text), a.says):
		o.lost = fmt.Sprintf("it says %.200q, want something with %q", text, a.says)
	case died(string(text)):
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
