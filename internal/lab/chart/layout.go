package chart

import (
	"cmp"
	"math"
	"slices"
	"unicode/utf8"
)

// A layout is a chart as shapes on a sheet. The origin is the upper left corner.
type layout struct {
	width, height float64
	font          float64
	foot          float64 // position of the note below
	plot          rect    // area of the data
	x, y          span
	shapes        []shape
}

type rect struct{ x0, y0, x1, y1 float64 }

// An ink is the colour role of a shape.
type ink uint8

const (
	text ink = iota
	soft     // axes and their labels
	grid
	series
)

// A shape is a line, an area, a dot or text.
type shape struct {
	ink    ink
	series int // index of the series, for series inks

	points []point // of lines and areas
	filled bool
	faint  bool    // an area that does not hide others
	shade  float64 // opacity of an area; 0: 1, unless it is faint
	hint   string  // tooltip
	thin   bool
	dashed bool
	dot    float64 // radius of a dot; hollow unless filled

	words  string // text at the only point
	anchor anchor
	size   float64
	turned bool // rotated by 90 degrees
}

type point struct{ x, y float64 }

type anchor uint8

const (
	start anchor = iota
	middle
	end
)

// lay arranges the chart on a sheet. With legend it adds the names of the series. A
// web page omits them and shows them as buttons.
func (c *Chart) lay(width, height, font float64, title, legend bool) *layout {
	l := &layout{width: width, height: height, font: font}
	l.x = c.X.span(func(see func(float64)) {
		for _, s := range c.Series {
			for _, v := range s.X {
				see(v)
			}
			for _, v := range s.To {
				see(v)
			}
		}
	})
	l.y = c.Y.span(func(see func(float64)) {
		for _, s := range c.Series {
			for i, v := range s.Y {
				see(v)
				if s.Half != nil {
					see(v + s.Half[i])
					if s.Kind != Bars {
						see(v - s.Half[i])
					}
				}
			}
		}
	})
	if !c.Y.Log && c.Y.Names == nil && c.lowest() >= 0 {
		l.y.low = max(0, l.y.low) // the intervals of non-negative values may extend below 0
	}
	top := 0.6 * font
	if title {
		top += 1.7 * font
		l.say(point{font * 0.4, 1.3 * font}, c.Title, start, 1.12*font, text)
	}
	if legend && len(c.Series) > 1 {
		top = c.legend(l, top)
	}
	widest := 0.0
	for _, v := range c.heights(l) {
		widest = max(widest, textWidth(c.Y.tick(v), font))
	}
	names := c.X.Names
	slant := c.slanted(l, width-widest-3*font)
	bottom := 2.1 * font
	if c.X.Label != "" {
		bottom += 1.3 * font
	}
	if slant {
		longest := 0.0
		for _, n := range names {
			longest = max(longest, textWidth(n, font))
		}
		bottom += min(longest*0.62, height/3)
	}
	if legend && c.Note != "" {
		l.say(point{font * 0.4, height - 0.5*font}, c.Note, start, 0.9*font, soft)
		bottom += 1.4 * font
		l.foot = 1.4 * font
	}
	left := widest + 0.9*font
	if c.Y.Label != "" {
		left += 1.5 * font
	}
	l.plot = rect{left, top + 0.3*font, width - 0.9*font, height - bottom}
	c.axes(l, slant)
	for i := range c.Series {
		c.draw(l, i)
	}
	return l
}

// heights returns the labelled values of the vertical axis. If there are many names, it returns
// only some.
func (c *Chart) heights(l *layout) []float64 {
	if c.Y.Names == nil {
		return l.y.ticks()
	}
	room := max(1, int(l.height/(1.6*l.font)))
	step := (len(c.Y.Names) + room - 1) / room
	var list []float64
	for i := 0; i < len(c.Y.Names); i += step {
		list = append(list, float64(i))
	}
	return list
}

// lowest returns the smallest value.
func (c *Chart) lowest() float64 {
	low := math.Inf(1)
	for _, s := range c.Series {
		for _, v := range s.Y {
			if !math.IsNaN(v) {
				low = min(low, v)
			}
		}
	}
	return low
}

// legend places the names of the series in lines from top on, and returns the end of the last
// line.
func (c *Chart) legend(l *layout, top float64) float64 {
	x, y := 0.4*l.font, top+l.font
	for i, s := range c.Series {
		w := 2.4*l.font + textWidth(s.Label, l.font)
		if x+w > l.width && x > l.font {
			x, y = 0.4*l.font, y+1.4*l.font
		}
		l.key(i, s, point{x, y - 0.33*l.font})
		l.say(point{x + 1.7*l.font, y}, s.Label, start, l.font, text)
		x += w + 0.4*l.font
	}
	return y + 0.4*l.font
}

