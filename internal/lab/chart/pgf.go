package chart

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// PGF returns the chart as a tikzpicture for LaTeX with pgfplots (compat=1.18), for \input. It
// uses the document's font, and its colours and sizes can be edited.
func (c *Chart) PGF() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%% %s\n", texComment(c.Title))
	if c.Note != "" {
		fmt.Fprintf(&b, "%% %s\n", texComment(c.Note))
	}
	for i, colour := range light {
		fmt.Fprintf(&b, "\\definecolor{p4lb%d}{HTML}{%s}\n", i, strings.ToUpper(colour[1:]))
	}
	width := `\columnwidth`
	if c.Wide {
		width = `\textwidth`
	}
	axis := "axis"
	switch {
	case c.X.Log && c.Y.Log:
		axis = "loglogaxis"
	case c.X.Log:
		axis = "semilogxaxis"
	case c.Y.Log:
		axis = "semilogyaxis"
	}
	fmt.Fprintf(&b, "\\begin{tikzpicture}\n\\begin{%s}[width=%s, height=0.7\\columnwidth, title={%s}, xlabel={%s}, ylabel={%s},\n  grid=major, legend cell align=left, legend style={font=\\footnotesize},\n", axis, width, tex(c.Title), tex(c.X.Label), tex(c.Y.Label))
	if c.X.Names != nil {
		var ticks, names []string
		for i, n := range c.X.Names {
			ticks, names = append(ticks, fmt.Sprint(i)), append(names, "{"+tex(n)+"}")
		}
		fmt.Fprintf(&b, "  xtick={%s}, xticklabels={%s}, x tick label style={rotate=35, anchor=east},\n", strings.Join(ticks, ","), strings.Join(names, ","))
	}
	if c.Y.Names != nil {
		var ticks, names []string
		for i, n := range c.Y.Names {
			ticks, names = append(ticks, fmt.Sprint(i)), append(names, "{"+tex(n)+"}")
		}
		fmt.Fprintf(&b, "  ytick={%s}, yticklabels={%s},\n", strings.Join(ticks, ","), strings.Join(names, ","))
	}
	if l := c.paper(); slices.ContainsFunc(c.Series, func(s Series) bool { return s.Kind == Spans }) {
		fmt.Fprintf(&b, "  xmin=%s, xmax=%s, ymin=%s, ymax=%s,\n", number(l.x.low), number(l.x.high), number(l.y.low), number(l.y.high))
	}
	b.WriteString("]\n")
	for i, s := range c.Series {
		c.pgfSeries(&b, i, s)
	}
	fmt.Fprintf(&b, "\\end{%s}\n\\end{tikzpicture}\n", axis)
	return b.Bytes()
}

func (c *Chart) pgfSeries(b *bytes.Buffer, i int, s Series) {
	if s.Kind == Spans {
		reach := cmp.Or(s.Reach, 0.4)
		for k := range s.X {
			fmt.Fprintf(b, "\\fill[p4lb%d, fill opacity=%s] (axis cs:%s,%s) rectangle (axis cs:%s,%s);\n", s.Colour(), number(s.shade(k)), number(s.X[k]), number(s.Y[k]-reach), number(s.To[k]), number(s.Y[k]+reach))
		}
		fmt.Fprintf(b, "\\addlegendimage{area legend, fill=p4lb%d}\n\\addlegendentry{%s}\n", s.Colour(), tex(s.Label))
		return
	}
	style := []string{fmt.Sprintf("p4lb%d", s.Colour())}
	switch s.Kind {
	case Line:
		if !s.Marks {
			style = append(style, "no markers")
		} else {
			style = append(style, "mark=*")
		}
		if s.Tint >= tints {
			style = append(style, "dashed")
		}
	case Bars:
		style = append(style, fmt.Sprintf("ybar, fill=p4lb%d, bar width=6pt, bar shift=%.1fpt", s.Colour(), 7*(float64(i)-float64(len(c.Series)-1)/2)*truth(!alone(c.Series))))
	case Points:
		style = append(style, "only marks, mark=*")
	case Hollow:
		style = append(style, "only marks, mark=o")
	case Cloud:
		style = append(style, "only marks, mark=*, mark size=0.6pt, opacity=0.3")
	}
	if s.Half != nil {
		style = append(style, "error bars/.cd, y dir=both, y explicit")
	}
	fmt.Fprintf(b, "\\addplot[%s] coordinates {", strings.Join(style, ", "))
	for k := range s.X {
		if math.IsNaN(s.Y[k]) || math.IsInf(s.Y[k], 0) {
			continue
		}
		fmt.Fprintf(b, " (%s,%s)", number(s.X[k]), number(s.Y[k]))
		if s.Half != nil && !math.IsNaN(s.Half[k]) && !math.IsInf(s.Half[k], 0) {
			fmt.Fprintf(b, " +- (0,%s)", number(s.Half[k]))
		}
	}
	fmt.Fprintf(b, " };\n\\addlegendentry{%s}\n", tex(s.Label))
}

// alone reports whether no two series share a place on the axis.
func alone(list []Series) bool {
	for _, s := range list {
		if len(s.X) != 1 {
			return false
		}
	}
	return true
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// tex escapes text for LaTeX.
func tex(s string) string {
	return strings.NewReplacer(
		`\`, `\textbackslash{}`, "{", `\{`, "}", `\}`, "%", `\%`, "_", `\_`, "&", `\&`, "#", `\#`, "$", `\$`, "^", `\^{}`, "~", `\~{}`,
		"≤", `$\le$`, "≥", `$\ge$`, "…", `\ldots{}`, "–", "--", "µ", `$\mu$`, "²", `$^2$`, "±", `$\pm$`, "<", `$<$`, ">", `$>$`,
	).Replace(s)
}

// texComment makes text safe for use in a comment.
func texComment(s string) string { return strings.ReplaceAll(s, "\n", " ") }
