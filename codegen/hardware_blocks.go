package codegen

import "fmt"

// hardwareBlocks lists the blocks as they are built for Tofino, in the order in
// which they contribute. What they mean to a row is in blocks.
var hardwareBlocks = []*block{
	{kind: part, name: "tuple"},
	{kind: part, name: "clock"},
	{kind: part, name: "spread"},
	{kind: part, name: "draw", parts: []string{"spread"}},
	{kind: part, name: "flowslot", parts: []string{"tuple"}},
	{kind: part, name: "candidates"},
	{kind: part, name: "ports", parts: []string{"candidates"}, textless: true,
		attributes: []attribute{{"port", "PortId_t", "egress ports of the group's paths"}}},
	{kind: part, name: "cpu", params: []string{"cpu"}},
	{kind: part, name: "round"},
	{kind: part, name: "report", parts: []string{"round"}, params: []string{"tb"}},
	{kind: part, name: "levels", parts: []string{"ports"}},
	{kind: part, name: "baked"},
	{kind: part, name: "measure", parts: []string{"report", "levels", "baked"}, params: []string{"tau", "qcap"}},
	{kind: part, name: "depth", parts: []string{"report", "ports"}},
	{kind: part, name: "load", parts: []string{"clock", "report"}, params: []string{"window", "link"}},
	{kind: part, name: "flood", parts: []string{"round", "cpu"}},
	{kind: part, name: "pathprobe", parts: []string{"round", "clock", "cpu"}, params: []string{"tpath"}},
	{kind: part, name: "sampling", parts: []string{"spread"}},

	{kind: granularity, name: "flow", parts: []string{"tuple"}},
	{kind: granularity, name: "packet"},
	{kind: granularity, name: "flowlet", parts: []string{"flowslot", "clock"}},
	{kind: granularity, name: "flowcell", parts: []string{"flowslot"}},
	{kind: granularity, name: "adaptive", parts: []string{"flowslot"}},

	{kind: signal, name: "none", textless: true},
	{kind: signal, name: "weights"},
	{kind: signal, name: "queue", parts: []string{"depth"}},
	{kind: signal, name: "behaviour", parts: []string{"measure"}, check: bakeable},
	{kind: signal, name: "fitted", parts: []string{"measure"}, check: bakeable},
	{kind: signal, name: "utilisation", parts: []string{"load", "flood"}, check: provesLoad},
	{kind: signal, name: "degree", parts: []string{"load", "flood", "baked"}, check: gradeable},
	{kind: signal, name: "delay", parts: []string{"pathprobe"}, edge: true, transit: []string{"pathprobe"}, textless: true},

	{kind: choice, name: "hash", parts: []string{"tuple", "draw"}},
	{kind: choice, name: "uniform", parts: []string{"draw"}},
	{kind: choice, name: "round-robin"},
	{kind: choice, name: "grid"},
	{kind: choice, name: "best-hop", parts: []string{"draw"}},
	{kind: choice, name: "sampled", parts: []string{"sampling"}, check: sampleable},
	{kind: choice, name: "ordered", parts: []string{"flowslot", "clock", "sampling"}, params: []string{"link"}},

	{kind: guard, name: "none", textless: true},
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
