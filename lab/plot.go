package lab

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/p4lb/p4lb/plain"
)

// A Figure is a plot of a comparison.
type Figure struct {
	Name   string // of its files
	Title  string
	About  string
	plot   *plot.Plot
	legend plot.Legend // right of it
	wide   bool
}

// palette tells up to eight rows apart, also for the colour-blind (Okabe, Ito).
var palette = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 255}, color.RGBA{0xd5, 0x5e, 0x00, 255}, color.RGBA{0x00, 0x9e, 0x73, 255},
	color.RGBA{0xcc, 0x79, 0xa7, 255}, color.RGBA{0xe6, 0x9f, 0x00, 255}, color.RGBA{0x56, 0xb4, 0xe9, 255},
	color.RGBA{0x33, 0x33, 0x33, 255}, color.RGBA{0x99, 0x99, 0x99, 255},
}

// Figures draws the comparison: for each case the completion times over the load
// or by scheme, their distribution, the queues over time, and the paths' shares.
func (c *Comparison) Figures() ([]Figure, error) {
	var list []Figure
	add := func(f Figure, err error) error {
		if err == nil && f.plot != nil {
			list = append(list, f)
		}
		return err
	}
	for i := range c.Experiment.Cases {
		name := c.Experiment.Cases[i].Name
		rows := c.rowsOf(name)
		if len(rows) == 0 {
			continue
		}
		draws := []func(string, []*Row) (Figure, error){c.drawMain, drawCDF}
		if len(rows[0].Runs[0].Plots.Time) > 0 { // not in real time, where nobody samples the links
			draws = append(draws, drawQueue)
		}
		if len(rows[0].Runs[0].Plots.Names) > 0 { // ports lead upwards
			draws = append(draws, drawShares)
		}
		for _, draw := range draws {
			if err := add(draw(name, rows)); err != nil {
				return nil, fmt.Errorf("drawing: %w", err)
			}
		}
	}
	return list, nil
}

// rowsOf are the rows of a case that have runs.
func (c *Comparison) rowsOf(name string) []*Row {
	var rows []*Row
	for _, r := range c.Rows {
		if r.Case.Name == name && len(r.Runs) > 0 {
			rows = append(rows, r)
		}
	}
	return rows
}

// heaviest keeps the rows of the largest load.
func heaviest(rows []*Row) (list []*Row) {
	load := 0.0
	for _, r := range rows {
		load = max(load, r.Load)
	}
	for _, r := range rows {
		if r.Load == load {
			list = append(list, r)
		}
	}
	return list
}

func newFigure(name, caseName, title, about string) Figure {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text = title
	p.Title.Padding = vg.Points(8)
	sans(&p.Title.TextStyle, 12)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		sans(&a.Label.TextStyle, 10)
		sans(&a.Tick.Label, 9)
		a.Color, a.Tick.Color = color.Gray{0x66}, color.Gray{0x66}
		a.Tick.Marker = plainTicks{}
	}
	legend := plot.NewLegend()
	sans(&legend.TextStyle, 9)
	legend.Padding, legend.ThumbnailWidth = vg.Points(3), vg.Points(16)
	legend.Top = true
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xe6}, color.Gray{0xe6}
	p.Add(grid)
	if caseName != "" {
		name += "-" + plain.Folder(caseName)
	}
	return Figure{Name: name, Title: title, About: about, plot: p, legend: legend}
}

// sans sets a text in a sans-serif font.
func sans(t *text.Style, points float64) {
	t.Font.Variant, t.Font.Size = "Sans", vg.Points(points)
}

// plainTicks are the usual ticks, written as short as can be.
type plainTicks struct{}

// Ticks lists the ticks between two values.
func (plainTicks) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = number(round(ticks[i].Value))
		}
	}
	return ticks
}

func titled(title, caseName string) string {
	if caseName == "" {
		return title
	}
	return title + ": " + caseName
}

// drawMain draws the first metric, over the load where there are several loads.
func (c *Comparison) drawMain(caseName string, rows []*Row) (Figure, error) {
	metric := c.Experiment.Metrics[0]
	m, err := metricNamed(metric, c.Experiment.Classes)
	if err != nil {
		return Figure{}, err
	}
	if len(heaviest(rows)) == len(rows) {
		return drawBars(caseName, rows, m)
	}
	f := newFigure("load", caseName, titled(m.About, caseName), "Means over the seeds; bars are 95 % confidence intervals.")
	f.plot.X.Label.Text, f.plot.Y.Label.Text = "load", m.label()
	f.plot.Y.Min = 0
	for i, label := range labels(rows) {
		var points errPoints
		for _, r := range rows {
			if e := r.Estimate(metric); r.Scheme.Label == label && !math.IsNaN(e.Mean) {
				points.XYs = append(points.XYs, plotter.XY{X: r.Load, Y: e.Mean})
				points.YErrors = append(points.YErrors, struct{ Low, High float64 }{e.Half, e.Half})
			}
		}
		if err := f.addLine(points, label, i); err != nil {
			return Figure{}, err
		}
	}
	return f, nil
}

