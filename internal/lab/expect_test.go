package lab

import (
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

// TestChecks compares rows with given values with thresholds.
func TestChecks(t *testing.T) {
	c := made(map[string][]float64{"a": {10, 11, 10}, "b": {20, 22, 20}, "noisy": {9, 30, 10}}, "a", "b", "noisy")
	for _, r := range c.Rows {
		for _, run := range r.Runs {
			run.Metrics["unfinished"] = 0
		}
	}
	for _, k := range []struct {
		text string
		met  []bool
		why  string
	}{
		{"fct-mean of a < 0.9 * b", []bool{true}, "measured 0.500 ±0 * b"},
		{"fct-mean of a<b", []bool{true}, "measured 0.500"},
		{"fct-mean of a < 0.4 * b", []bool{false}, "measured 0.500 ±0 * b"},
		{"fct-mean of b >= 2 * a", []bool{true}, ""},
		{"fct-mean of a < 20 * noisy", []bool{true}, ""},
		{"fct-mean of a < 1.1 * noisy", []bool{false}, "the 95 % interval contains the threshold, about "},
		{"unfinished == 0", []bool{true, true, true}, "measured 0 ±0"},
		{"fct-p99 < 120", []bool{true, false, false}, ""},
		{"fct-p50 of a > 1", []bool{false}, "no run measured it"},
	} {
		c.Experiment.Expect = []string{k.text}
		got := c.Checks()
		if len(got) != len(k.met) {
			t.Errorf("%s: %v", k.text, got)
			continue
		}
		for i := range got {
			if got[i].Met != k.met[i] || !strings.Contains(got[i].Why, k.why) || got[i].Why == "" {
				t.Errorf("%s: %+v, want %v: %s", k.text, got[i], k.met[i], k.why)
			}
		}
	}
	for _, run := range c.Row("", "b", 0.7).Runs {
		run.Metrics["unfinished"] = 30
	}
	c.Experiment.Expect = []string{"fct-mean of a < b"}
	if got := c.Checks(); got[0].Met || got[0].Why != "30 % of the flows of b unfinished" {
		t.Errorf("%+v", got)
	}
	text, err := JUnit([]JUnitSuite{{"x", []Check{{Name: "a < b", Met: true}, {Name: "a < c", Why: "measured <2>"}}, 1500 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Suites []struct {
			Name     string `xml:"name,attr"`
			Tests    int    `xml:"tests,attr"`
			Failures int    `xml:"failures,attr"`
			Time     string `xml:"time,attr"`
			Cases    []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	s := read.Suites[0]
	if s.Name != "x" || s.Tests != 2 || s.Failures != 1 || s.Time != "1.500" || s.Cases[0].Failure != nil || s.Cases[1].Failure.Message != "measured <2>" {
		t.Errorf("%s", text)
	}
}

// TestExpectRefused: an expectation that cannot be judged is refused with its line.
func TestExpectRefused(t *testing.T) {
	for text, want := range map[string]string{
		"fct-mean of drill better than ecmp": "want METRIC [of ROW] < [NUMBER *] ROW",
		"fct-mean of drill < 0.9 * conga":    `there is no row "conga": there are drill, ecmp`,
		"fct of drill < ecmp":                `there is no metric "fct"`,
		"fct-mean of drill < drill":          "compared with itself",
		"fct-mean of drill < 1e * ecmp":      `"1e" is no number`,
	} {
		_, err := spec.Load("x.yaml", []byte("schemes: [drill, ecmp]\nexpect: [\""+text+"\"]\n"), nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "x.yaml:2: expect[0]: ") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