// key draws the mark of a series in the legend.
func (l *layout) key(i int, s Series, at point) {
	switch s.Kind {
	case Line:
		l.shapes = append(l.shapes, shape{ink: series, series: i, points: []point{at, {at.x + 1.4*l.font, at.y}}, dashed: s.Tint >= tints})
	case Bars, Spans:
		l.shapes = append(l.shapes, shape{ink: series, series: i, filled: true, points: box(at.x+0.3*l.font, at.y-0.35*l.font, at.x+1.2*l.font, at.y+0.35*l.font)})
	default:
		l.shapes = append(l.shapes, shape{ink: series, series: i, filled: s.Kind != Hollow, dot: 0.3 * l.font, points: []point{{at.x + 0.7*l.font, at.y}}})
	}
}

func box(x0, y0, x1, y1 float64) []point { return []point{{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}} }

func (l *layout) say(at point, words string, a anchor, size float64, with ink) {
	l.shapes = append(l.shapes, shape{ink: with, points: []point{at}, words: words, anchor: a, size: size})
}

// slanted reports whether the names below the axis are too long to stand side by
// side.
func (c *Chart) slanted(l *layout, room float64) bool {
	each := room / float64(max(1, len(c.X.Names)))
	return slices.ContainsFunc(c.X.Names, func(n string) bool { return textWidth(n, l.font) > each-0.4*l.font })
}

// axes draws the grid lines, the ticks and their labels.
func (c *Chart) axes(l *layout, slant bool) {
	p := l.plot
	for _, v := range c.heights(l) {
		y := l.at(0, v).y
		l.shapes = append(l.shapes, shape{ink: grid, thin: true, points: []point{{p.x0, y}, {p.x1, y}}})
		l.say(point{p.x0 - 0.4*l.font, y + 0.35*l.font}, c.Y.tick(v), end, l.font, soft)
	}
	base := p.y1 + 1.35*l.font
	if c.X.Names == nil {
		for _, v := range l.x.ticks() {
			x := l.at(v, 0).x
			l.shapes = append(l.shapes, shape{ink: grid, thin: true, points: []point{{x, p.y0}, {x, p.y1}}})
			l.say(point{x, base}, label(v), middle, l.font, soft)
		}
	}
	for i, n := range c.X.Names {
		x := l.at(float64(i), 0).x
		if slant {
			l.shapes = append(l.shapes, shape{ink: soft, points: []point{{x + 0.4*l.font, p.y1 + 0.8*l.font}}, words: shorten(n, 24), anchor: end, size: l.font, turned: true})
			continue
		}
		l.say(point{x, base}, n, middle, l.font, soft)
	}
	l.shapes = append(l.shapes, shape{ink: soft, thin: true, points: []point{{p.x0, p.y0}, {p.x0, p.y1}, {p.x1, p.y1}}})
	if c.X.Label != "" {
		l.say(point{(p.x0 + p.x1) / 2, l.height - 0.5*l.font - l.foot}, c.X.Label, middle, l.font, soft)
	}
	if c.Y.Label != "" {
		l.shapes = append(l.shapes, shape{ink: soft, points: []point{{1.1 * l.font, (p.y0 + p.y1) / 2}}, words: c.Y.Label, anchor: middle, size: l.font, turned: true})
	}
}

func shorten(s string, letters int) string {
	if utf8.RuneCountInString(s) <= letters {
		return s
	}
	return string([]rune(s)[:letters-1]) + "…"
}

// at returns the position of a pair of values on the sheet, limited to the plot area.
func (l *layout) at(x, y float64) point {
	p := l.plot
	u, v := min(max(l.x.at(x), 0), 1), min(max(l.y.at(y), 0), 1)
	return point{p.x0 + u*(p.x1-p.x0), p.y1 - v*(p.y1-p.y0)}
}

// draw draws a series.
func (c *Chart) draw(l *layout, i int) {
	switch s := c.Series[i]; s.Kind {
	case Line:
		c.drawLine(l, i, s)
	case Bars:
		c.drawBars(l, i, s)
	case Spans:
		for k := range s.X {
			reach := cmp.Or(s.Reach, 0.4)
			a, b := l.at(s.X[k], s.Y[k]+reach), l.at(s.To[k], s.Y[k]-reach)
			span := shape{ink: series, series: i, filled: true, points: box(a.x, a.y, b.x, b.y)}
			if s.Shade != nil {
				span.shade = max(s.shade(k), 0.01)
			}
			if s.Hints != nil {
				span.hint = s.Hints[k]
			}
			l.shapes = append(l.shapes, span)
		}
	case Cloud:
		for k := range s.X {
			l.shapes = append(l.shapes, shape{ink: series, series: i, filled: true, faint: true, dot: 0.12 * l.font, points: []point{l.at(s.X[k], s.Y[k])}})
		}
	default:
		for k := range s.X {
			if math.IsNaN(s.Y[k]) {
				continue
			}
			x := s.X[k]
			if c.crowded() {
				x += c.beside(i, 0.3)
			}
			l.interval(i, s, k, x)
			l.shapes = append(l.shapes, shape{ink: series, series: i, filled: s.Kind == Points, dot: 0.32 * l.font, points: []point{l.at(x, s.Y[k])}})
		}
	}
}

