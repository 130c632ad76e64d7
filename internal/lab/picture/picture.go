// Package picture draws a fit: the index over occupancy and interval with the
// hull of the data, the residuals, the degrees that were tried, and the integer
// index against the float one.
package picture

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/p4lb/p4lb/fitting"
)

// A Subject is the content of a picture.
type Subject struct {
	Fit  *fitting.Fit
	Poly fitting.Poly
	Rows *fitting.Rows
}

const (
	width, height = 26 * vg.Centimeter, 20 * vg.Centimeter
	points        = 4000 // drawn of each cloud
	cells         = 64   // of the surface per side
)

var (
	blue   = color.NRGBA{31, 90, 166, 255}
	orange = color.NRGBA{214, 99, 14, 255}
	green  = color.NRGBA{36, 124, 60, 255}
	cloud  = color.NRGBA{31, 90, 166, 70}
)

// Write draws the subject as svg or png.
func Write(w io.Writer, format string, s Subject) error {
	var canvas interface {
		vg.CanvasSizer
		io.WriterTo
	}
	switch format {
	case "svg":
		canvas = vgsvg.New(width, height)
	case "png":
		canvas = vgimg.PngCanvas{Canvas: vgimg.New(width, height)}
	default:
		return fmt.Errorf("no picture of the kind %q: want svg or png", format)
	}
	if err := s.draw(draw.New(canvas)); err != nil {
		return err
	}
	_, err := canvas.WriteTo(w)
	return err
}

func (s Subject) draw(c draw.Canvas) error {
	tiles := draw.Tiles{Rows: 2, Cols: 2, PadX: vg.Centimeter, PadY: vg.Centimeter,
		PadTop: vg.Millimeter * 3, PadBottom: vg.Millimeter * 3, PadLeft: vg.Millimeter * 3, PadRight: vg.Millimeter * 3}
	for i, panel := range []func(*plot.Plot) error{s.surface, s.residuals, s.degrees, s.integers} {
		p := plot.New()
		p.Title.TextStyle.Font.Size = 13
		p.Legend.Top, p.Legend.Padding = true, vg.Millimeter
		if err := panel(p); err != nil {
			return err
		}
		p.Draw(tiles.At(c, i%2, i/2))
	}
	return nil
}

// surface is the index as the switch computes it, in colours over the ranges
// of the two measurements.
func (s Subject) surface(p *plot.Plot) error {
	p.Title.Text = fmt.Sprintf("congestion index, degree %d", s.Poly.Degree)
	p.X.Label.Text, p.Y.Label.Text = "occupancy L (of 255)", "dequeue interval T (us)"
	grid := surface{s.Poly, s.Poly.Grid(), s.Poly.Max()}
	colours := moreland.SmoothBlueRed()
	colours.SetMin(0)
	colours.SetMax(1)
	heat := plotter.NewHeatMap(grid, colours.Palette(255))
	heat.Min, heat.Max = 0, float64(grid.top)
	heat.Rasterized = true // else there are seams between the cells
	p.Add(heat)
	if len(s.Fit.Hull) < 3 {
		return nil
	}
	var hull plotter.XYs
	for _, q := range append(s.Fit.Hull, s.Fit.Hull[0]) {
		hull = append(hull, plotter.XY{X: q.L, Y: q.T})
	}
	line, err := plotter.NewLine(hull)
	if err != nil {
		return err
	}
	line.Width = vg.Points(1.5)
	p.Add(line)
	p.Legend.Add("hull of the data", line)
	return nil
}

// A surface is a plotter.GridXYZ.
type surface struct {
	poly fitting.Poly
	grid []int64
	top  int64
}

// Dims is the number of cells.
func (s surface) Dims() (c, r int) { return cells, cells }

// X is the occupancy of a column.
func (s surface) X(c int) float64 { return at(s.poly.LRange(), c) }

// Y is the interval of a row.
func (s surface) Y(r int) float64 { return at(s.poly.T, r) }

