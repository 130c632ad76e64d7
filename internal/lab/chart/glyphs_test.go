package chart

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// TestOutlines: the font of a PDF has the outlines of the used letters, also if a letter
// is made of others, and no outlines of other letters.
func TestOutlines(t *testing.T) {
	shape := func(f *sfnt.Font, r rune) sfnt.Segments {
		var buf sfnt.Buffer
		i, err := f.GlyphIndex(&buf, r)
		if err != nil {
			t.Fatal(err)
		}
		s, err := f.LoadGlyph(&buf, i, fixed.I(1000), nil)
		if err != nil {
			t.Fatalf("%c: %v", r, err)
		}
		return append(sfnt.Segments(nil), s...)
	}
	for _, r := range "aBéÅçñÿ½Ðþ…–" {
		f, err := sfnt.Parse(outlines(string(r)))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := shape(f, r), shape(goFont(), r); len(want) == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%c: %d segments, want %d", r, len(got), len(want))
		}
		if other := shape(f, 'x'); len(other) > 0 {
			t.Errorf("a font for %c has %d segments of an x", r, len(other))
		}
	}
}

// TestAdvance: letters have the widths of the font, and other bytes have none.
func TestAdvance(t *testing.T) {
	for b, want := range map[int]bool{0x1f: false, ' ': true, '~': true, 0x7f: false, 0x80: false, 0x85: true, 0x96: true, 0x97: false, 0x9f: false, 0xa0: true, 0xff: true} {
		if r := winAnsi(b); (r != 0) != want {
			t.Errorf("byte %#x is %q", b, r)
		}
	}
	if winAnsi(0x85) != '…' || winAnsi(0x96) != '–' || winAnsi(0xe9) != 'é' {
		t.Error("bytes of WinAnsi differ from their letters")
	}
	if advance('i') >= advance('M') || pdfWidth("iM", 500) != float64(advance('i')+advance('M'))/2 {
		t.Errorf("widths %d and %d, together %g", advance('i'), advance('M'), pdfWidth("iM", 500))
	}
}

// TestPDFText writes letters beyond ASCII as bytes of the font's encoding.
func TestPDFText(t *testing.T) {
	for text, want := range map[string]string{
		"a ~": "a ~", `(\)`: `\(\\\)`, "…": `\205`, "–—": `\226\226`, "é\u00a0ÿ": `\351\240\377`, "世\x1f\u0100\x7f": "????",
	} {
		if got := pdfText(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestSheet arranges charts in columns, and writes the style sheets of both themes.
func TestSheet(t *testing.T) {
	list := charts()[:3]
	cell := list[0].paper()
	text := string(Sheet("a & b", 2, list))
	for _, want := range []string{
		fmt.Sprintf(`width="%gpt" height="%gpt" viewBox="0 0 %g %g"`, 2*cell.width, 2*cell.height, 2*cell.width, 2*cell.height),
		fmt.Sprintf(`<g transform="translate(%g 0)">`, cell.width), fmt.Sprintf(`<g transform="translate(0 %g)">`, cell.height), "<title>a &amp; b</title>",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in the sheet", want)
		}
	}
	if n := strings.Count(text, "<g transform="); n != 2 {
		t.Errorf("%d charts are moved, want 2", n)
	}
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the sheet is not XML: %v", err)
		}
	}
	if one := string(Sheet("x", 4, list[:1])); !strings.Contains(one, fmt.Sprintf(`width="%gpt" height="%gpt"`, cell.width, cell.height)) || strings.Contains(one, "<g transform=") {
		t.Error("a sheet of one chart has another size")
	}
	style := Style()
	for i := range tints {
		for _, theme := range []struct {
			dark bool
			want string
		}{{false, light[i]}, {true, dark[i]}} {
			if want := fmt.Sprintf("--c%d:%s;", i, theme.want); !strings.Contains(Colours(theme.dark), want) {
				t.Errorf("no %s (dark: %v)", want, theme.dark)
			}
		}
		if want := fmt.Sprintf(".f%d{fill:var(--c%d)}.l%d{stroke:var(--c%d)}.k%d{background:var(--c%d)}\n", i, i, i, i, i, i); !strings.Contains(style, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, name := range []string{"text", "soft", "grid"} {
		if !strings.Contains(style, ".f-"+name+"{fill:var(--"+name+")}") || !strings.Contains(Colours(true), "--"+name+":#") || !strings.Contains(Colours(false), "--"+name+":#") {
			t.Errorf("no style of %s", name)
		}
	}
}
