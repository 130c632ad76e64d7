package live

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// scrape returns the lines of the metrics.
func scrape(t *testing.T, e *Exporter) []string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- e.Serve(ctx, l) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	resp, err := http.Get("http://" + l.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || !strings.HasPrefix(got, "text/plain; version=0.0.4") {
		t.Errorf("status %s, content type %s", resp.Status, got)
	}
	var lines []string
	for s := bufio.NewScanner(resp.Body); s.Scan(); {
		lines = append(lines, s.Text())
	}
	return lines
}

func TestScrape(t *testing.T) {
	var e Exporter
	if got := scrape(t, &e); len(got) != 0 {
		t.Errorf("before the first frame: %q", got)
	}
	e.Show(sample(4, 2))
	f := sample(5, 2) // l1 does not answer
	f.Switches[1].Values = append(f.Switches[1].Values, Value{
		Register: `q"t\`, Index: "flow 7\nx", Number: 0.1, Unit: "us",
	}, Value{Register: "q_T", Index: "port 5", Port: 5, Peer: "s1", Number: 1.5e9, Unit: "us"})
	e.Show(f)
	got := scrape(t, &e)
	for _, want := range []string{
		`# TYPE p4lb_register_seconds gauge`,
		`p4lb_queue_occupancy_ratio{scheme="qall-poly3",switch="l2",register="q_L",port="4"} 0.93`,
		`p4lb_register_seconds{scheme="qall-poly3",switch="l2",register="q_T",port="5",peer="s1"} 1500`,
		`p4lb_register_seconds{scheme="qall-poly3",switch="l2",register="rtt",group="2",path="3"} 0.0001025`,
		`p4lb_register_seconds{scheme="qall-poly3",switch="l2",register="q\"t\\",index="flow 7\nx"} 1e-07`,
		`p4lb_switch_up{scheme="qall-poly3",switch="l1",role="leaf"} 0`,
		`p4lb_switch_up{scheme="qall-poly3",switch="l2",role="leaf"} 1`,
		`p4lb_switch_clock_seconds{scheme="qall-poly3",switch="l2"} 5`,
		`# TYPE p4lb_reads_total counter`,
		`p4lb_reads_total{scheme="qall-poly3",switch="l1"} 2`,
		`p4lb_read_failures_total{scheme="qall-poly3",switch="l1"} 1`,
		`p4lb_read_failures_total{scheme="qall-poly3",switch="l2"} 0`,
	} {
		if !slices.Contains(got, want) {
			t.Errorf("missing: %s", want)
		}
	}
	for _, line := range got {
		if strings.Contains(line, `switch="l1",register`) {
			t.Errorf("a switch that does not answer has a value: %s", line)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(got, "\n"))
	}
}

// TestScrapeIsText parses each line by the format's grammar, and checks that no series
// occurs twice and no family is split.
func TestScrapeIsText(t *testing.T) {
	var e Exporter
	e.Show(sample(1, 3))
	series := regexp.MustCompile(`^([a-z][a-z0-9_]*)\{([a-z]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z]+="(?:[^"\\\n]|\\["\\n])*")*)\} (\S+)$`)
	head := regexp.MustCompile(`^# (HELP|TYPE) ([a-z][a-z0-9_]*) \S`)
	family, seen := "", map[string]bool{}
	for _, line := range scrape(t, &e) {
		if m := head.FindStringSubmatch(line); m != nil {
			if m[1] == "HELP" && seen[m[2]] {
				t.Errorf("family %s begins twice", m[2])
			}
			family = m[2]
			seen[family] = true
			continue
		}
		m := series.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("neither a comment nor a sample: %s", line)
			continue
		}
		if _, err := strconv.ParseFloat(m[3], 64); err != nil || m[1] != family || seen[m[1]+m[2]] {
			t.Errorf("in family %s: %s (%v)", family, line, err)
		}
		seen[m[1]+m[2]] = true
	}
}

func TestServeEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := new(Exporter).Serve(t.Context(), l); err == nil || !strings.Contains(err.Error(), "serving at 127.0.0.1:") {
		t.Errorf("serving at a closed listener: %v", err)
	}
}