func at(r fitting.Range, i int) float64 {
	return float64(r.Min) + float64(i)/(cells-1)*float64(r.Max-r.Min)
}

// Z is the clamped index.
func (s surface) Z(c, r int) float64 {
	l, t := c*255/(cells-1), r*255/(cells-1)
	return float64(min(max(s.grid[l<<8+t], 0), s.top))
}

// sample calls f with evenly spread rows.
func (s Subject) sample(f func(fitting.Row)) {
	stride, i := max(1, s.Rows.Len()/points), 0
	for r := range s.Rows.All() {
		if i%stride == 0 {
			f(r)
		}
		i++
	}
}

func (s Subject) residuals(p *plot.Plot) error {
	p.Title.Text = fmt.Sprintf("residuals, RMSE %.4g", s.Fit.Train.RMSE)
	p.X.Label.Text, p.Y.Label.Text = "fitted traffic", "observed - fitted"
	var xy plotter.XYs
	s.sample(func(r fitting.Row) {
		fit := s.Fit.At(r.L, r.T)
		xy = append(xy, plotter.XY{X: fit, Y: r.Y - fit})
	})
	p.Add(plotter.NewGrid())
	return addCloud(p, xy)
}

func addCloud(p *plot.Plot, xy plotter.XYs) error {
	c, err := plotter.NewScatter(xy)
	if err != nil {
		return err
	}
	c.GlyphStyle = draw.GlyphStyle{Color: cloud, Radius: vg.Points(1.2), Shape: draw.CircleGlyph{}}
	p.Add(c)
	return nil
}

// degrees is R² over the degree, as in QALL's Table I.
func (s Subject) degrees(p *plot.Plot) error {
	p.Title.Text = "R² over degree"
	p.X.Label.Text, p.Y.Label.Text = "degree", "R²"
	var train, test plotter.XYs
	for _, d := range s.Fit.Degrees {
		train = append(train, plotter.XY{X: float64(d.Degree), Y: d.Train.R2})
		if d.Test != nil {
			test = append(test, plotter.XY{X: float64(d.Degree), Y: d.Test.R2})
		}
	}
	p.Add(plotter.NewGrid())
	p.Legend.Top = false
	for _, l := range []struct {
		name   string
		xy     plotter.XYs
		colour color.Color
	}{{"training", train, blue}, {"test", test, orange}} {
		if len(l.xy) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(l.xy)
		if err != nil {
			return err
		}
		line.Color, dots.Color, dots.Shape = l.colour, l.colour, draw.CircleGlyph{}
		p.Add(line, dots)
		p.Legend.Add(l.name, line, dots)
	}
	return nil
}

// integers is the index of the data plane against the float one.
func (s Subject) integers(p *plot.Plot) error {
	p.Title.Text = fmt.Sprintf("integer against float, scale %d", s.Poly.Scale)
	p.X.Label.Text, p.Y.Label.Text = "float index", "integer index / scale"
	grid, top := s.Poly.Grid(), s.Poly.Max()
	var xy plotter.XYs
	most := 0.0
	s.sample(func(r fitting.Row) {
		l, t := s.Poly.Bytes(r.L, r.T)
		q := plotter.XY{
			X: s.Fit.Unit(s.Fit.Spans.L.Unit(r.L), s.Fit.Spans.T.Unit(r.T)),
			Y: float64(min(max(grid[l<<8+t], 0), top)) / float64(s.Poly.Scale),
		}
		most = math.Max(most, q.X)
		xy = append(xy, q)
	})
	p.Add(plotter.NewGrid())
	if err := addCloud(p, xy); err != nil {
		return err
	}
	same, err := plotter.NewLine(plotter.XYs{{X: 0, Y: 0}, {X: most, Y: most}})
	if err != nil {
		return err
	}
	same.Color = green
	p.Add(same)
	p.Legend.Add("equal", same)
	return nil
}
