package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"strings"
)

// The sizes of a chart in a paper, in points: the width of one column, and of two.
const (
	columnWidth = 240.0
	pageWidth   = 504.0
	paperFont   = 7.0
)

// paper arranges the chart for print.
func (c *Chart) paper() *layout {
	if c.Wide {
		return c.lay(pageWidth, 170, paperFont, true, true)
	}
	return c.lay(columnWidth, 165, paperFont, true, true)
}

// SVG returns the chart for a paper, without external references.
func (c *Chart) SVG() []byte { return Sheet(c.Title, 1, []*Chart{c}) }

// Sheet returns an SVG with several charts, arranged in the given number of
// columns.
func Sheet(title string, columns int, charts []*Chart) []byte {
	var b bytes.Buffer
	cell := charts[0].paper()
	width, height := cell.width*float64(min(columns, len(charts))), cell.height*float64((len(charts)+columns-1)/columns)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%gpt" height="%gpt" viewBox="0 0 %g %g" font-family="Helvetica, Arial, sans-serif">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n", html.EscapeString(title))
	for i, c := range charts {
		if i > 0 {
			fmt.Fprintf(&b, `<g transform="translate(%g %g)">`+"\n", cell.width*float64(i%columns), cell.height*float64(i/columns))
		}
		c.paper().svg(&b, c.paint)
		if i > 0 {
			b.WriteString("</g>\n")
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// paint returns the attribute for a fill or stroke on white paper.
func (c *Chart) paint(s *shape, fill bool) string {
	colour := map[ink]string{text: "#111", soft: "#555", grid: "#e3e3e3"}[s.ink]
	if s.ink == series {
		colour = light[c.Series[s.series].Colour()]
	}
	if fill {
		return `fill="` + colour + `"`
	}
	return `stroke="` + colour + `"`
}

// screen arranges the chart for a web page, which shows the names of the series
// next to it.
func (c *Chart) screen() *layout {
	if c.Wide {
		return c.lay(900, 300, 13, false, false)
	}
	return c.lay(560, 340, 14, false, false)
}

// Inline returns the chart as SVG for a page with the style sheet Style. Colours are
// classes, and each series is a group that a script may hide.
func (c *Chart) Inline() string {
	l := c.screen()
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %g %g" role="img" aria-label="%s">`, l.width, l.height, html.EscapeString(c.Title))
	l.svg(&b, func(s *shape, fill bool) string {
		what := "f"
		if !fill {
			what = "l"
		}
		if s.ink == series {
			return fmt.Sprintf(`class="%s%d"`, what, c.Series[s.series].Colour())
		}
		return fmt.Sprintf(`class="%s-%s"`, what, map[ink]string{text: "text", soft: "soft", grid: "grid"}[s.ink])
	})
	b.WriteString("</svg>")
	return b.String()
}

// Style returns the style sheet rules that Inline requires. They use the variables that Colours
// sets.
func Style() string {
	var b strings.Builder
	for i := range tints {
		fmt.Fprintf(&b, ".f%[1]d{fill:var(--c%[1]d)}.l%[1]d{stroke:var(--c%[1]d)}.k%[1]d{background:var(--c%[1]d)}\n", i)
	}
	for _, name := range []string{"text", "soft", "grid"} {
		fmt.Fprintf(&b, ".f-%[1]s{fill:var(--%[1]s)}.l-%[1]s{stroke:var(--%[1]s)}\n", name)
	}
	return b.String()
}

// Colours returns the rules that set the variables of the dark or the light theme.
func Colours(onDark bool) string {
	colours, rest := light, "--text:#111;--soft:#5b5b5b;--grid:#e3e3e3;"
	if onDark {
		colours, rest = dark, "--text:#eee;--soft:#a8a8a8;--grid:#363636;"
	}
	for i, c := range colours {
		rest += fmt.Sprintf("--c%d:%s;", i, c)
	}
	return rest
}

// svg writes the shapes. paint returns the attribute for a fill or stroke.
func (l *layout) svg(b *bytes.Buffer, paint func(s *shape, fill bool) string) {
	open := -1
	for i := range l.shapes {
		s := &l.shapes[i]
		of := -1
		if s.ink == series {
			of = s.series
		}
		if of != open {
			if open >= 0 {
				b.WriteString("</g>\n")
			}
			if of >= 0 {
				fmt.Fprintf(b, `<g data-series="%d">`+"\n", of)
			}
			open = of
		}
		l.svgShape(b, s, paint)
	}
	if open >= 0 {
		b.WriteString("</g>\n")
	}
}

func (l *layout) svgShape(b *bytes.Buffer, s *shape, paint func(s *shape, fill bool) string) {
	at := s.points[0]
	switch {
	case s.words != "":
		turn := ""
		if s.turned {
			angle := -90
			if s.anchor == end {
				angle = -35
			}
			turn = fmt.Sprintf(` transform="rotate(%d %.1f %.1f)"`, angle, at.x, at.y)
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" font-size="%.4g" text-anchor="%s" %s%s>%s</text>`+"\n", at.x, at.y, s.size,
			[]string{"start", "middle", "end"}[s.anchor], paint(s, true), turn, html.EscapeString(s.words))
	case s.dot > 0 && s.filled:
		opacity := ""
		if s.faint {
			opacity = ` fill-opacity="0.3"`
		}
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="%.2f" %s%s/>`+"\n", at.x, at.y, s.dot, paint(s, true), opacity)
	case s.dot > 0:
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="%.2f" fill="none" stroke-width="%.2f" %s/>`+"\n", at.x, at.y, s.dot, l.font*0.12, paint(s, false))
	case s.filled:
		opacity := ""
		if s.faint {
			opacity = ` fill-opacity="0.18"`
		}
		if s.shade > 0 {
			opacity = fmt.Sprintf(` fill-opacity="%.2f"`, s.shade)
		}
		fmt.Fprintf(b, `<path d="%sZ" %s%s>`, path(s.points), paint(s, true), opacity)
		if s.hint != "" {
			fmt.Fprintf(b, "<title>%s</title>", html.EscapeString(s.hint))
		}
		b.WriteString("</path>\n")
	default:
		dashed := ""
		if s.dashed {
			dashed = ` stroke-dasharray="4 2"`
		}
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke-width="%.2f"%s %s/>`+"\n", path(s.points), l.stroke(s), dashed, paint(s, false))
	}
}

// stroke returns the width of a line.
func (l *layout) stroke(s *shape) float64 {
	if s.thin {
		return l.font * 0.08
	}
	return l.font * 0.16
}

func path(points []point) string {
	var b strings.Builder
	for i, p := range points {
		letter := "L"
		if i == 0 {
			letter = "M"
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", letter, p.x, p.y)
	}
	return b.String()
}

// Data returns the numbers that a script shows under the pointer.
func (c *Chart) Data() ([]byte, error) {
	type row struct {
		Label string    `json:"label"`
		Tint  int       `json:"tint"`
		X     []float64 `json:"x"`
		Y     []any     `json:"y"` // null for missing values
		Half  []float64 `json:"half,omitempty"`
	}
	l := c.screen()
	data := struct {
		Plot  [4]float64 `json:"plot"`
		Width float64    `json:"width"`
		Low   float64    `json:"low"`
		High  float64    `json:"high"`
		Log   bool       `json:"log"`
		X     string     `json:"x"`
		Names []string   `json:"names,omitempty"`
		Rows  []row      `json:"rows"`
	}{[4]float64{l.plot.x0, l.plot.y0, l.plot.x1, l.plot.y1}, l.width, l.x.low, l.x.high, l.x.log, c.X.Label, c.X.Names, nil}
	for _, s := range c.Series {
		if s.Kind == Spans {
			continue // spans have tooltips
		}
		r := row{Label: s.Label, Tint: s.Colour(), Half: s.Half}
		for i, x := range s.X {
			r.X = append(r.X, rounded(x))
			if math.IsNaN(s.Y[i]) {
				r.Y = append(r.Y, nil)
			} else {
				r.Y = append(r.Y, rounded(s.Y[i]))
			}
		}
		data.Rows = append(data.Rows, r)
	}
	return json.Marshal(data)
}

// rounded rounds to five significant digits.
func rounded(v float64) float64 {
	if v == 0 {
		return 0
	}
	digit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-4)
	return math.Round(v/digit) * digit
}

// PDF returns the chart for a paper, with its font.
func (c *Chart) PDF() []byte {
	l := c.paper()
	var page bytes.Buffer
	page.WriteString("1 j 1 J\n")
	for i := range l.shapes {
		c.pdfShape(&page, l, &l.shapes[i])
	}
	var used strings.Builder
	for _, s := range l.shapes {
		used.WriteString(s.words)
	}
	objects := append([]string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %g %g] /Contents 4 0 R /Resources << /Font << /F 6 0 R >> /ExtGState << /A << /ca 1 >> /B << /ca 0.18 >> >> >> >>", l.width, l.height),
		fmt.Sprintf("<< /Length %d >>\nstream\n%sendstream", page.Len(), page.Bytes()),
		fmt.Sprintf("<< /Title (%s) /Producer (p4lb) >>", pdfText(c.Title)),
	}, fontObjects(6, used.String()+"?")...)
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var offsets []int
	for i, o := range objects {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	table := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R /Info 5 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, table)
	return b.Bytes()
}

// pdfScale makes text in Go Regular about as wide as in Helvetica, with which the layout
// measures.
const pdfScale = 0.94

// pdfShape writes a shape in PDF operators. In PDF the origin is at the bottom.
func (c *Chart) pdfShape(b *bytes.Buffer, l *layout, s *shape) {
	colour := map[ink]string{text: "#111111", soft: "#555555", grid: "#e3e3e3"}[s.ink]
	if s.ink == series {
		colour = light[c.Series[s.series].Colour()]
	}
	var rgb [3]float64
	for i := range rgb {
		var v int
		fmt.Sscanf(colour[1+2*i:3+2*i], "%02x", &v)
		rgb[i] = float64(v) / 255
		if s.shade > 0 { // blended with white
			rgb[i] = 1 - s.shade*(1-rgb[i])
		}
	}
	fmt.Fprintf(b, "%.3f %.3f %.3f rg %.3f %.3f %.3f RG\n", rgb[0], rgb[1], rgb[2], rgb[0], rgb[1], rgb[2])
	at := s.points[0]
	switch {
	case s.words != "":
		angle := 0.0
		if s.turned {
			angle = math.Pi / 2
			if s.anchor == end {
				angle = 35 * math.Pi / 180
			}
		}
		back := pdfWidth(s.words, s.size*pdfScale) * []float64{0, 0.5, 1}[s.anchor]
		sin, cos := math.Sincos(angle)
		fmt.Fprintf(b, "BT /F %.4g Tf %.4f %.4f %.4f %.4f %.2f %.2f Tm (%s) Tj ET\n", s.size*pdfScale, cos, sin, -sin, cos,
			at.x-back*cos, l.height-at.y-back*sin, pdfText(s.words))
	case s.dot > 0:
		k, r, y := 0.5523*s.dot, s.dot, l.height-at.y
		fmt.Fprintf(b, "%.2f w %.2f %.2f m %.2f %.2f %.2f %.2f %.2f %.2f c %.2f %.2f %.2f %.2f %.2f %.2f c %.2f %.2f %.2f %.2f %.2f %.2f c %.2f %.2f %.2f %.2f %.2f %.2f c %s\n", l.font*0.12,
			at.x+r, y, at.x+r, y+k, at.x+k, y+r, at.x, y+r, at.x-k, y+r, at.x-r, y+k, at.x-r, y,
			at.x-r, y-k, at.x-k, y-r, at.x, y-r, at.x+k, y-r, at.x+r, y-k, at.x+r, y, map[bool]string{true: "f", false: "s"}[s.filled])
	default:
		if s.faint {
			b.WriteString("/B gs ")
		}
		if s.dashed {
			b.WriteString("[4 2] 0 d ")
		}
		fmt.Fprintf(b, "%.2f w", l.stroke(s))
		for i, p := range s.points {
			fmt.Fprintf(b, " %.2f %.2f %s", p.x, l.height-p.y, map[bool]string{true: "m", false: "l"}[i == 0])
		}
		if s.filled {
			b.WriteString(" f")
		} else {
			b.WriteString(" S")
		}
		if s.dashed {
			b.WriteString(" [] 0 d")
		}
		if s.faint {
			b.WriteString(" /A gs")
		}
		b.WriteString("\n")
	}
}

// pdfText encodes text for the font, which covers Latin-1 and some more characters.
func pdfText(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '(' || r == ')' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '…':
			b.WriteString("\\205")
		case r == '–' || r == '—':
			b.WriteString("\\226")
		case r >= ' ' && r <= '~':
			b.WriteRune(r)
		case r >= 0xa0 && r <= 0xff:
			fmt.Fprintf(&b, "\\%03o", r)
		default:
			b.WriteByte('?')
		}
	}
	return b.String()
}
