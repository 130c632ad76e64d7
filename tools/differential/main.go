// Command differential compares p4lb with an evaluator of P4 source that shares
// no code with it.
//
//	differential [-programs N] [-seed S] [-packets N] [-arch LIST]
//
// It generates random programs, compiles each with p4lb, sends packets through both
// engines (machine code, with stale registers poisoned, and closures), and compares
// packets, registers, counters and digests with the evaluation of the source. It
// prints each difference with a minimised program, and the number of programs,
// packets and features. The exit code is 1 if there is a difference.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/tools/differential/internal/generator"
	"github.com/p4lb/p4lb/tools/differential/internal/source"
)

func main() {
	o := options{}
	flag.IntVar(&o.programs, "programs", 1000, "compare `N` programs")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the first program; the others follow")
	flag.IntVar(&o.packets, "packets", 10, "send `N` packets to each program")
	flag.IntVar(&o.most, "stop", 10, "stop after `N` differences")
	archs := flag.String("arch", strings.Join(archList, ","), "architectures, in turn")
	flag.BoolVar(&o.print, "print", false, "print the program of the seed and stop")
	flag.Parse()
	o.archs = strings.Split(*archs, ",")
	asm.Debug = true // makes code that reads stale registers fail
	if o.print {
		fmt.Print(generator.New(o.archs[int(o.seed)%len(o.archs)], o.seed, o.packets).Program.Text())
		return
	}
	differences, rare := campaign(os.Stdout, o)
	if differences > 0 || rare > 0 {
		fmt.Fprintf(os.Stderr, "differential: %d differences, %d features in less than 1 %% of the programs\n", differences, rare)
		os.Exit(1)
	}
}

var archList = []string{source.V1model, source.TNA, source.T2NA}

type options struct {
	programs, packets, most int
	seed                    uint64
	archs                   []string
	print                   bool
}

// campaign compares programs. It returns the number of differences, and the number
// of features that are too rare to be tested.
func campaign(w io.Writer, o options) (differences, rare int) {
	var t tally
	t.begin()
	for i := range o.programs {
		seed := o.seed + uint64(i)
		c := generator.New(o.archs[int(seed%uint64(len(o.archs)))], seed, o.packets)
		r := compare(c, false)
		t.add(c, r)
		if r.err != nil {
			t.differences++
			report(w, c, r)
			if t.differences >= o.most {
				break
			}
		}
		if t.due() {
			t.print(w)
		}
	}
	t.print(w)
	return t.differences, t.printFeatures(w)
}

// report prints a difference with a minimised program.
func report(w io.Writer, c *generator.Case, r result) {
	fmt.Fprintf(w, "--- seed %d, %s: %v\n", c.Seed, c.Program.Arch, r.err)
	if kindOf(r.err) == "refused" {
		return // the message contains the source line; -print prints the program
	}
	shrink(c)
	r = compare(c, false)
	fmt.Fprintf(w, "%s%s%v\n---\n", c.Program.Text(), entries(c.Program), r.err)
}

// tally counts programs, packets and features.
type tally struct {
	start, last                time.Time
	programs, packets, skipped int
	differences, applied       int
	features                   map[string]int            // all programs
	byArch                     map[string]map[string]int // programs with a feature; "" counts all
}

func (t *tally) begin() {
	t.start, t.features, t.byArch = time.Now(), map[string]int{}, map[string]map[string]int{}
	t.last = t.start
}

func (t *tally) add(c *generator.Case, r result) {
	t.programs++
	t.packets += r.packets
	t.skipped += r.skipped
	t.applied += r.applied
	count := t.byArch[c.Program.Arch]
	if count == nil {
		count = map[string]int{}
		t.byArch[c.Program.Arch] = count
	}
	count[""]++
	for f := range c.Program.Features {
		t.features[f]++
		count[f]++
	}
}

func (t *tally) due() bool {
	if time.Since(t.last) < time.Minute {
		return false
	}
	t.last = time.Now()
	return true
}

func (t *tally) print(w io.Writer) {
	minutes := time.Since(t.start).Minutes()
	fmt.Fprintf(w, "%d programs (%.0f/min), %d packets (%.0f/min), %d skipped as undefined, %d features, %d differences\n",
		t.programs, float64(t.programs)/minutes, t.packets, float64(t.packets)/minutes, t.skipped, len(t.features), t.differences)
}

// enough is the number of programs after which the shares of features are checked.
const enough = 500

// printFeatures prints the share of programs with each feature, for each
// architecture. It returns the number of required features that occur in less than
// 1 % of the programs.
func (t *tally) printFeatures(w io.Writer) (rare int) {
	archs := sortedKeys(t.byArch)
	fmt.Fprintf(w, "%-24s", "")
	for _, a := range archs {
		fmt.Fprintf(w, " %9s", a)
	}
	fmt.Fprintln(w)
	for _, f := range sortedKeys(t.features) {
		fmt.Fprintf(w, "%-24s", f)
		for _, a := range archs {
			fmt.Fprintf(w, " %7.1f %%", 100*float64(t.byArch[a][f])/float64(t.byArch[a][""]))
		}
		fmt.Fprintln(w)
	}
	for _, a := range archs {
		for _, f := range features(a) {
			if n := t.byArch[a][""]; n >= enough && 100*t.byArch[a][f] < n {
				fmt.Fprintf(w, "%s: %s is in less than 1 %% of the programs\n", a, f)
				rare++
			}
		}
	}
	return rare
}
