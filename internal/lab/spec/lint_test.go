package spec

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// sound is an experiment without warnings, which tests modify.
const sound = `
topology: {leaf-spine: {leaves: 2, spines: 4, hosts: 8, rate: 250Mbps, host-rate: 1G, delay: 5us, queue: 200}}
schemes: [drill, ecmp]
traffic: [{workload: websearch, cut: 500KB}]
loads: [0.7]
`

// TestLint: each experiment that is broken on purpose gets its warning, and the sound
// one none.
func TestLint(t *testing.T) {
	with := func(pairs ...string) string {
		text := sound
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == "" {
				text += pairs[i+1] + "\n"
			} else if strings.Contains(text, pairs[i]) {
				text = strings.Replace(text, pairs[i], pairs[i+1], 1)
			} else {
				t.Fatalf("there is no %q", pairs[i])
			}
		}
		return text
	}
	const flows = "{workload: websearch, cut: 500KB}"
	var all strings.Builder
	for _, c := range []struct{ text, rule, want string }{
		{with(), "", ""},
		{with("", "transport: dctcp"), "", ""},
		{with("", "transport: dcqcn", "", "switches: {pfc: true, pfc-threshold: 100KB}"), "", ""},
		{with("", "transport: dctcp", "", "switches: {ecn: none}"), "no-marking", "transport dctcp without marking"},
		{with("", "transport: dcqcn", "", "switches: {ecn: 0}"), "no-marking", "transport dcqcn without marking"},
		{with("", "transport: dctcp", "", "switches: {ecn: 200}"), "no-marking", "mark from 200 packets on, queues hold 200"},
		{with("", "transport: dctcp", "", "switches: {ecn: 65, queue: 50}"), "no-marking", "queues hold 50"},
		{with(flows, "{workload: websearch, cut: 500KB, transport: dctcp}", "", "switches: {ecn: none}"), "no-marking", "dctcp"},
		{with("", "transport: dcqcn", "", "switches: {pfc: true, queue: 64}"), "no-headroom", "PFC pauses at 262 KB"},
		{with("", "transport: dcqcn", "", "switches: {pfc: true, pfc-threshold: 302KB}"), "no-headroom", "a queue holds 303 KB"},
		{with("queue: 200", "buffer: 1MB", "", "transport: dcqcn", "", "switches: {pfc: true, pfc-threshold: 990KB}"), "no-headroom", "has a buffer of 1000 KB"},
		{with(flows, "{workload: websearch, cut: 500KB, load-of: hosts}", "loads: [0.7]", "loads: [0.3, 0.9]"), "overload", "720 % of the fabric's capacity"},
		{with(flows, "{workload: websearch, cut: 500KB, rate: 2000}"), "overload", "of the fabric's capacity"},
		{with("rate: 250Mbps, host-rate: 1G", "rate: 1G, host-rate: 100Mbps"), "overload", "350 % of the hosts' capacity"},
		{with("", "duration: 1s", flows, "{workload: websearch, cut: 500KB}, {workload: websearch, cut: 500KB}"), "overload", "140 % of the fabric's capacity"},
		{with(flows, "{file: f.txt}", "", "warmup: 10ms"), "warm-up", "the warm-up of 10ms is longer than the trace, whose last flow begins at 2ms"},
		{with(flows, "{file: f.txt}"), "warm-up", "longer than the trace"},
		{with(flows, "{pattern: pairs, pairs: [h1-h9], size: 1MB, at: [0s, 1ms]}", "", "warmup: 2ms"), "warm-up", "begins at 1ms"},
		{with(flows, "{workload: websearch, cut: 500KB, stop: 20ms}", "", "duration: 1s"), "warm-up", "begins at 20ms"},
		{with("spines: 4", "spines: 1"), "one-path", "drill, ecmp: each leaf has one path"},
		{with("leaves: 2", "leaves: 1"), "one-path", "the network has one leaf"},
		{with("", "fail: [l1-s1, l1-s2, l1-s3]"), "one-path", "each leaf has one path"},
		{with("[drill, ecmp]", "[{scheme: drill, set: {tb: 1s}}, ecmp]"), "far-parameters", "drill: tb is 1s, advised is"},
		{with("[drill, ecmp]", "[{scheme: letflow, set: {gap: 1us}}, ecmp]"), "far-parameters", "letflow: gap is 1us"},
		{with("[drill, ecmp]", "[qall-pkt, ecmp]", "", "parameters: default\ntopology2: x"), "", "topology2"},
		{with("[drill, ecmp]", "[drill, ecmp]", "", "cases: [{set: {tb: 500ms}}]"), "far-parameters", "tb is 500ms"},
		{with("", "parameters: default", "[drill, ecmp]", "[drill, letflow]", "250Mbps", "10G", "host-rate: 1G", "host-rate: 40G"), "far-parameters", "drill: tb is 1ms"},
		{with("", "duration: 100ms", "", "seeds: 40", "", "drain: 1ms"), "short-drain", "the largest flow, of 500KB, takes 4ms alone"},
		{with(flows, "{size: 100MB}", "", "duration: 4s", "", "drain: 100ms"), "short-drain", "set a longer drain"},
		{with(flows, "{workload: websearch, cut: 500KB, load-of: hosts}", "", "duration: 1s", "", "drain: 1s"), "short-drain", "the rest cannot be sent in the drain of 1s"},
		{with("", "seeds: 1"), "few-seeds", "one seed gives no confidence interval"},
		{with("", "seeds: 2"), "few-seeds", "2 seeds of about"},
		{with("", "duration: 10ms"), "few-seeds", "a difference of 10 % needs about"},
		{with("rate: 250Mbps, host-rate: 1G", "rate: 1G, host-rate: 100Mbps", flows, "{workload: websearch, cut: 500KB, load-of: hosts}"), "hosts-limit", "the hosts are the bottleneck (offered load 70 % of the hosts, 14 % of the fabric)"},
		{with("host-rate: 1G", "host-rate: 50Mbps"), "hosts-limit", "the hosts are the bottleneck"},
		{with(flows, "{workload: websearch, cut: 500KB, pairs: [h1-h9]}"), "ignored-key", "traffic[0]: pattern halves ignores pairs: set pattern: pairs"},
		{with(flows, "{workload: websearch, cut: 500KB, pattern: halves, from: [h1]}"), "ignored-key", "ignores from: set pattern: all-to-all"},
		{with(flows, "{workload: websearch, cut: 500KB, udp-rate: 5Mbps}"), "ignored-key", "ignores udp-rate"},
		{with("", "transport: dctcp", "", "switches: {ecn: 199}"), "", ""},
		{with("", "transport: dcqcn", "", "switches: {ecn-min: 50KB, ecn-max: 200KB, ecn-p: 0.1, queue: 20}"), "", ""},
		{with("", "transport: dcqcn", "", "switches: {pfc: true, queue: 200, pfc-threshold: 299KB}"), "", ""},
		{with(", queue: 200", "", "", "transport: dcqcn", "", "switches: {pfc: true, pfc-threshold: 990KB}"), "", ""},
		{with("queue: 200", "buffer: 1MB", "", "transport: dcqcn", "", "switches: {pfc: true, pfc-threshold: 950KB}"), "", ""},
		{with("[0.7]", "[1]"), "", ""},
		{with(flows, "{workload: websearch, cut: 500KB, pattern: permutation, from: [h1, h2, h9, h10], to: [h3]}"), "ignored-key", "ignores to: set pattern: all-to-all"},
		{with(flows, "{workload: websearch, cut: 500KB, at: [1ms]}"), "ignored-key", "ignores at: set pattern: pairs or burst"},
		{with(flows, "{workload: websearch, cut: 500KB, degree: 3}"), "ignored-key", "ignores degree: set pattern: incast or burst"},
		{with(flows, "{pattern: burst, size: 3KB, at: [90ms], degree: 2, from: [h1, h2], to: [h9]}"), "", ""},
		{with(flows, flows+", {pattern: all-to-all, transport: udp, udp-rate: 1Mbps, size: 10MB, load: 0.01, from: [h1, h2], to: [h9]}"), "", ""},
		{with(flows, flows+", {pattern: all-to-all, transport: udp, udp-rate: 1Mbps, size: 10MB, load: 0.01, count: true, from: [h1, h2], to: [h9]}"), "short-drain", "the largest flow, of 10MB, takes 80s alone on a link of 1Mbps"},
		{with("[drill, ecmp]", "[drill]", "", "seeds: 1"), "", ""},
		{with("", "cases: [{name: a}, {name: b, drain: 1us}, {name: c, drain: 1us}]"), "short-drain", "set a longer drain"},
		{with("leaves: 2", "leaves: 1"), "no-advice", "the catalogue's parameters are used"},
		// The shortest queue between switches counts; switches with a buffer have none.
		{with("", "transport: dctcp", "", "switches: {ecn: 65}", "", "links: [{link: l1-s1, queue: 60}, {link: l2-s2, queue: 50}, {link: l2-s3, queue: 70}, {link: h1-l1, queue: 40}]"), "no-marking", "mark from 65 packets on, queues hold 50"},
		{with("", "transport: dctcp", "", "switches: {ecn: 65}", "", "links: [{link: h1-l1, queue: 40}]"), "", ""},
		{with("queue: 200", "buffer: 1MB", "", "transport: dctcp", "", "switches: {ecn: 65}", "", "links: [{link: l1-s1, queue: 1}]"), "no-marking", "queues hold 1:"},
		{with("{leaf-spine: {leaves: 2, spines: 4, hosts: 8, rate: 250Mbps, host-rate: 1G, delay: 5us, queue: 200}}", "pair.yaml", "", "transport: dctcp", "", "switches: {ecn: 65}"), "no-marking", "queues hold 50:"},
		// The less the sizes of flows differ, the fewer seeds an experiment needs.
		{with("websearch, cut: 500KB", "equal.txt", "", "duration: 10ms", "", "seeds: 2"), "", ""},
		{with("websearch, cut: 500KB", "close.txt", "", "duration: 10ms", "", "seeds: 2"), "few-seeds", "23 % or more"},
		{with("websearch, cut: 500KB", "close.txt", "", "duration: 10ms", "", "seeds: 3"), "", ""},
	} {
		read := func(name string) ([]byte, error) {
			files := map[string]string{
				"f.txt":     "src,dst,bytes,start_s\nh1,h9,1000,0\nh1,h9,1000,0.002\n",
				"equal.txt": "1001 0\n1001 1\n",
				"close.txt": "10000 0\n20000 1\n",
				"pair.yaml": "defaults: {switch-links: {rate: 1G}, host-links: {rate: 1G}}\nswitches: {a: {}, b: {}}\nhosts: {h1: {}, h2: {}}\nlinks: [{ends: [h1, a]}, {ends: [h2, b]}, {ends: [a, b], queue: 50}]\n",
			}
			if text, ok := files[name]; ok {
				return []byte(text), nil
			}
			return nil, os.ErrNotExist
		}
		x, err := Load("x.yaml", []byte(c.text), read, nil)
		if err != nil {
			if c.rule != "" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", c.text, err)
			}
			continue
		}
		list, err := x.Lint(read)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s\n%s\n", changed(c.text), strings.Join(lists.Map(list, func(w Warning) string { return "\t" + w.String() + "\n" }), ""))
		switch {
		case c.rule == "" && len(list) > 0:
			t.Errorf("%s: %v", c.text, list)
		case c.rule != "" && !slices.ContainsFunc(list, func(w Warning) bool { return w.Rule == c.rule && strings.Contains(w.Text, c.want) }):
			t.Errorf("%s: %v\nwant %s: %s", c.text, list, c.rule, c.want)
		}
	}
	golden(t, "warnings.txt", all.String())
}

// changed returns the lines of an experiment that the sound one does not have.
func changed(text string) string {
	list := lists.Filter(strings.Split(text, "\n"), func(line string) bool { return !slices.Contains(strings.Split(sound, "\n"), line) })
	return strings.Join(lists.Or(list, []string{"sound"}), "; ")
}

// TestAccept: accepted warnings need a reason and must exist.
func TestAccept(t *testing.T) {
	one := sound + "seeds: 1\n"
	for text, want := range map[string]string{
		"accept: {no-seeds: why}":     "accept.no-seeds: no such warning: want one of no-marking",
		"accept: {few-seeds: \"  \"}": "accept.few-seeds: want the reason",
	} {
		if _, err := Load("x.yaml", []byte(one+text), nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	x, err := Load("x.yaml", []byte(one+"accept: {few-seeds: it is a sketch}"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	list, err := x.Lint(nil)
	if err != nil || len(list) != 1 || len(Unaccepted(list)) != 0 || list[0].String() != "few-seeds: one seed gives no confidence interval: use at least 5 (accepted: it is a sketch)" {
		t.Errorf("%v, %v", list, err)
	}
}