type errPoints struct {
	plotter.XYs
	plotter.YErrors
}

func (f *Figure) addLine(points errPoints, label string, i int) error {
	line, marks, err := plotter.NewLinePoints(points.XYs)
	if err != nil {
		return err
	}
	style(line, i)
	marks.Color, marks.Shape, marks.Radius = line.Color, draw.CircleGlyph{}, vg.Points(2.5)
	bars, err := plotter.NewYErrorBars(points)
	if err != nil {
		return err
	}
	bars.Color = line.Color
	f.plot.Add(line, marks, bars)
	f.legend.Add(label, line, marks)
	return nil
}

func style(line *plotter.Line, i int) {
	line.Color, line.Width = palette[i%len(palette)], vg.Points(1.6)
	if i >= len(palette) {
		line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	}
}

// labels are the rows' schemes in order.
func labels(rows []*Row) []string {
	var list []string
	for _, r := range rows {
		if !slices.Contains(list, r.Scheme.Label) {
			list = append(list, r.Scheme.Label)
		}
	}
	return list
}

// drawBars draws a metric by scheme.
func drawBars(caseName string, rows []*Row, m chosen) (Figure, error) {
	f := newFigure("schemes", caseName, titled(m.About, caseName), "Means over the seeds; bars are 95 % confidence intervals.")
	f.plot.Y.Label.Text = m.label()
	f.plot.Y.Min = 0
	var names []string
	for i, r := range rows {
		e := r.Estimate(m.key)
		names = append(names, r.Scheme.Label)
		if math.IsNaN(e.Mean) {
			continue
		}
		bar, err := plotter.NewBarChart(plotter.Values{e.Mean}, vg.Points(28))
		if err != nil {
			return Figure{}, err
		}
		bar.XMin, bar.Color, bar.LineStyle.Width = float64(i), palette[i%len(palette)], 0
		errs, err := plotter.NewYErrorBars(errPoints{
			plotter.XYs{{X: float64(i), Y: e.Mean}}, plotter.YErrors{{Low: e.Half, High: e.Half}}})
		if err != nil {
			return Figure{}, err
		}
		f.plot.Add(bar, errs)
	}
	f.plot.NominalX(names...)
	return f, nil
}

// drawCDF draws the distribution of the completion times, all runs of a row
// together.
func drawCDF(caseName string, all []*Row) (Figure, error) {
	rows := heaviest(all)
	f := newFigure("cdf", caseName, titled(fmt.Sprintf("Flow completion times at load %s", number(rows[0].Load)), caseName),
		"Quantiles of each run, averaged over the seeds.")
	f.plot.X.Label.Text, f.plot.Y.Label.Text = "completion time (ms)", "share of the flows"
	f.plot.X.Scale, f.plot.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	f.plot.Y.Min, f.plot.Y.Max = 0, 1
	least, most := math.Inf(1), 0.0
	for i, r := range rows {
		var points plotter.XYs
		for q := range r.Runs[0].Plots.FCT {
			var at mean
			for _, run := range r.Runs {
				if q < len(run.Plots.FCT) && run.Plots.FCT[q] > 0 {
					at.add(run.Plots.FCT[q])
				}
			}
			if v := at.value(); v > 0 {
				points = append(points, plotter.XY{X: v, Y: float64(q) / 100})
				least, most = min(least, v), max(most, v)
			}
		}
		if err := f.addPlain(points, r.Scheme.Label, i); err != nil {
			return Figure{}, err
		}
	}
	// A logarithm wants a range, above 0, also where one flow is all there is.
	switch {
	case most == 0:
		f.plot.X.Min, f.plot.X.Max = 0.1, 10
	case least == most:
		f.plot.X.Min, f.plot.X.Max = least/2, most*2
	}
	return f, nil
}

