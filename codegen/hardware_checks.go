package codegen

import "fmt"

// What the blocks for Tofino cannot be combined with, and have no room for.

// sampleable wants the two draws and the one memory that there are stages for.
func sampleable(v *view) error {
	if v.row.Signal != "queue" {
		return fmt.Errorf("choice sampled is built for signal queue alone; of %s, choice grid takes the least loaded paths most often", v.row.Signal)
	}
	if d, m := v.Int("d"), v.Int("m"); d != 2 || m > 1 {
		return fmt.Errorf("DRILL(%d,%d): each path looked at takes stages for its queue and for the comparison; want d=2 and m=0 or 1", d, m)
	}
	return nil
}

// turnable wants cells that are numbered path by path.
func turnable(v *view) error {
	if v.runs.Granularity == "adaptive" {
		return fmt.Errorf("choice round-robin is not built for granularity adaptive; choice uniform is, as in pdlb")
	}
	return nil
}

// weighable wants weights that a table has.
func weighable(v *view) error {
	if v.row.Signal == "queue" || v.row.Signal == "marks" {
		return fmt.Errorf("choice grid is not built for signal %s: its weights are the key of no table; signal behaviour has levels, as in qall-pkt", v.row.Signal)
	}
	return nil
}

// gradeable wants room for the five degrees and Absent in the level of a path.
func gradeable(v *view) error {
	if levelBits(v.N()) < 3 {
		return fmt.Errorf("%d paths: the degrees of all are looked up in one table of 65536 entries, 3 bits for each path; want at most 4", v.N())
	}
	return provesLoad(v)
}

// ranked wants levels that are ranked by their slot.
func ranked(v *view) error {
	if v.row.Signal != "piggyback" && v.row.Signal != "marks" {
		return fmt.Errorf("choice least is built for signals piggyback and marks; of %s, choice grid takes the least loaded paths most often", v.row.Signal)
	}
	return nil
}

// guardable wants a row whose reports go with those of the guard, and the stages
// for both.
func guardable(v *view) error {
	if v.Orders() {
		return fmt.Errorf("no %s for %s: guard %s would take packets out of the order that choice ordered keeps; want choice sampled, as in drill+rlb", v.row.Name, v.arch.name, v.row.Guard)
	}
	for _, part := range []string{"measure", "load", "overlay"} {
		if v.In(part) {
			return fmt.Errorf("no %s for %s: guard %s: its reports go with those of queue lengths, not of signal %s; want signal queue, classes or none, as in drill+rlb and letflow+rlb", v.row.Name, v.arch.name, v.row.Guard, v.row.Signal)
		}
	}
	return provesPrediction(v)
}
