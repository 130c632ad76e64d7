package main

import (
	"strings"
	"testing"

	"github.com/p4lb/p4lb/tools/differential/internal/generator"
	"github.com/p4lb/p4lb/tools/differential/internal/source"
)

// p4lb agrees with the evaluator of the source: a short form of the command's
// comparison, for each architecture and both engines.
func TestNoDifference(t *testing.T) {
	programs := 60
	if testing.Short() {
		programs = 15
	}
	for _, arch := range archList {
		t.Run(arch, func(t *testing.T) {
			var out strings.Builder
			n, _ := campaign(&out, options{programs: programs, packets: 10, most: 3, seed: 1, archs: []string{arch}})
			if n > 0 {
				t.Errorf("%d differences:\n%s", n, out.String())
			}
		})
	}
}

// An evaluator that swaps the operands of subtractions is noticed, so that
// agreement means something.
func TestWrongEvaluationIsNoticed(t *testing.T) {
	for _, arch := range archList {
		noticed := 0
		for seed := range uint64(20) {
			if r := compare(generator.New(arch, seed, 10), true); r.err != nil {
				noticed++
			}
		}
		if noticed < 2 {
			t.Errorf("%s: a wrong evaluation is noticed in %d of 20 programs", arch, noticed)
		}
	}
}

// Each feature occurs in at least one program of a hundred.
func TestFeaturesOccur(t *testing.T) {
	const programs = enough
	for _, arch := range archList {
		count := map[string]int{}
		for seed := range uint64(programs) {
			for f := range generator.New(arch, seed, 0).Program.Features {
				count[f]++
			}
		}
		for _, f := range features(arch) {
			if 100*count[f] < programs {
				t.Errorf("%s: %q occurs in %d of %d programs", arch, f, count[f], programs)
			}
			delete(count, f)
		}
		for f := range count {
			t.Errorf("%s: the list of features lacks %q", arch, f)
		}
	}
}

// shrink keeps the difference and removes statements that do not matter.
func TestShrinkKeepsTheDifference(t *testing.T) {
	for seed := range uint64(20) {
		c := generator.New(source.V1model, seed, 3)
		if kindOf(compare(c, true).err) != bothEngines {
			continue
		}
		before := len(c.Program.Text())
		shrinkAs(c, true)
		if r := compare(c, true); kindOf(r.err) != bothEngines {
			t.Fatalf("seed %d: the small program gives %v", seed, r.err)
		}
		if after := len(c.Program.Text()); after >= before {
			t.Errorf("seed %d: %d bytes, and %d after shrinking", seed, before, after)
		}
		return
	}
	t.Fatal("no program with a difference")
}

// A feature that the programs lack makes the command fail.
func TestRareFeatures(t *testing.T) {
	var all tally
	all.begin()
	c := generator.New(source.V1model, 1, 0)
	c.Program.Features = map[string]bool{}
	for _, f := range features(source.V1model)[1:] {
		c.Program.Features[f] = true
	}
	for range enough - 1 {
		all.add(c, result{})
	}
	var out strings.Builder
	if n := all.printFeatures(&out); n != 0 {
		t.Errorf("%d features too rare in %d programs", n, enough-1)
	}
	all.add(c, result{})
	want := source.V1model + ": " + features(source.V1model)[0] + " is in less than 1 % of the programs"
	if n := all.printFeatures(&out); n != 1 || !strings.Contains(out.String(), want) {
		t.Errorf("%d features too rare, want 1: %s", n, out.String())
	}
}
