package codegen

import "fmt"

// hardwareBlocks lists the blocks as they are built for Tofino, in the order in
// which they contribute. What they mean to a row is in blocks.
var hardwareBlocks = []*block{
	{kind: part, name: "tuple"},
	{kind: part, name: "clock"},
	{kind: part, name: "length"},
	{kind: part, name: "spread"},
	{kind: part, name: "draw", parts: []string{"spread"}},
	{kind: part, name: "flowslot", parts: []string{"tuple"}},
	{kind: part, name: "candidates"},
	{kind: part, name: "ports", parts: []string{"candidates"}, textless: true,
		attributes: []attribute{{"port", "PortId_t", "egress ports of the group's paths"}}},
	{kind: part, name: "cpu", params: []string{"cpu"}},
	{kind: part, name: "round"},
	{kind: part, name: "reroute", parts: []string{"clock", "length", "ports", "report"}},
	{kind: part, name: "report", parts: []string{"round"}, params: []string{"tb"}},
	{kind: part, name: "levels", parts: []string{"ports"}},
	{kind: part, name: "baked"},
	{kind: part, name: "measure", parts: []string{"report", "levels", "baked"}, params: []string{"tau", "qcap"}},
	{kind: part, name: "depth", parts: []string{"report", "ports"}},
	{kind: part, name: "load", parts: []string{"clock", "report"}, params: []string{"window", "link"}},
	{kind: part, name: "overlay"},
	{kind: part, name: "flood", parts: []string{"round", "cpu"}},
	{kind: part, name: "pathprobe", parts: []string{"round", "clock", "cpu"}, params: []string{"tpath"}},
	{kind: part, name: "sampling", parts: []string{"spread"}},

	{kind: granularity, name: "flow", parts: []string{"tuple"}},
	{kind: granularity, name: "packet"},
	{kind: granularity, name: "sticky", cannot: "a flow that keeps its path for ever is a flowlet with a long gap: granularity flowlet with gap=60s is the nearest"},
	{kind: granularity, name: "flowlet", parts: []string{"flowslot", "clock"}},
	{kind: granularity, name: "flowcell", parts: []string{"flowslot", "length"}},
	{kind: granularity, name: "adaptive", parts: []string{"flowslot"}},

	{kind: signal, name: "none", textless: true},
	{kind: signal, name: "weights"},
	{kind: signal, name: "queue", parts: []string{"depth"}},
	{kind: signal, name: "behaviour", parts: []string{"measure"}, check: bakeable},
	{kind: signal, name: "fitted", parts: []string{"measure"}, check: bakeable},
	{kind: signal, name: "piggyback", parts: []string{"clock", "report", "levels", "overlay"}, params: []string{"window", "link"},
		edge: true, transit: []string{"overlay"}, check: provesLoad},
	{kind: signal, name: "utilisation", parts: []string{"load", "flood"}, check: provesLoad},
	{kind: signal, name: "degree", parts: []string{"load", "flood", "baked"}, check: gradeable},
	{kind: signal, name: "delay", parts: []string{"pathprobe"}, edge: true, transit: []string{"pathprobe"}, textless: true},
	{kind: signal, name: "one-way", cannot: "a one-way delay is a difference of 48-bit times of two switches, kept for each path and compared for all of them before the flow's register: more than 20 stages; signal queue does without, as in qdaps"},
	{kind: signal, name: "marks", cannot: "the share of marked probes is an average that wants a division; signal utilisation is the nearest, as in hula"},
	{kind: signal, name: "classes", cannot: "the share of marked probes is an average that wants a division; signal delay is the nearest, as in pdlb"},
	{kind: signal, name: "echo", cannot: "TCP's marks of an epoch are a share of its packets, by a division; choice hash alone is the nearest, as in ecmp"},

	{kind: choice, name: "hash", parts: []string{"tuple", "draw"}},
	{kind: choice, name: "uniform", parts: []string{"draw"}},
	{kind: choice, name: "round-robin"},
	{kind: choice, name: "grid"},
	{kind: choice, name: "best-hop", parts: []string{"draw"}},
	{kind: choice, name: "least", check: ranked},
	{kind: choice, name: "sampled", parts: []string{"sampling"}, check: sampleable},
	{kind: choice, name: "ordered", parts: []string{"flowslot", "clock", "sampling"}, params: []string{"link"}},

	{kind: guard, name: "none", textless: true},
	{kind: guard, name: "rlb", parts: []string{"reroute"}, check: guardable, defaults: map[string]string{"link": "40G"}},
	{kind: guard, name: "rlb-star", cannot: "a packet that comes round waits for its turn by the times of two recirculations, which are compared with two round-trip times at the end of the choice: more than the stages that are left; guard rlb is the nearest"},
}

// sampleable wants the two draws and the one memory that there are stages for.
func sampleable(v *view) error {
	if d, m := v.Int("d"), v.Int("m"); d != 2 || m > 1 {
		return fmt.Errorf("DRILL(%d,%d): each path looked at takes stages for its queue and for the comparison; want d=2 and m=0 or 1", d, m)
	}
	return nil
}

// gradeable wants room for the five degrees and Absent in the level of a path.
func gradeable(v *view) error {
	if levelBits(v.N()) < 3 {
		return fmt.Errorf("%d paths: the degrees of all are looked up in one table of 65536 entries, 3 bits for each path; want at most 5", v.N())
	}
	return provesLoad(v)
}

// ranked wants levels that are ranked by their slot.
func ranked(v *view) error {
	if v.row.Signal != "piggyback" {
		return fmt.Errorf("choice least is built for signal piggyback alone; of %s, choice grid takes the least loaded paths most often", v.row.Signal)
	}
	return nil
}

// guardable wants a row that leaves the reports to the guard.
func guardable(v *view) error {
	for _, part := range []string{"depth", "measure", "load", "levels"} {
		if v.In(part) {
			return fmt.Errorf("no %s for %s: guard rlb: its reports are about departures, those of signal %s about queues, and there is one kind; want signal none, as in letflow+rlb", v.row.Name, v.arch.name, v.row.Signal)
		}
	}
	return provesPrediction(v)
}
