package chart

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// charts returns charts of all kinds, including charts with almost no data.
func charts() []*Chart {
	nan := math.NaN()
	return []*Chart{
		{Name: "line", Title: "Lines <&> bands", X: Axis{Label: "load"}, Y: Axis{Label: "fct (ms)"}, Series: []Series{
			{Label: "a", Marks: true, X: []float64{0.2, 0.4, 0.6}, Y: []float64{1, 2, 4}, Half: []float64{0.1, 0.2, 5}},
			{Label: "b", X: []float64{0.2, 0.4, 0.6}, Y: []float64{1, nan, 3}, Tint: 9},
		}},
		{Name: "log", X: Axis{Log: true}, Y: Axis{High: 1}, Wide: true, Series: []Series{{Label: "a", X: []float64{0.01, 3, 5000}, Y: []float64{0, 0.5, 1}}}},
		{Name: "bars", X: Axis{Names: []string{"qall-poly3-flowlet-with-a-long-name", "ecmp"}}, Series: []Series{
			{Label: "one", Kind: Bars, X: []float64{0}, Y: []float64{3}, Half: []float64{1}}, {Label: "two", Kind: Bars, X: []float64{1}, Y: []float64{nan}},
		}},
		{Name: "printed", X: Axis{Names: []string{"1"}}, Series: []Series{
			{Label: "measured", Kind: Points, X: []float64{0}, Y: []float64{-4}, Half: []float64{1}}, {Label: "printed", Kind: Hollow, X: []float64{0}, Y: []float64{30}},
		}},
		{Name: "none"},
		{Name: "empty", X: Axis{Log: true}, Y: Axis{Log: true}, Series: []Series{{Label: "nothing"}}},
		{Name: "constant", Series: []Series{{Label: "a", X: []float64{1}, Y: []float64{0}}}},
		{Name: "infinite", Series: []Series{{Label: "a", X: []float64{1, 2}, Y: []float64{math.Inf(1), 2}}}},
	}
}

// TestWellFormed parses the output as its readers do: XML, PDF with valid offsets,
// JSON, and only finite coordinates.
func TestWellFormed(t *testing.T) {
	for _, c := range charts() {
		for name, text := range map[string]string{"svg": string(c.SVG()), "inline": c.Inline()} {
			d := xml.NewDecoder(strings.NewReader(text))
			for {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%s as %s: %v", c.Name, name, err)
				}
			}
			if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
				t.Errorf("%s as %s: not a number: %s", c.Name, name, text)
			}
		}
		checkPDF(t, c)
		if data, err := c.Data(); c.Name != "infinite" && (err != nil || !json.Valid(data)) {
			t.Errorf("%s: %s, %v", c.Name, data, err)
		}
	}
}

func checkPDF(t *testing.T, c *Chart) {
	t.Helper()
	pdf := c.PDF()
	if !bytes.HasPrefix(pdf, []byte("%PDF-1.4\n")) || !bytes.HasSuffix(pdf, []byte("%%EOF\n")) || bytes.Contains(pdf, []byte("NaN")) {
		t.Fatalf("%s: no PDF: %q", c.Name, pdf)
	}
	for i, m := range regexp.MustCompile(`(?m)^(\d{10}) 00000 n $`).FindAllSubmatch(pdf, -1) {
		at, _ := strconv.Atoi(string(m[1]))
		if want := fmt.Sprintf("%d 0 obj\n", i+1); !bytes.HasPrefix(pdf[at:], []byte(want)) {
			t.Errorf("%s: object %d is not at %d", c.Name, i+1, at)
		}
	}
	m := regexp.MustCompile(`(?s)<< /Length (\d+) >>\nstream\n(.*?)endstream`).FindSubmatch(pdf)
	if m == nil || string(m[1]) != strconv.Itoa(len(m[2])) {
		t.Errorf("%s: the stream has another length than it says", c.Name)
	}
	start := regexp.MustCompile(`startxref\n(\d+)\n`).FindSubmatch(pdf)
	if at, _ := strconv.Atoi(string(start[1])); !bytes.HasPrefix(pdf[at:], []byte("xref\n")) {
		t.Errorf("%s: no table at %s", c.Name, start[1])
	}
}

// TestLayout: larger values are higher, shapes are inside the sheet, and intervals of
// non-negative values are cut at 0.
func TestLayout(t *testing.T) {
	for _, c := range charts() {
		l := c.paper()
		for _, s := range l.shapes {
			for _, p := range s.points {
				if !(p.x >= 0 && p.x <= l.width && p.y >= 0 && p.y <= l.height) {
					t.Errorf("%s: %+v lies beside the sheet", c.Name, s)
				}
			}
		}
	}
	l := charts()[0].paper()
	if a, b := l.at(0.2, 1), l.at(0.6, 4); a.y <= b.y || a.x >= b.x {
		t.Errorf("%v and %v", a, b)
	}
	if l.y.low != 0 {
		t.Errorf("the axis begins at %g", l.y.low)
	}
	if l := charts()[3].paper(); l.y.low > -5 {
		t.Errorf("a value of -4 with its interval is cut at %g", l.y.low)
	}
}

// TestWholeRows: the first row of names is as high as the others.
func TestWholeRows(t *testing.T) {
	f := &Chart{Y: Axis{Names: []string{"a", "b"}}, Series: []Series{{Kind: Spans, X: []float64{0, 0}, To: []float64{1, 1}, Y: []float64{0, 1}}}}
	if l := f.lay(400, 300, 10, false, false); l.y.low != -0.5 || l.y.high != 1.5 {
		t.Errorf("rows from %g to %g: want -0.5 to 1.5, or a row is cut", l.y.low, l.y.high)
	}
}

