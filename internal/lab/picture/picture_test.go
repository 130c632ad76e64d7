package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/fitting"
)

func subject(t *testing.T) Subject {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 1))
	rows := new(fitting.Rows)
	for range 2000 {
		load := rng.Float64()
		rows.Append(fitting.Row{Y: load + 0.1*rng.Float64(), L: 255 * load * load, T: 10 + 900*(1-load)*rng.Float64()})
	}
	fit, err := rows.Fit(t.Context(), fitting.Options{Degree: 2, Sweep: true, Test: 0.25})
	if err != nil {
		t.Fatal(err)
	}
	poly, err := fit.Fix(rows, fitting.FixOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return Subject{fit, poly, rows}
}

func TestPNG(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, "png", subject(t)); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	// Each of the four panels has something in it.
	size := img.Bounds().Size()
	for i := range 4 {
		colours := map[uint32]bool{}
		for x := range size.X / 2 {
			for y := range size.Y / 2 {
				r, g, b, _ := img.At(x+i%2*size.X/2, y+i/2*size.Y/2).RGBA()
				colours[r>>8<<16|g>>8<<8|b>>8] = true
			}
		}
		if len(colours) < 20 {
			t.Errorf("panel %d has %d colours", i, len(colours))
		}
	}
}

func TestSVG(t *testing.T) {
	s := subject(t)
	var a, b bytes.Buffer
	if err := errors.Join(Write(&a, "svg", s), Write(&b, "svg", s)); err != nil {
		t.Fatal(err)
	}
	if a.String() != b.String() {
		t.Error("the same picture differs from run to run")
	}
	for _, want := range []string{"congestion index, degree 2", "hull of the data", "R² over degree", "integer against float, scale 1000", "residuals"} {
		if !strings.Contains(a.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	for d := xml.NewDecoder(&b); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestFormat(t *testing.T) {
	if err := Write(io.Discard, "gif", subject(t)); err == nil || err.Error() != `no picture of the kind "gif": want svg or png` {
		t.Errorf("got %v", err)
	}
}
