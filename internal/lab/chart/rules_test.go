package chart

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPGFOmits: values and intervals that are infinite or no number are omitted for LaTeX, which
// cannot read them.
func TestPGFOmits(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	c := &Chart{Series: []Series{{Label: "s", X: []float64{1, 2, 3, 4, 5, 6, 7}, Y: []float64{1, inf, -inf, nan, 5, 6, 7}, Half: []float64{0.5, 1, 1, 1, inf, -inf, nan}}}}
	text := string(c.PGF())
	if want := "coordinates { (1,1) +- (0,0.5) (5,5) (6,6) (7,7) };"; !strings.Contains(text, want) {
		t.Errorf("%s lacks %s", text, want)
	}
}

// TestPGFAxes: an axis is logarithmic if the chart's is, names are labels of ticks, and only spans
// limit the axes.
func TestPGFAxes(t *testing.T) {
	for _, c := range []struct {
		x, y bool
		want string
	}{{false, false, "axis"}, {true, false, "semilogxaxis"}, {false, true, "semilogyaxis"}, {true, true, "loglogaxis"}} {
		text := string((&Chart{X: Axis{Log: c.x}, Y: Axis{Log: c.y}, Series: []Series{{X: []float64{1}, Y: []float64{2}}}}).PGF())
		if !strings.Contains(text, `\begin{`+c.want+"}[width=\\columnwidth") || !strings.Contains(text, `\end{`+c.want+"}") || strings.Contains(text, "xmin") {
			t.Errorf("logarithmic %v, %v: %s", c.x, c.y, text)
		}
	}
	f := &Chart{Title: "a\nb", Wide: true, X: Axis{Names: []string{"p_1", "q"}}, Y: Axis{Names: []string{"r"}}, Series: []Series{{Kind: Spans, X: []float64{0}, To: []float64{1}, Y: []float64{0}}}}
	text := string(f.PGF())
	for _, want := range []string{"% a b\n", `width=\textwidth`, `xtick={0,1}, xticklabels={{p\_1},{q}}`, `ytick={0}, yticklabels={{r}}`, "ymin=-0.5, ymax=0.5,", "rectangle (axis cs:1,0.4)", "(axis cs:0,-0.4)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
}

// TestPGFBars: bars of several series stand beside each other, 7 points apart, around the value's
// place; a single bar of each series stands in its place.
func TestPGFBars(t *testing.T) {
	two, one := []float64{0, 1}, []float64{0}
	for _, c := range []struct {
		list []Series
		want []string
	}{
		{[]Series{{Kind: Bars, X: two, Y: two}, {Kind: Bars, X: two, Y: two}}, []string{"bar shift=-3.5pt", "bar shift=3.5pt"}},
		{[]Series{{Kind: Bars, X: two, Y: two}, {Kind: Bars, X: two, Y: two}, {Kind: Bars, X: one, Y: one}}, []string{"bar shift=-7.0pt", "bar shift=0.0pt", "bar shift=7.0pt"}},
		{[]Series{{Kind: Bars, X: one, Y: one}, {Kind: Bars, X: one, Y: one}}, []string{"bar shift=-0.0pt", "bar shift=0.0pt"}},
	} {
		text := string((&Chart{Series: c.list}).PGF())
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%d series: %s lacks %s", len(c.list), text, want)
			}
		}
	}
}

// TestIntervals: a positive interval is drawn as three lines; one of zero or no number is not drawn.
func TestIntervals(t *testing.T) {
	l := (&Chart{Series: []Series{{X: []float64{1}, Y: []float64{2}}}}).lay(400, 300, 10, false, false)
	for half, want := range map[float64]int{0: 0, -1: 0, 0.1: 3, math.NaN(): 0} {
		before := len(l.shapes)
		l.interval(0, Series{Y: []float64{2}, Half: []float64{half}}, 0, 1)
		if got := len(l.shapes) - before; got != want {
			t.Errorf("an interval of %g is drawn with %d lines, want %d", half, got, want)
		}
	}
	l.shapes = nil
	l.interval(3, Series{Y: []float64{2}, Half: []float64{0.5}}, 0, 1)
	low, high := l.at(1, 1.5), l.at(1, 2.5)
	for i, want := range [][2]point{{low, high}, {{low.x - 2.5, low.y}, {low.x + 2.5, low.y}}, {{high.x - 2.5, high.y}, {high.x + 2.5, high.y}}} {
		if s := l.shapes[i]; s.points[0] != want[0] || s.points[1] != want[1] || s.series != 3 || !s.thin {
			t.Errorf("line %d of the interval: %+v, want %v", i, s, want)
		}
	}
}

