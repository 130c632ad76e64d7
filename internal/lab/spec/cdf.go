package spec

import (
	"bufio"
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"unicode"
)

// A CDF is a distribution of flow sizes. It is linear between two points. Two points with the
// same size are a step in probability. Two points with the same probability are a gap between
// sizes.
type CDF struct {
	Name   string
	About  string
	Points []SizePoint

	// Stated is the mean that the file states, or 0.
	Stated float64
}

// A SizePoint is a point of a distribution: a flow has at most Bytes bytes with
// probability P.
type SizePoint struct{ Bytes, P float64 }

//go:embed workloads/*.txt
var workloadFiles embed.FS

// Workloads lists the built-in distributions by name.
func Workloads() []string {
	entries, err := workloadFiles.ReadDir("workloads")
	if err != nil {
		panic(err) // embedded files are always readable
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".txt"))
	}
	return names
}

// WorkloadNamed returns a distribution that comes with the lab.
func WorkloadNamed(name string) (*CDF, error) {
	text, err := workloadFiles.ReadFile("workloads/" + name + ".txt")
	if err != nil {
		return nil, fmt.Errorf("no workload %q: there are %s, and files of lines \"bytes p\"", name, strings.Join(Workloads(), ", "))
	}
	return parseCDF(name+".txt", text)
}

// parseCDF reads a distribution. Each point is a line "bytes p", and # starts a comment. p rises
// to 1, or to 100 in percent, as in the files of ns-3 and HPCC. A comment "mean N" is checked
// against the points.
func parseCDF(file string, text []byte) (*CDF, error) {
	name := file[strings.LastIndexByte(file, '/')+1:]
	c := &CDF{Name: strings.TrimSuffix(name, ".txt")}
	lines := bufio.NewScanner(bytes.NewReader(text))
	n := 1
	for ; lines.Scan(); n++ {
		line, comment, _ := strings.Cut(lines.Text(), "#")
		c.note(comment)
		if strings.TrimSpace(line) == "" {
			continue
		}
		if err := c.add(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
	if lines.Err() != nil {
		return nil, fmt.Errorf("%s:%d: a line of more than %d bytes", file, n, bufio.MaxScanTokenSize)
	}
	if err := c.finish(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// note uses the first comment as the description of the distribution, and reads the stated mean.
func (c *CDF) note(comment string) {
	comment = strings.TrimSpace(comment)
	c.About = cmp.Or(c.About, comment)
	if _, rest, ok := strings.Cut(comment, "mean "); ok {
		if v, err := strconv.ParseFloat(strings.Fields(rest + " x")[0], 64); err == nil {
			c.Stated = v
		}
	}
}

// add appends a point.
func (c *CDF) add(line string) error {
	fields := strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ';' || unicode.IsSpace(r) })
	if len(fields) != 2 {
		return fmt.Errorf("want two numbers, bytes and probability, got %q", strings.TrimSpace(line))
	}
	x, errX := strconv.ParseFloat(fields[0], 64)
	p, errP := strconv.ParseFloat(fields[1], 64)
	switch {
	case errX != nil || !(x >= 0) || math.IsInf(x, 0):
		return fmt.Errorf("bytes %q: want a number from 0", fields[0])
	case errP != nil || !(p >= 0 && p <= 100):
		return fmt.Errorf("probability %q: want a number from 0 to 1, or to 100 in percent", fields[1])
	}
	if n := len(c.Points); n > 0 {
		last := c.Points[n-1]
		if x < last.Bytes {
			return fmt.Errorf("bytes %s after %g: sizes must not fall", fields[0], last.Bytes)
		}
		if p < last.P {
			return fmt.Errorf("probability %s after %g: probabilities must not fall", fields[1], last.P)
		}
	}
	c.Points = append(c.Points, SizePoint{x, p})
	return nil
}

// finish checks conditions that concern all points.
func (c *CDF) finish() error {
	if len(c.Points) < 2 {
		return fmt.Errorf("want two points or more, got %d", len(c.Points))
	}
	if last := c.Points[len(c.Points)-1].P; last == 100 {
		for i := range c.Points {
			c.Points[i].P /= 100
		}
	} else if last > 1 {
		return fmt.Errorf("the last probability is %g: want 1, or 100 in percent", last)
	}
	if p := c.Points[0].P; p > 0 { // sizes below the first point are set to its size
		c.Points = append([]SizePoint{{c.Points[0].Bytes, 0}}, c.Points...)
	}
	if last := c.Points[len(c.Points)-1]; last.P < 1 {
		return fmt.Errorf("the last probability is %g: want 1", last.P)
	}
	mean := c.Mean()
	if mean < 1 {
		return fmt.Errorf("the mean is %g bytes: want 1 or more", mean)
	}
	if c.Stated > 0 && math.Abs(mean/c.Stated-1) > 0.005 {
		return fmt.Errorf("the points have a mean of %.0f bytes, and the comment says %.0f", mean, c.Stated)
	}
	return nil
}

// Mean returns the mean size in bytes.
func (c *CDF) Mean() float64 {
	sum := 0.0
	for i := 1; i < len(c.Points); i++ {
		a, b := c.Points[i-1], c.Points[i]
		sum += (b.P - a.P) * (a.Bytes + b.Bytes) / 2
	}
	return sum
}

// quantile returns the size that a share u of the flows does not exceed. A flow has at least one
// byte.
func (c *CDF) quantile(u float64) int64 {
	i := sort.Search(len(c.Points), func(i int) bool { return c.Points[i].P > u })
	if i == len(c.Points) {
		return max(1, int64(c.Points[i-1].Bytes))
	}
	if i == 0 {
		return max(1, int64(c.Points[0].Bytes))
	}
	a, b := c.Points[i-1], c.Points[i]
	return max(1, int64(math.Round(a.Bytes+(b.Bytes-a.Bytes)*(u-a.P)/(b.P-a.P))))
}

// cut returns the distribution with all sizes limited to limit. Otherwise a single flow could
// dominate a short run.
func (c *CDF) cut(limit float64) *CDF {
	cut := &CDF{Name: c.Name, About: c.About}
	for i, pt := range c.Points {
		if pt.Bytes > limit {
			if i > 0 && c.Points[i-1].Bytes < limit {
				a := c.Points[i-1]
				p := a.P + (pt.P-a.P)*(limit-a.Bytes)/(pt.Bytes-a.Bytes)
				cut.Points = append(cut.Points, SizePoint{limit, p})
			}
			break
		}
		cut.Points = append(cut.Points, pt)
	}
	if n := len(cut.Points); n == 0 || cut.Points[n-1].P < 1 {
		cut.Points = append(cut.Points, SizePoint{limit, 1})
	}
	return cut
}

// Text writes the distribution as ParseCDF reads it.
func (c *CDF) Text() []byte {
	var b bytes.Buffer
	if c.About != "" {
		fmt.Fprintf(&b, "# %s\n", c.About)
	}
	for _, p := range c.Points {
		fmt.Fprintf(&b, "%-9.10g %.6g\n", p.Bytes, p.P)
	}
	return b.Bytes()
}

// paretoShape is the default shape of the heavy tail.
const paretoShape = 1.2

// boundedPareto returns quantile u of a Pareto distribution that is bounded on both sides.
func boundedPareto(lo, hi, u float64) float64 {
	r := math.Pow(lo/hi, paretoShape)
	return lo / math.Pow(1-u*(1-r), 1/paretoShape)
}
