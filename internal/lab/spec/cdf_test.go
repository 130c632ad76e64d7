package spec

import (
	"math"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// means are the mean sizes in bytes that the papers print, or else those of the
// points.
var means = map[string]float64{
	"websearch": 1.711e6, "datamining": 7.47e6, "webserver": 66.1e3, "cachefollower": 713e3, "hadoop": 120e3,
	"qdaps-ws": 1.6e6, "qdaps-dm": 7.4e6, "alistorage": 40.9e3, "solar": 39.4e3,
}

func TestWorkloads(t *testing.T) {
	for _, name := range Workloads() {
		c, err := WorkloadNamed(name)
		if err != nil {
			t.Error(err)
			continue
		}
		want, ok := means[name]
		if !ok {
			t.Errorf("%s: the test knows no mean", name)
		}
		if got := c.Mean(); !(math.Abs(got/want-1) <= 0.005) {
			t.Errorf("%s has a mean of %.0f, want %.0f", name, got, want)
		}
		again, err := parseCDF("again", c.Text())
		if err != nil {
			t.Errorf("%s does not read what it has written: %v", name, err)
		} else if !(math.Abs(again.Mean()/c.Mean()-1) <= 1e-6) {
			t.Errorf("%s has another mean when it is read again: %g", name, again.Mean())
		}
	}
}

// TestQuantiles draws by the midpoints of a fine grid: the sum must be the mean.
func TestQuantiles(t *testing.T) {
	for _, name := range Workloads() {
		c, err := WorkloadNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		const n = 100000
		sum, last := 0.0, int64(0)
		for i := range n {
			v := c.quantile((float64(i) + 0.5) / n)
			if v < last || v < 1 {
				t.Fatalf("%s: a size of %d after %d", name, v, last)
			}
			last = v
			sum += float64(v)
		}
		if got := sum / n; !(math.Abs(got/c.Mean()-1) <= 0.001) {
			t.Errorf("%s: the quantiles have a mean of %.0f, the points %.0f", name, got, c.Mean())
		}
	}
}

// TestSteps: two points of a size are a step, two of a probability a gap.
func TestSteps(t *testing.T) {
	c, err := parseCDF("steps.txt", []byte("100 0\n100 .5 # half of all\n200 .5\n300 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	for u, want := range map[float64]int64{0: 100, 0.25: 100, 0.499: 100, 0.5: 200, 0.75: 250, 1: 300} {
		if got := c.quantile(u); got != want {
			t.Errorf("the quantile %g is %d, want %d", u, got, want)
		}
	}
	if got := c.Mean(); got != 175 {
		t.Errorf("the mean is %g, want 175", got)
	}
}

func TestCut(t *testing.T) {
	c, err := parseCDF("c", []byte("0 0\n100 .5\n300 1"))
	if err != nil {
		t.Fatal(err)
	}
	cut := c.cut(200)
	for u, want := range map[float64]int64{0.25: 50, 0.75: 200, 0.99: 200} {
		if got := cut.quantile(u); got != want {
			t.Errorf("the quantile %g is %d, want %d", u, got, want)
		}
	}
	if got := c.cut(1000).Mean(); got != c.Mean() {
		t.Errorf("a cut above all sizes changes the mean to %g", got)
	}
}

func TestCDFErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "want two points or more"},
		{"10 0", "want two points or more"},
		{"10 0\n20 .5", "the last probability is 0.5: want 1"},
		{"10 0\n5 1", "f.txt:2: bytes 5 after 10"},
		{"10 .5\n\n20 .4", "f.txt:3: probability .4 after 0.5"},
		{"10 0\n20 1.5", "f.txt: the last probability is 1.5: want 1, or 100 in percent"},
		{"-1 0\n20 1", "f.txt:1: bytes \"-1\""},
		{"x 0\n20 1", "f.txt:1: bytes \"x\""},
		{"NaN 0\n20 1", "f.txt:1: bytes"},
		{"10 0 3\n20 1", "f.txt:1: want two numbers"},
		{"0 0\n0 1", "the mean is 0 bytes"},
		{"# mean 100\n0 0\n100 1", "have a mean of 50 bytes, and the comment says 100"},
	} {
		_, err := parseCDF("f.txt", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.text, err, c.want)
		}
	}
}

// TestLongLines: a line that is too long is named.
func TestLongLines(t *testing.T) {
	text := []byte("0 0\n" + strings.Repeat("1 ", 1<<20))
	const want = "f.txt:2: a line of more than 65536 bytes"
	if _, err := parseCDF("f.txt", text); err == nil || err.Error() != want {
		t.Errorf("a distribution: %v", err)
	}
	text = []byte("src dst bytes start_s\n" + strings.Repeat("1 ", 1<<20))
	if _, err := parseFlows("f.txt", text, &fabric.Topology{}); err == nil || err.Error() != want {
		t.Errorf("flows: %v", err)
	}
}

func FuzzParseCDF(f *testing.F) {
	for _, name := range Workloads() {
		c, err := WorkloadNamed(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(c.Text())
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseCDF("f", text)
		if (c == nil) != (err != nil) {
			t.Fatalf("got %v and %v", c, err)
		}
		if err != nil {
			return
		}
		for _, u := range []float64{0, 0.1, 0.5, 0.999, 1} {
			if c.quantile(u) < 1 {
				t.Fatalf("the quantile %g is %d", u, c.quantile(u))
			}
		}
	})
}

// TestPercent reads the same distribution as other simulators write it.
func TestPercent(t *testing.T) {
	want, err := parseCDF("a", []byte("0 0\n1000 0.5\n5000 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"0 0\n1000 50\n5000 100\n", "0,0\n1000,0.5\n5000,1\n", "0;0\r\n1000;50\r\n5000;100\r\n"} {
		got, err := parseCDF("b", []byte(text))
		if err != nil || got.Mean() != want.Mean() || got.quantile(0.5) != want.quantile(0.5) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"0 0\n1000 50\n":            "the last probability is 50: want 1, or 100 in percent",
		"0 0\n1000 0.5\n":           "the last probability is 0.5: want 1",
		"0 0\n1000 101\n":           "want a number from 0 to 1, or to 100 in percent",
		"1 1 0\n6 1 0.15\n10 1 1\n": "want two numbers",
	} {
		if _, err := parseCDF("c", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
