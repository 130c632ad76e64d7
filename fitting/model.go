package fitting

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// modelVersion is the version of the model file that Encode writes.
const modelVersion = 1

const modelFormat = "p4lb-model"

// A Model is the content of a model file: the polynomial for generating a program,
// and its origin.
type Model struct {
	Format  string `json:"format"`
	Version int    `json:"version"`

	// Pattern is the name of the mix of workloads in the data, if it was given.
	Pattern string `json:"pattern,omitempty"`

	Poly        // embedded, so that DecodePoly finds its members at top level
	Accumulator struct {
		Bound string `json:"bound"` // bound of every partial sum, as a power of two
		Width int    `json:"width"`
	} `json:"accumulator"`
	Extent Extent `json:"extent"`
	Loss   *Loss  `json:"loss,omitempty"`
	Table  *Table `json:"table,omitempty"`

	Data *DataInfo `json:"data,omitempty"`
	Fit  *FitInfo  `json:"fit,omitempty"`
}

// DataInfo describes the data of a fit.
type DataInfo struct {
	Files    []FileInfo `json:"files"`
	Rows     int        `json:"rows"` // number of rows fitted or held back
	Outliers string     `json:"outliers"`
	Dropped  Dropped    `json:"dropped"`

	// Units of the columns: the occupancy of a full queue, and the interval unit in
	// µs.
	FullQueue float64 `json:"full_queue"`
	Microsec  float64 `json:"interval_us"`
}

// FileInfo identifies a file.
type FileInfo struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Rows   int    `json:"rows"`
}

// FitInfo is a Fit in the model file: the floating-point polynomial that was
// converted to integers.
type FitInfo struct {
	Normalised Spans     `json:"normalised"`
	Terms      []string  `json:"terms"`
	Coeff      []float64 `json:"coeff"`
	Low        []float64 `json:"coeff_low,omitempty"` // 95 % confidence bounds
	High       []float64 `json:"coeff_high,omitempty"`

	Seed     uint64  `json:"seed"`
	TestPart float64 `json:"test_share"`
	Ridge    float64 `json:"ridge,omitempty"`

	Pearson    Correlation `json:"pearson"`
	Condition  float64     `json:"condition"`
	Train      *Metrics    `json:"train"`
	Test       *Metrics    `json:"test,omitempty"`
	CV         *CV         `json:"cross_validation,omitempty"`
	Robust     *Robust     `json:"huber,omitempty"`
	Projection *Projection `json:"monotone,omitempty"`
	Degrees    []DegreeFit `json:"degrees,omitempty"`
	Hull       []Point     `json:"hull"`
}

// Info returns the description of the fit for a model file.
func (f *Fit) Info(o Options) *FitInfo {
	i := &FitInfo{
		Normalised: f.Spans, Coeff: f.Coeff, Low: f.Low, High: f.High,
		Seed: o.Seed, TestPart: o.Test, Ridge: o.Ridge,
		Pearson: f.Correlation, Condition: f.Cond, Train: f.Train, Test: f.Test, CV: f.CV,
		Robust: f.Robust, Projection: f.Projection, Hull: f.Hull,
	}
	i.Terms = lists.Map(Terms(f.Degree), Term.String)
	if len(f.Degrees) > 1 {
		i.Degrees = f.Degrees
	}
	return i
}

// NewModel returns the model file of a polynomial. The caller adds further fields;
// hull may be nil.
func NewModel(p Poly, hull []Point) *Model {
	m := &Model{Format: modelFormat, Version: modelVersion, Poly: p, Extent: p.extent(hull)}
	m.Accumulator.Bound, m.Accumulator.Width = power2(p.bound()), p.Width()
	return m
}

// Encode returns the text of the file. Equal models have equal texts.
func (m *Model) Encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(m); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// decode decodes JSON and reports the line of an error.
func decode(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		line, why := plain.JSONError(data, err)
		return fmt.Errorf("line %d: %w", line, why)
	}
	return nil
}

// DecodeModel decodes a model file.
func DecodeModel(data []byte) (*Model, error) {
	m := new(Model)
	if err := decode(data, m); err != nil {
		return nil, err
	}
	switch {
	case m.Format != modelFormat:
		return nil, fmt.Errorf("format %q: want %s", m.Format, modelFormat)
	case m.Version < 1 || m.Version > modelVersion:
		return nil, fmt.Errorf("version %d: this p4lb reads up to %d", m.Version, modelVersion)
	}
	if err := m.Poly.Validate(); err != nil {
		return nil, err
	}
	if m.Table != nil {
		o := TableOptions{LBits: m.Table.LBits, TBits: m.Table.TBits, Levels: m.Table.Levels}
		if err := o.validate(); err != nil {
			return nil, err
		}
		if want := 1 << (o.LBits + o.TBits); len(m.Table.Level) != want && !(m.Table.Trend && len(m.Table.Level) == 2*want) {
			return nil, fmt.Errorf("a table of %d entries: %d bits of L and %d of T make %d", len(m.Table.Level), o.LBits, o.TBits, want)
		}
	}
	return m, nil
}
