package codegen

import "fmt"

// hardwareBlocks lists the blocks as they are built for Tofino, in the order in
// which they contribute. What they mean to a row is in blocks.
var hardwareBlocks = []*block{
	{kind: part, name: "tuple"},
	{kind: part, name: "echo", parts: []string{"tuple"}},
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
	{kind: part, name: "again", parts: []string{"round"}},
	{kind: part, name: "report", parts: []string{"round"}, params: []string{"tb"}},
	{kind: part, name: "levels", parts: []string{"ports"}},
	{kind: part, name: "baked"},
	{kind: part, name: "measure", parts: []string{"report", "levels", "baked"}, params: []string{"tau", "qcap"}},
	{kind: part, name: "ghost", parts: []string{"candidates"},
		attributes: []attribute{{"queue", "qid_t", "queues of the group's paths, by their numbers in the pipe"}}},
	{kind: part, name: "depth", parts: []string{"report", "ports"}},
	{kind: part, name: "eighths", params: []string{"window", "link"}},
	{kind: part, name: "ranks", parts: []string{"spread"}},
	{kind: part, name: "load", parts: []string{"clock", "report"}, params: []string{"window", "link"}},
	{kind: part, name: "overlay"},
	{kind: part, name: "flood", parts: []string{"round", "cpu"}},
	{kind: part, name: "pathprobe", parts: []string{"round", "clock", "cpu"}, params: []string{"tpath"}},
	{kind: part, name: "ecn", parts: []string{"pathprobe"}, params: []string{"ecnk"}},
	{kind: part, name: "path"},
	{kind: part, name: "sampling", parts: []string{"spread"}},
	{kind: part, name: "kept"},

	{kind: granularity, name: "flow", parts: []string{"tuple"}},
	{kind: granularity, name: "packet"},
	{kind: granularity, name: "sticky", cannot: "a flow that keeps its path for ever is a flowlet with a long gap: granularity flowlet with gap=60s is the nearest"},
	{kind: granularity, name: "flowlet", parts: []string{"flowslot", "clock", "kept"}},
	{kind: granularity, name: "flowcell", parts: []string{"flowslot", "length", "kept"}},
	{kind: granularity, name: "adaptive", parts: []string{"flowslot", "kept"}},

	{kind: signal, name: "none", textless: true},
	{kind: signal, name: "weights"},
	{kind: signal, name: "queue", parts: []string{"depth"}},
	{kind: signal, name: "behaviour", parts: []string{"measure"}, check: bakeable},
	{kind: signal, name: "fitted", parts: []string{"measure"}, check: bakeable},
	{kind: signal, name: "piggyback", parts: []string{"clock", "report", "levels", "eighths", "overlay"},
		edge: true, transit: []string{"eighths", "overlay"}, check: provesLoad},
	{kind: signal, name: "utilisation", parts: []string{"load", "flood"}, check: provesLoad},
	{kind: signal, name: "degree", parts: []string{"load", "flood", "baked"}, check: gradeable},
	{kind: signal, name: "delay", parts: []string{"pathprobe"}, edge: true, transit: []string{"pathprobe"}, textless: true},
	{kind: signal, name: "one-way", parts: []string{"depth", "overlay", "clock"}, edge: true, transit: []string{"overlay"}},
	{kind: signal, name: "marks", parts: []string{"ecn", "path"}, edge: true, transit: []string{"pathprobe", "ecn"}},
	{kind: signal, name: "classes", parts: []string{"ecn", "path"}, edge: true, transit: []string{"pathprobe", "ecn"}},
	{kind: signal, name: "echo", parts: []string{"echo", "flowslot", "clock"}, edge: true},

	{kind: choice, name: "hash", parts: []string{"tuple", "draw"}},
	{kind: choice, name: "uniform", parts: []string{"draw"}},
	{kind: choice, name: "round-robin", check: turnable},
	{kind: choice, name: "grid", check: weighable},
	{kind: choice, name: "best-hop", parts: []string{"draw"}},
	{kind: choice, name: "least", parts: []string{"ranks"}, check: ranked},
	{kind: choice, name: "sampled", parts: []string{"sampling"}, check: sampleable},
	{kind: choice, name: "ordered", parts: []string{"flowslot", "clock", "sampling"}, params: []string{"link"}},

	{kind: choice, name: "rehash", parts: []string{"flowslot", "draw"}},
	{kind: choice, name: "cautious", parts: []string{"flowslot", "clock", "length", "spread", "again", "report", "levels", "eighths", "ranks"}, check: provesLoad},

	{kind: guard, name: "none", textless: true},
	{kind: guard, name: "rlb", parts: []string{"reroute"}, check: guardable, defaults: guardDefaults},
	{kind: guard, name: "rlb-star", parts: []string{"reroute", "again", "pathprobe", "path"}, check: guardable, defaults: guardDefaults},
}

// guardDefaults are for RLB's rates. Between two reports of departures a port of
// 40 Gb/s gets 100 KB; flows suffer from 250 KB on, with 150 KB not yet.
var guardDefaults = map[string]string{"link": "40G", "tb": "20us"}

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