func TestTicks(t *testing.T) {
	// Of many names, a chart labels as many as fit.
	for n, want := range map[int][]float64{2: {0, 1}, 6: {0, 1, 2, 3, 4, 5}, 8: {0, 2, 4, 6}, 15: {0, 3, 6, 9, 12}} {
		c := &Chart{Y: Axis{Names: make([]string, n)}}
		if got := c.heights(&layout{height: 100, font: 10}); !slices.Equal(got, want) {
			t.Errorf("of %d names %v have labels, want %v", n, got, want)
		}
	}
	for _, c := range []struct {
		s    span
		want string
	}{
		{span{low: 0, high: 1}, "0 0.2 0.4 0.6 0.8 1"},
		{span{low: 0, high: 97}, "0 20 40 60 80"},
		{span{low: 0, high: 3}, "0 1 2 3"},
		{span{low: 0, high: 29}, "0 5 10 15 20 25"},
		{span{low: 0, high: 30}, "0 10 20 30"},
		{span{low: 10, high: 61}, "10 20 30 40 50 60"},
		{span{low: -3, high: 3}, "-3 -2 -1 0 1 2 3"},
		{span{low: 0.01, high: 5000, log: true}, "0.01 0.1 1 10 100 1000"},
		{span{low: 1, high: 1000, log: true}, "1 10 100 1000"},
		{span{low: 1, high: 999, log: true}, "1 2 5 10 20 50 100 200 500"},
		{span{low: 1.5, high: 60, log: true}, "2 5 10 20 50"},
	} {
		var got []string
		for _, v := range c.s.ticks() {
			got = append(got, label(v))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %v, want %s", c.s, got, c.want)
		}
	}
}

// TestSpans: an axis shows all values, zero unless it is logarithmic, and its limits.
func TestSpans(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		axis      Axis
		values    []float64
		low, high float64
	}{
		{Axis{}, nil, -0.5, 0.5 + 0.04},
		{Axis{}, []float64{nan, inf}, -0.5, 0.5 + 0.04},
		{Axis{}, []float64{2, 4}, 0, 4 * 1.04},
		{Axis{}, []float64{-2, -4}, -4, 0 + 0.04*4},
		{Axis{High: 5}, []float64{2, 4}, 0, 5},
		{Axis{High: 5}, []float64{2, 6}, 0, 6 * 1.04},
		{Axis{Low: 1, High: 5}, []float64{2, 4}, 1, 5},
		{Axis{Low: -1}, []float64{2, 4}, -1, 4 + 0.04*5},
		{Axis{Low: 1}, []float64{-3}, -3, 1 + 0.04*4},
		{Axis{High: 1}, []float64{-3}, -3, 1},
		{Axis{Log: true}, nil, 0.1, 10},
		{Axis{Log: true}, []float64{-1, 0, 3}, 1.5, 6},
		{Axis{Log: true}, []float64{1, 3}, 1, 3},
		{Axis{Names: []string{"a", "b", "c"}}, []float64{7}, -0.5, 2.5},
	} {
		s := c.axis.span(func(yield func(float64)) {
			for _, v := range c.values {
				yield(v)
			}
		})
		if !(math.Abs(s.low-c.low) <= 1e-12) || !(math.Abs(s.high-c.high) <= 1e-12) || s.log != (c.axis.Log && c.axis.Names == nil) {
			t.Errorf("%+v with %v: %+v, want %g to %g", c.axis, c.values, s, c.low, c.high)
		}
	}
	for v, want := range map[float64]string{0: "0", 9999999: "9999999", 1e7: "1e+07", -1e7: "-1e+07", 1e-4: "0.0001", 9e-5: "9e-05", 0.1 + 0.2: "0.3"} {
		if got := label(v); got != want {
			t.Errorf("%g is labelled %s, want %s", v, got, want)
		}
	}
	for tint, want := range map[int]int{-1: 0, 0: 0, 7: 7, 8: 0, 12: 4} {
		if got := (Series{Tint: tint}).Colour(); got != want {
			t.Errorf("tint %d has colour %d, want %d", tint, got, want)
		}
	}
}

func TestCSV(t *testing.T) {
	want := "series,load,fct (ms),ci95\na,0.2,1,0.1\na,0.4,2,0.2\na,0.6,4,5\nb,0.2,1,\nb,0.4,,\nb,0.6,3,\n"
	if got := string(charts()[0].CSV()); got != want {
		t.Errorf("%s", got)
	}
	if got := string(charts()[2].CSV()); !strings.Contains(got, "two,ecmp,,\n") {
		t.Errorf("%s", got)
	}
	// Values that have no name on an axis are written as numbers.
	few := &Chart{X: Axis{Names: []string{"a", "b"}}, Y: Axis{Names: []string{"c"}}, Series: []Series{{Label: "s", X: []float64{-1, 1, 2}, Y: []float64{-1, 0, 1}}}}
	if got, want := string(few.CSV()), "series,x,y,ci95\ns,-1,-1,\ns,b,0,\ns,2,1,\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	few.Series[0].Kind, few.Series[0].To = Spans, []float64{3, 3, 3}
	if got, want := string(few.CSV()), "series,y,from x,to x,shade\ns,-1,-1,3,1\ns,c,1,3,1\ns,1,2,3,1\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