func (f *Figure) addPlain(points plotter.XYs, label string, i int) error {
	if len(points) == 0 {
		return nil
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	style(line, i)
	f.plot.Add(line)
	f.legend.Add(label, line)
	return nil
}

// drawQueue draws the queues upwards over time, of the first seed.
func drawQueue(caseName string, all []*Row) (Figure, error) {
	rows := heaviest(all)
	f := newFigure("queue", caseName, titled(fmt.Sprintf("Queues upwards at load %s", number(rows[0].Load)), caseName),
		fmt.Sprintf("Average occupancy of the leaves' ports to the spines, in the run with seed %d.", rows[0].Runs[0].Seed))
	f.plot.X.Label.Text, f.plot.Y.Label.Text = "time (s)", "occupancy (%)"
	f.plot.Y.Min = 0
	f.wide = true
	for i, r := range rows {
		p := r.Runs[0].Plots
		var points plotter.XYs
		for k := range p.Time {
			points = append(points, plotter.XY{X: p.Time[k], Y: 100 * p.Queue[k]})
		}
		if err := f.addPlain(points, r.Scheme.Label, i); err != nil {
			return Figure{}, err
		}
	}
	return f, nil
}

// drawShares draws what each path upwards carried of its leaf's bytes.
func drawShares(caseName string, all []*Row) (Figure, error) {
	rows := heaviest(all)
	names := rows[0].Runs[0].Plots.Names
	if len(names) < 2 || len(names) > 16 {
		names = names[:min(len(names), 16)]
	}
	f := newFigure("shares", caseName, titled(fmt.Sprintf("Shares of the paths at load %s", number(rows[0].Load)), caseName),
		"Bytes that each port upwards sent, of all that its leaf sent upwards; averages over the seeds.")
	f.plot.Y.Label.Text = "share (%)"
	f.plot.Y.Min = 0
	f.wide = true
	width := vg.Points(560) / vg.Length(max(1, len(names)*(len(rows)+1)))
	for i, r := range rows {
		values := make(plotter.Values, len(names))
		for k := range names {
			var share mean
			for _, run := range r.Runs {
				share.add(100 * run.Plots.Shares[k])
			}
			values[k] = share.value()
		}
		bar, err := plotter.NewBarChart(values, width)
		if err != nil {
			return Figure{}, err
		}
		bar.Color, bar.LineStyle.Width = palette[i%len(palette)], 0
		bar.Offset = width * vg.Length(float64(i)-float64(len(rows)-1)/2)
		f.plot.Add(bar)
		f.legend.Add(r.Scheme.Label, bar)
		f.plot.Y.Max = max(f.plot.Y.Max, 1.25*slices.Max(values))
	}
	f.plot.NominalX(names...)
	return f, nil
}

// Draw writes the figure as svg or png.
func (f *Figure) Draw(format string) ([]byte, error) {
	width, height := 5.6*vg.Inch, 3.6*vg.Inch
	if f.wide {
		width, height = 9*vg.Inch, 3.2*vg.Inch
	}
	var canvas interface {
		vg.CanvasSizer
		io.WriterTo
	} = vgsvg.New(width, height)
	if format == "png" {
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(144))}
	}
	whole := draw.New(canvas)
	room := f.legend.Rectangle(whole).Size().X
	f.plot.Draw(draw.Crop(whole, vg.Points(4), -room-vg.Points(12), vg.Points(4), -vg.Points(4)))
	f.legend.Draw(draw.Crop(whole, 0, -vg.Points(4), 0, -vg.Points(34)))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("drawing %s: %w", f.Name, err)
	}
	return b.Bytes(), nil
}

// inline is the figure as SVG within a page.
func (f *Figure) inline() (string, error) {
	data, err := f.Draw("svg")
	if err != nil {
		return "", err
	}
	s := string(data)
	if i := strings.Index(s, "<svg"); i > 0 {
		s = s[i:]
	}
	return s, nil
}

// figure draws the effects of single choices: by choice on the axis, with a colour
// for each target. Reductions are in points, all else is relative to the value
// without the choice.
func (s *Sensitivity) figure() (Figure, error) {
	f := newFigure("sensitivity", "", "What open choices move", "Change of the measured value with one choice made otherwise; bars are 95 % confidence intervals.")
	f.wide = true
	f.plot.Y.Label.Text = "points, or % of the value"
	var names []string
	place := map[string]int{}
	for i, o := range s.Base {
		var points errPoints
		for _, e := range s.Effects {
			if e.Target != o.Target || e.Among || math.IsNaN(e.Change.Mean) {
				continue
			}
			if _, ok := place[e.Choice]; !ok {
				place[e.Choice] = len(names)
				names = append(names, e.Choice)
			}
			scale := 1.0
			if o.Ratio || o.Against == "" && o.AgainstCase == "" {
				scale = 100 / math.Abs(e.Value.Mean-e.Change.Mean)
			}
			if math.IsInf(scale, 0) || math.IsNaN(scale) {
				continue
			}
			x := float64(place[e.Choice]) + 0.6*(float64(i)+0.5)/float64(len(s.Base)) - 0.3
			points.XYs = append(points.XYs, plotter.XY{X: x, Y: e.Change.Mean * scale})
			points.YErrors = append(points.YErrors, struct{ Low, High float64 }{e.Change.Half * scale, e.Change.Half * scale})
		}
		if len(points.XYs) == 0 {
			continue
		}
		dots, err := plotter.NewScatter(points)
		if err != nil {
			return f, err
		}
		errs, err := plotter.NewYErrorBars(points)
		if err != nil {
			return f, err
		}
		dots.Color, errs.Color = palette[i%len(palette)], palette[i%len(palette)]
		dots.Shape, dots.Radius = draw.CircleGlyph{}, vg.Points(2.5)
		f.plot.Add(dots, errs)
		f.legend.Add(o.Figure+" "+o.Name, dots)
	}
	f.plot.NominalX(names...)
	return f, nil
}