// drawLine draws a line and the band of its confidence intervals. Missing values interrupt the
// line.
func (c *Chart) drawLine(l *layout, i int, s Series) {
	var line, upper, lower []point
	flush := func() {
		if len(upper) > 1 {
			slices.Reverse(lower)
			l.shapes = append(l.shapes, shape{ink: series, series: i, points: append(upper, lower...), filled: true, faint: true})
		}
		if len(line) > 1 {
			l.shapes = append(l.shapes, shape{ink: series, series: i, points: line, dashed: s.Tint >= tints})
		}
		if s.Marks || len(line) == 1 {
			for _, p := range line {
				l.shapes = append(l.shapes, shape{ink: series, series: i, points: []point{p}, filled: true, dot: 0.24 * l.font})
			}
		}
		line, upper, lower = nil, nil, nil
	}
	for k := range s.X {
		if math.IsNaN(s.Y[k]) {
			flush()
			continue
		}
		line = append(line, l.at(s.X[k], s.Y[k]))
		if s.Half != nil {
			upper, lower = append(upper, l.at(s.X[k], s.Y[k]+s.Half[k])), append(lower, l.at(s.X[k], s.Y[k]-s.Half[k]))
		}
	}
	flush()
}

// beside returns the horizontal offset of a series from the centre of a name on the
// axis. all is the total width of all series there.
func (c *Chart) beside(i int, all float64) float64 {
	if c.X.Names == nil {
		return 0
	}
	n := float64(len(c.Series))
	return all * ((float64(i)+0.5)/n - 0.5)
}

func (c *Chart) drawBars(l *layout, i int, s Series) {
	const all = 0.8
	half := all / float64(len(c.Series)) / 2
	if c.apart() {
		half = all / 2 * 0.7
	}
	for k := range s.X {
		if math.IsNaN(s.Y[k]) {
			continue
		}
		x := s.X[k]
		if !c.apart() {
			x += c.beside(i, all)
		}
		a, b := l.at(x-half, 0), l.at(x+half, s.Y[k])
		l.shapes = append(l.shapes, shape{ink: series, series: i, filled: true, points: box(a.x, a.y, b.x, b.y)})
		l.interval(i, s, k, x)
	}
}

// crowded reports whether several series have points.
func (c *Chart) crowded() bool {
	n := 0
	for _, s := range c.Series {
		if s.Kind == Points || s.Kind == Hollow {
			n++
		}
	}
	return n > 1
}

// apart reports whether no name on the axis has bars of more than one series.
func (c *Chart) apart() bool {
	seen := map[float64]bool{}
	for _, s := range c.Series {
		if s.Kind != Bars {
			continue
		}
		for _, x := range s.X {
			if seen[x] {
				return false
			}
			seen[x] = true
		}
	}
	return true
}

// interval draws the confidence interval of one point.
func (l *layout) interval(i int, s Series, k int, x float64) {
	if s.Half == nil || !(s.Half[k] > 0) {
		return
	}
	with := shape{ink: series, series: i, thin: true}
	if s.Kind == Bars {
		with = shape{ink: text, thin: true}
	}
	a, b := l.at(x, s.Y[k]-s.Half[k]), l.at(x, s.Y[k]+s.Half[k])
	w := 0.25 * l.font
	for _, line := range [][]point{{a, b}, {{a.x - w, a.y}, {a.x + w, a.y}}, {{b.x - w, b.y}, {b.x + w, b.y}}} {
		with.points = line
		l.shapes = append(l.shapes, with)
	}
}

// textWidth estimates the width of text from the advance widths of Helvetica.
func textWidth(s string, size float64) float64 {
	sum := 0
	for _, r := range s {
		switch {
		case r >= ' ' && r <= '~':
			sum += int(helvetica[r-' '])
		default:
			sum += 556
		}
	}
	return float64(sum) * size / 1000
}

// helvetica holds the advance widths from the space to the tilde, in thousandths.
var helvetica = [...]int16{
	278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
	556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
	1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
	667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
	333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
	556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
}
