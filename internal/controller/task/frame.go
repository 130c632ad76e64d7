package task

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// broadcast is the destination address of probes. Switches recognise them by their EtherType.
var broadcast = fabric.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// A frameMaker makes Ethernet frames with one header of a manifest.
type frameMaker struct {
	header *manifest.Header
	src    fabric.MAC
}

// newFrameMaker returns a frameMaker for a task with a header that has its own
// EtherType.
func newFrameMaker(n *plan.Node, t *manifest.Task) frameMaker {
	m := frameMaker{header: n.Manifest.HeaderNamed(t.Header)}
	if len(n.Ports) > 0 {
		m.src = n.Ports[0].MAC
	}
	return m
}

// frame returns a frame with the header. Fields without a role have the manifest's values. A
// value that does not fit is an error, because switches would accept a truncated switch number.
// Sequence numbers are truncated to their low bits.
func (m frameMaker) frame(values map[manifest.FieldRole]uint64) ([]byte, error) {
	w := plan.BitWriter{Bytes: slices.Concat(broadcast[:], m.src[:])}
	w.Write(uint64(m.header.EtherType), 16)
	for _, f := range m.header.Fields {
		v, carried := values[f.Carries]
		switch {
		case f.Carries == "" || !carried:
			v = f.Value
		case f.Carries == manifest.Sequence && f.Width < 64:
			v &= 1<<f.Width - 1
		}
		if bits.Len64(v) > f.Width {
			return nil, fmt.Errorf("%d does not fit the %d bits of %s.%s", v, f.Width, m.header.Name, f.Name)
		}
		w.Write(v, f.Width)
	}
	return w.Bytes, nil
}

// A sendTask sends a frame to a switch periodically. If a register should change when a frame
// comes back but does not, the task reports it once.
type sendTask struct {
	identity
	plan.Frame
	sent   uint64
	alert  func(Alert)
	began  time.Duration
	before []uint64 // cells of the register at the first frame
}

// A frame that returns does so before this many later frames are sent, and within this time.
const (
	returning = 20
	late      = time.Second
)

// watch reads the register at the first frame, and later compares it once.
func (t *sendTask) watch(now time.Duration, f Fabric) error {
	if t.Returns == "" || t.alert == nil {
		return nil
	}
	if t.sent == 0 {
		t.began = now
		var err error
		t.before, err = f.ReadRegister(t.sw, t.Returns, 0, t.Cells, nil)
		return err
	}
	if took := now - t.began; t.sent < returning && took < late || took < min(late, returning*time.Millisecond) {
		return nil
	}
	return t.check(now, f)
}

// check reports that no frame has come back, unless the register has changed. It does so only
// once.
func (t *sendTask) check(now time.Duration, f Fabric) error {
	cells, err := f.ReadRegister(t.sw, t.Returns, 0, t.Cells, nil)
	if err != nil {
		return err
	}
	if slices.Equal(cells, t.before) {
		place := "the CPU port"
		if t.Port != nil {
			place = fmt.Sprintf("port %d", *t.Port)
		}
		if t.Toward != "" {
			place += " for the link to " + t.Toward
		}
		t.alert(Alert{Time: now, Task: t.Name(), Switch: t.sw, Text: fmt.Sprintf("none of %d probes from %s has come back within %v: register %s has not changed", t.sent, place, (now - t.began).Round(time.Millisecond), t.Returns)})
	}
	t.Returns = ""
	return nil
}

// Finish checks the frames of a short run.
func (t *sendTask) Finish(now time.Duration, f Fabric) error {
	if t.Returns == "" || t.alert == nil || t.sent < 2 || now-t.began < time.Millisecond {
		return nil
	}
	return t.check(now, f)
}

// Run sends the frame.
func (t *sendTask) Run(now time.Duration, f Fabric) (time.Duration, error) {
	if err := t.watch(now, f); err != nil {
		return now + t.Every, err
	}
	frame := slices.Clone(t.Bytes)
	for _, s := range t.Stamps {
		v := t.sent
		if s.Fact == manifest.SendTime {
			clock, err := f.Clock(t.sw)
			if err != nil {
				return now + t.Every, err
			}
			v = uint64(clock.Microseconds())
		}
		s.Write(frame, v)
	}
	t.sent++
	if t.Port != nil {
		return now + t.Every, f.PacketAt(t.sw, *t.Port, frame)
	}
	return now + t.Every, f.PacketOut(t.sw, frame)
}
