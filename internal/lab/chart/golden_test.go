package chart

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the expected drawings")

// more are charts with spans, clouds and many names, in addition to the charts above.
func more() []*Chart {
	list := func(n int, f func(i int) float64) (out []float64) {
		for i := range n {
			out = append(out, f(i))
		}
		return out
	}
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprint("switch ", i))
	}
	return []*Chart{
		{Name: "spans", Title: "Flows", Note: "A note below.", X: Axis{Label: "ms"}, Y: Axis{Label: "port", Names: names}, Series: []Series{
			{Label: "flow", Kind: Spans, X: []float64{0, 2, 3}, To: []float64{1, 2.5, 9}, Y: []float64{0, 5, 39}, Shade: []float64{0, 0.25, 2}, Hints: []string{"one", "two & more", ""}},
			{Label: "idle", Kind: Spans, X: []float64{1}, To: []float64{4}, Y: []float64{7}, Reach: 0.2, Tint: 3},
		}},
		{Name: "cloud", Wide: true, X: Axis{Label: "x", Low: -1, High: 3}, Y: Axis{Label: "y", Log: true}, Series: []Series{
			{Label: "points", Kind: Cloud, X: list(30, func(i int) float64 { return float64(i) / 10 }), Y: list(30, func(i int) float64 { return float64(1 + i*i) })},
			{Label: "fit", X: []float64{0, 1, 2}, Y: []float64{1, 100, 800}, Half: []float64{0, 10, 900}},
		}},
		{Name: "legend", X: Axis{Label: "x"}, Series: []Series{
			{Label: "a scheme with a name of more than thirty letters", Kind: Points, X: []float64{1, 2, 3}, Y: []float64{1, math.NaN(), 2e7}, Half: []float64{0.5, 1, 2}},
			{Label: "another scheme with such a name", Kind: Hollow, Tint: 2, X: []float64{1, 2}, Y: []float64{math.NaN(), 1e7}},
			{Label: "a third one, on a line of its own", Kind: Bars, Tint: 3, X: []float64{2}, Y: []float64{-1e6}}, {Label: "b", Tint: 12, X: []float64{1, 2}, Y: []float64{1e7, 1e6}},
		}},
		{Name: "groups", X: Axis{Names: []string{"a", "b", "c"}}, Y: Axis{Label: "ms", High: 10}, Series: []Series{
			{Label: "first", Kind: Bars, X: []float64{0, 1, 2}, Y: []float64{3, 5, 10}, Half: []float64{1, 0.5, 2}}, {Label: "second", Kind: Bars, Tint: 1, X: []float64{0, 1, 2}, Y: []float64{4, 0, 12}},
			{Label: "third", Kind: Bars, Tint: 7, X: []float64{0, 2}, Y: []float64{1, 2}},
		}},
	}
}

// A picture changes only on purpose: the files of testdata hold each chart in all forms.
// -update rewrites them; look at them in a browser before you commit.
func TestDrawings(t *testing.T) {
	for _, c := range append(charts(), more()...) {
		if c.Name == "infinite" {
			continue
		}
		data, err := c.Data()
		if err != nil {
			t.Fatal(err)
		}
		var page []byte // the operators of the PDF, without its font
		for _, s := range regexp.MustCompile(`(?s)stream\n(.*?)endstream`).FindAllSubmatch(c.PDF(), -1) {
			if bytes.Contains(s[1], []byte(" rg ")) {
				page = append(page, s[1]...)
			}
		}
		for form, text := range map[string][]byte{"svg": c.SVG(), "inline.svg": []byte(c.Inline()), "tex": c.PGF(), "csv": c.CSV(), "json": data, "pdf.txt": page} {
			if len(text) == 0 {
				t.Errorf("%s: there is no %s", c.Name, form)
			}
			text = bytes.TrimRight(text, "\n")
			text = append(text, '\n')
			file := filepath.Join("testdata", c.Name+"."+form)
			if *update {
				if err := os.WriteFile(file, text, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(file); err != nil || !bytes.Equal(text, want) {
				t.Errorf("%s has changed: %v", file, err)
			}
		}
	}
}

// The widths of Helvetica, in which charts are measured, come from Adobe's Helvetica.afm:
// sums over groups of characters.
func TestTextWidth(t *testing.T) {
	for text, want := range map[string]float64{
		"": 0, "abcdefghijklm": 6113, "nopqrstuvwxyz": 6613, "ABCDEFGHIJKLM": 8390, "NOPQRSTUVWXYZ": 9223, "0123456789": 5560, " !\"#$%&'()*+,-./": 6576, ":;<=>?@[\\]^_`{|}~": 7583, "é": 556,
	} {
		if got := textWidth(text, 1000); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
