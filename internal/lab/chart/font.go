package chart

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// PDFs contain their font, as publishers require: Go Regular, with the outlines of the used
// letters. Unused outlines are set to zero, which compresses well.

var goFont = sync.OnceValue(func() *sfnt.Font {
	f, err := sfnt.Parse(goregular.TTF)
	if err != nil {
		panic(err) // embedded in the package
	}
	return f
})

// winAnsi returns the rune of byte b, from 0x20 on, in the PDF encoding. It returns 0 for bytes
// that charts do not use.
func winAnsi(b int) rune {
	switch {
	case b == 0x85:
		return '…'
	case b == 0x96:
		return '–'
	case b >= ' ' && b <= '~' || b >= 0xa0 && b <= 0xff:
		return rune(b)
	}
	return 0
}

// advance returns the width of a rune in thousandths of the font size.
func advance(r rune) int {
	var buf sfnt.Buffer
	f := goFont()
	i, _ := f.GlyphIndex(&buf, r) // the embedded font is valid
	w, _ := f.GlyphAdvance(&buf, i, fixed.I(1000), font.HintingNone)
	return w.Round()
}

// pdfWidth returns the width of text in the PDF.
func pdfWidth(s string, size float64) float64 {
	sum := 0
	for _, r := range s {
		sum += advance(r)
	}
	return float64(sum) * size / 1000
}

// fontObjects returns the font, its descriptor and its outlines as PDF objects, numbered from
// first on.
func fontObjects(first int, used string) []string {
	var widths strings.Builder
	for b := 0x20; b <= 0xff; b++ {
		fmt.Fprintf(&widths, "%d ", advance(winAnsi(b)))
	}
	data := outlines(used)
	var packed bytes.Buffer
	w, _ := zlib.NewWriterLevel(&packed, zlib.BestCompression)
	w.Write(data)
	w.Close()
	return []string{
		fmt.Sprintf("<< /Type /Font /Subtype /TrueType /BaseFont /P4LBAA+GoRegular /Encoding /WinAnsiEncoding /FirstChar 32 /LastChar 255 /Widths [%s] /FontDescriptor %d 0 R >>", strings.TrimSpace(widths.String()), first+1),
		fmt.Sprintf("<< /Type /FontDescriptor /FontName /P4LBAA+GoRegular /Flags 32 /FontBBox [-440 -432 2160 2160] /ItalicAngle 0 /Ascent 944 /Descent -211 /CapHeight 723 /StemV 80 /FontFile2 %d 0 R >>", first+2),
		fmt.Sprintf("<< /Length %d /Length1 %d /Filter /FlateDecode >>\nstream\n%s\nendstream", packed.Len(), len(data), packed.Bytes()),
	}
}

// outlines returns the font's file with the outlines of unused glyphs zeroed. The font has
// 16-bit offsets, and no glyph consists of other glyphs.
func outlines(used string) []byte {
	data := bytes.Clone(goregular.TTF)
	table := func(tag string) []byte {
		n := int(binary.BigEndian.Uint16(data[4:]))
		for i := range n {
			record := data[12+16*i:]
			if string(record[:4]) == tag {
				at, size := binary.BigEndian.Uint32(record[8:]), binary.BigEndian.Uint32(record[12:])
				return data[at : at+size]
			}
		}
		panic("the font has no table " + tag)
	}
	loca, glyf := table("loca"), table("glyf")
	offset := func(i int) int { return 2 * int(binary.BigEndian.Uint16(loca[2*i:])) }
	keep := map[int]bool{0: true}
	var buf sfnt.Buffer
	for _, r := range used {
		if i, err := goFont().GlyphIndex(&buf, r); err == nil {
			keep[int(i)] = true
		}
	}
	for i := range goFont().NumGlyphs() {
		if !keep[i] {
			clear(glyf[offset(i):offset(i+1)])
		}
	}
	return data
}
