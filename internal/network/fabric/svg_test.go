package fabric

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSVG compares two small drawings with goldens; check them by eye after an
// update.
func TestSVG(t *testing.T) {
	for name, top := range map[string]*Topology{"qall-asym": preset(t, "qall-asym"), "dhlb": preset(t, "dhlb")} {
		path := "testdata/" + name + ".svg"
		got := top.SVG()
		if *update {
			if err := os.WriteFile(path, got, 0o666); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

// shapes counts the elements of a drawing by name and class.
func shapes(t *testing.T, svg []byte) map[string]int {
	t.Helper()
	count := map[string]int{}
	dec := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return count
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok {
			name := e.Name.Local
			for _, a := range e.Attr {
				if a.Name.Local == "class" {
					name += " " + a.Value
				}
			}
			count[name]++
		}
	}
}

// TestPictures: the drawing of every preset contains every switch, host and
// link.
func TestPictures(t *testing.T) {
	for _, p := range Presets() {
		top := preset(t, p.Name)
		got := shapes(t, top.SVG())
		boxes, lines := 0, 0
		for name, n := range got {
			switch {
			case strings.HasPrefix(name, "rect node"):
				boxes += n
			case strings.HasPrefix(name, "path link"):
				lines += n
			}
		}
		keys := min(len(top.linkKinds()), colours) + len(top.Leaves())
		if top.failed() {
			keys++
		}
		if want := len(top.Links) - len(top.Hosts) + keys; boxes != len(top.Switches) || got["circle host"] != len(top.Hosts) || lines != want {
			t.Errorf("%s: %d boxes, %d dots, %d lines; want %d, %d, %d", p.Name, boxes, got["circle host"], lines, len(top.Switches), len(top.Hosts), want)
		}
	}
}

// TestPictureText: markup in texts is escaped, and characters that XML does not
// allow are removed.
func TestPictureText(t *testing.T) {
	d, err := LeafSpine{Leaves: 3}.draft()
	if err != nil {
		t.Fatal(err)
	}
	d.name, d.about = "a <b> & \"c\"", "one\x01\x00\ufffe\n"+strings.Repeat("two<script> ", 40)
	for i := range 9 { // more kinds of links than colors, some within a tier
		d.links = append(d.links, draftLink{a: End{Node: fmt.Sprint("l", i%2+1)}, b: End{Node: fmt.Sprint("l", i%2+2)}, rate: Rate(i+1) * Mbps, down: i == 3})
	}
	d.links[0].down = true
	top, err := d.finish("")
	if err != nil {
		t.Fatal(err)
	}
	got := shapes(t, top.SVG())
	if got["script"] != 0 || got["b"] != 0 || got["circle host cut"] != 1 || got["text about"] != 6 {
		t.Errorf("got %v", got)
	}
}
