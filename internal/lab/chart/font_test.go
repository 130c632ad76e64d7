package chart

import (
	"bytes"
	"compress/zlib"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/image/font/sfnt"
)

// TestEmbedded: a PDF holds its font, with the outlines of its letters and no others.
func TestEmbedded(t *testing.T) {
	pdf := (&Chart{Name: "x", Title: "Ié", Note: "Warnings: few-seeds"}).PDF()
	m := regexp.MustCompile(`(?s)<< /Length (\d+) /Length1 (\d+) /Filter /FlateDecode >>\nstream\n`).FindSubmatchIndex(pdf)
	if m == nil || !bytes.Contains(pdf, []byte("/FontFile2 8 0 R")) || bytes.Contains(pdf, []byte("/Type1")) {
		t.Fatal("the font is not embedded")
	}
	n, _ := strconv.Atoi(string(pdf[m[2]:m[3]]))
	r, err := zlib.NewReader(bytes.NewReader(pdf[m[1] : m[1]+n]))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil || strconv.Itoa(len(data)) != string(pdf[m[4]:m[5]]) {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	f, err := sfnt.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	var buf sfnt.Buffer
	for r, want := range map[rune]bool{'I': true, 'é': true, 'e': true, 'W': true, 'Z': false, 'q': false} {
		i, err := f.GlyphIndex(&buf, r)
		if err != nil {
			t.Fatal(err)
		}
		outline, err := f.LoadGlyph(&buf, i, 1000, nil)
		if err != nil || (len(outline) > 0) != want {
			t.Errorf("%c has an outline of %d segments, want any: %t (%v)", r, len(outline), want, err)
		}
	}
	if len(pdf) > 60_000 {
		t.Errorf("%d bytes", len(pdf))
	}
}

// TestPGF: what LaTeX reads has balanced braces and environments, and no letter that
// is special to it.
func TestPGF(t *testing.T) {
	for _, c := range charts() {
		c.Title += " 50 % & x_1"
		text := string(c.PGF())
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Errorf("%s: %s", c.Name, text)
		}
		depth := 0
		for i := range text {
			switch {
			case i > 0 && text[i-1] == '\\':
			case text[i] == '{':
				depth++
			case text[i] == '}':
				depth--
			}
		}
		if depth != 0 || strings.Count(text, "\\begin{") != strings.Count(text, "\\end{") || strings.Count(text, "\\addplot") != len(c.Series) {
			t.Errorf("%s: %d braces open: %s", c.Name, depth, text)
		}
		if !strings.Contains(text, `title={`) || !strings.Contains(text, `50 \% \& x\_1}`) {
			t.Errorf("%s: %s", c.Name, text)
		}
	}
}
