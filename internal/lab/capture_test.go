package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/sim"
)

// counting captures packets and keeps the port counters of the end of the run.
type counting struct {
	Recorder
	view *View
	want map[string]int64 // packets by the capture's name
}

func (c *counting) Begin(v *View) error {
	c.view = v
	return c.Recorder.Begin(v)
}

func (c *counting) End() error {
	for _, sw := range c.view.Net.Switches() {
		for _, p := range sw.Ports() {
			c.want[fmt.Sprintf("%s-port%d.pcap", sw.Name, p.Number)] = p.Counters().Packets + p.Far().Counters().Packets
		}
	}
	return c.Recorder.End()
}

// TestCapture: captures have every packet that a port counts, in the order of
// virtual time.
func TestCapture(t *testing.T) {
	x, err := spec.Load("capture.yaml", []byte(strings.Replace(worldExperiment, "[ecmp, letflow]", "[ecmp]", 1)), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := &counting{Recorder: Capture(dir, func(err error) { t.Error(err) }), want: map[string]int64{}}
	if _, err := (&Runner{Record: c, Dir: t.TempDir()}).Run(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	all := int64(0)
	for name, want := range c.want {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, last := int64(0), time.Duration(0)
		for text = text[24:]; len(text) > 0; got++ {
			word := func(i int) int { return int(binary.LittleEndian.Uint32(text[4*i:])) }
			at := time.Duration(word(0))*time.Second + time.Duration(word(1))
			if at < last || word(2) > word(3) || word(2) < sim.UDPHeaders {
				t.Fatalf("%s: packet %d at %v behind one at %v has %d bytes of %d", name, got, at, last, word(2), word(3))
			}
			last, text = at, text[16+word(2):]
		}
		if onLinks := want - got; onLinks < 0 || onLinks > 2 { // when the last flow ended
			t.Errorf("%s has %d packets, the port has counted %d", name, got, want)
		}
		all += got
	}
	if all == 0 {
		t.Error("no packets")
	}
	native, err := spec.Load("capture.yaml", []byte(worldExperiment+"engine: native\n"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&Runner{Record: Capture(t.TempDir(), nil), Dir: t.TempDir()}).Run(t.Context(), native)
	if err == nil || !strings.Contains(err.Error(), "captures need the bytes of packets") {
		t.Errorf("of models: %v", err)
	}
	lost := errors.New("no space left on device")
	told := 0
	full := &capturing{failed: func(error) { told++ }}
	full.note(lost)
	full.note(lost)
	if told != 1 {
		t.Errorf("a full disk is told of %d times", told)
	}
}