// TestDashboard: docs/grafana.json only uses metrics and labels that a scrape contains, in
// selections, groupings and legends.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard any
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, m := range metrics {
		names[m.name] = false
	}
	labels := []string{"scheme", "switch", "role", "register", "port", "peer", "group", "path", "index", "unit", "direction", "reason", "__name__"}
	used := regexp.MustCompile(`\bp4lb_\w+`)
	label := regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"|\{\{\s*(\w+)\s*\}\}|\bby \((\w+)\)|label_values\([^()]*, (\w+)\)`)
	queries := 0
	walk(dashboard, func(key, text string) {
		if key != "expr" && key != "query" && key != "legendFormat" {
			return
		}
		for _, name := range used.FindAllString(text, -1) {
			if name == "p4lb_register" && strings.Contains(text, "p4lb_register.*") {
				continue // all of them
			}
			queries++
			if _, ok := names[name]; !ok {
				t.Errorf("%s: there is no metric %s", text, name)
			}
			names[name] = true
		}
		for _, m := range label.FindAllStringSubmatch(text, -1) {
			if l := strings.Join(m[1:], ""); !slices.Contains(labels, l) {
				t.Errorf("%s: there is no label %s", text, l)
			}
		}
	})
	for name, asked := range names {
		if !asked {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
	if queries < len(metrics) {
		t.Errorf("%d queries", queries)
	}
}

// walk calls visit for each string below a key of a JSON document.
func walk(v any, visit func(key, text string)) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if text, ok := x.(string); ok {
				visit(k, text)
			}
			walk(x, visit)
		}
	case []any:
		for _, x := range v {
			walk(x, visit)
		}
	}
}

func BenchmarkScrape(b *testing.B) {
	f := &Frame{Scheme: "qall-poly3", Time: time.Second}
	for i := range 20 {
		sw := Switch{Name: "l" + strconv.Itoa(i)}
		for port := range 500 {
			sw.Values = append(sw.Values, Value{Register: "q_L", Port: port, Peer: "s1", Number: float64(port) / 7, Unit: "us"})
		}
		f.Switches = append(f.Switches, sw)
	}
	var e Exporter
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			e.Show(f)
			e.metrics()
		}
	})
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			e.metrics()
		}
	})
}

// TestMetricNames checks that names of metrics follow the conventions, and that each value
// has the metric of its meaning, in base units.
func TestMetricNames(t *testing.T) {
	kinds := map[string]string{}
	for _, m := range metrics {
		if kinds[m.name] != "" {
			t.Errorf("%s is there twice", m.name)
		}
		kinds[m.name] = m.kind
		if counter := strings.HasSuffix(m.name, "_total"); counter != (m.kind == "counter") {
			t.Errorf("%s is a %s", m.name, m.kind)
		}
		for _, scaled := range []string{"_ms", "_us", "_microseconds", "_milliseconds", "_kilobytes", "_percent"} {
			if strings.Contains(m.name, scaled) {
				t.Errorf("%s is in no base unit", m.name)
			}
		}
	}
	for k, s := range known {
		if s.metric != "" && kinds[s.metric] == "" {
			t.Errorf("%v goes to %s, which is not there", k, s.metric)
		}
	}
	for unit, s := range units {
		if kinds[s.metric] == "" {
			t.Errorf("%s goes to %s, which is not there", unit, s.metric)
		}
	}
	var e Exporter
	e.Show(&Frame{Scheme: "ecmp", Switches: []Switch{{Name: "s1", Values: []Value{
		{Register: "tx bytes", Port: 3, Peer: "s2", Number: 1e6, Unit: "bytes"},
		{Register: "tx rate", Port: 3, Number: 8e6, Unit: "bit/s"},
		{Register: "drops", Port: 3, Number: 7, Unit: "packets"},
		{Register: "drops: queue full", Port: 3, Number: 7, Unit: "packets"},
		{Register: "copies ended", Port: 3, Number: 9, Unit: "packets"},
		{Register: "link down", Port: 4, Number: 1},
		{Register: "tm", Port: 3, Number: 10, Unit: "cells of 80 bytes"},
		{Register: "level", Group: 1, Path: 2, Number: 5, Unit: "level"},
	}}}})
	want := []string{
		`p4lb_port_bytes_total{scheme="ecmp",switch="s1",direction="transmit",port="3",peer="s2"} 1e+06`,
		`p4lb_port_drops_total{scheme="ecmp",switch="s1",port="3"} 7`,
		`p4lb_port_drops_by_reason_total{scheme="ecmp",switch="s1",reason="queue full",port="3"} 7`,
		`p4lb_port_copies_ended_total{scheme="ecmp",switch="s1",port="3"} 9`,
		`p4lb_port_down{scheme="ecmp",switch="s1",port="4"} 1`,
		`p4lb_register_bytes{scheme="ecmp",switch="s1",register="tm",port="3"} 800`,
		`p4lb_register{scheme="ecmp",switch="s1",register="level",group="1",path="2",unit="level"} 5`,
	}
	var got []string
	for _, line := range scrape(t, &e) {
		if strings.HasPrefix(line, "p4lb_port") || strings.HasPrefix(line, "p4lb_register") {
			got = append(got, line)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