// TestApart: bars share a name if two series have one for it. Other kinds of series do not count.
func TestApart(t *testing.T) {
	bars := func(x ...float64) Series { return Series{Kind: Bars, X: x, Y: x} }
	for _, c := range []struct {
		list []Series
		want bool
	}{
		{nil, true}, {[]Series{bars(0, 1)}, true}, {[]Series{bars(0), bars(1)}, true}, {[]Series{bars(0), bars(1, 0)}, false}, {[]Series{bars(0), {Kind: Points, X: []float64{0}, Y: []float64{0}}}, true},
	} {
		if got := (&Chart{Series: c.list}).apart(); got != c.want {
			t.Errorf("%+v: %v", c.list, got)
		}
	}
}

// TestTicksFromTheLowEnd: an axis that does not begin at zero has its first tick at the first round
// value in it.
func TestTicksFromTheLowEnd(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      []float64
	}{{30, 97, []float64{40, 60, 80}}, {40, 100, []float64{40, 50, 60, 70, 80, 90, 100}}, {-97, -30, []float64{-80, -60, -40}}, {1000, 1600, []float64{1000, 1100, 1200, 1300, 1400, 1500, 1600}}, {1000, 1601, []float64{1000, 1200, 1400, 1600}}} {
		if got := (span{low: c.low, high: c.high}).ticks(); !slices.Equal(got, c.want) {
			t.Errorf("%g to %g: %v, want %v", c.low, c.high, got, c.want)
		}
	}
}

// TestMarksOfTheLegend: the legend shows the mark of a series as the drawing does: a line, dashed if
// another row has its colour already, a box, a dot or a circle.
func TestMarksOfTheLegend(t *testing.T) {
	for _, c := range []struct {
		s                       Series
		points                  int
		dashed, filled, rounded bool
	}{
		{Series{Kind: Line, Tint: tints - 1}, 2, false, false, false},
		{Series{Kind: Line, Tint: tints}, 2, true, false, false},
		{Series{Kind: Bars, Tint: tints}, 4, false, true, false},
		{Series{Kind: Spans}, 4, false, true, false},
		{Series{Kind: Points, Tint: tints}, 1, false, true, true},
		{Series{Kind: Hollow}, 1, false, false, true},
	} {
		var l layout
		l.font = 10
		l.key(3, c.s, point{100, 50})
		s := l.shapes[0]
		if len(l.shapes) != 1 || s.series != 3 || len(s.points) != c.points || s.dashed != c.dashed || s.filled != c.filled || (s.dot > 0) != c.rounded {
			t.Errorf("%+v: %+v", c.s, l.shapes)
		}
		for _, p := range s.points {
			if p.x < 100 || p.x > 114 || math.Abs(p.y-50) > 3.5 {
				t.Errorf("%+v: the mark has a point at %v", c.s, p)
			}
		}
	}
	// Lines of a drawing are dashed alike.
	for tint, want := range map[int]bool{tints - 1: false, tints: true} {
		l := (&Chart{Series: []Series{{Tint: tint, X: []float64{1, 2}, Y: []float64{1, 2}}}}).lay(400, 300, 10, false, false)
		if got := slices.ContainsFunc(l.shapes, func(s shape) bool { return s.ink == series && s.dashed }); got != want {
			t.Errorf("a line of colour %d is dashed: %v, want %v", tint, got, want)
		}
	}
}

// TestWidthsOfTheFont: the font of a PDF states the width of each character from space to 255.
func TestWidthsOfTheFont(t *testing.T) {
	_, list, _ := strings.Cut(fontObjects(7, "a")[0], "/Widths [")
	list, _, _ = strings.Cut(list, "]")
	widths := strings.Fields(list)
	if len(widths) != 256-32 {
		t.Fatalf("%d widths, want 224", len(widths))
	}
	for r, at := range map[rune]int{' ': 0, 'A': 'A' - 32, 'i': 'i' - 32, 'ÿ': 255 - 32} {
		if want := strconv.Itoa(advance(r)); widths[at] != want {
			t.Errorf("%q has the width %s, want %s", r, widths[at], want)
		}
	}
}
