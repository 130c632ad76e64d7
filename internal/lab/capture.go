package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/p4lb/p4lb/internal/device/ports"
	"github.com/p4lb/p4lb/internal/sim"
)

// Capture returns a Recorder that writes a capture for each port of every switch into
// a folder: all packets sent and received, in virtual time, with complete headers and
// truncated payloads. If writing fails, it calls failed and stops capturing; the run
// continues.
func Capture(dir string, failed func(error)) Recorder {
	return &capturing{dir: dir, failed: failed, files: map[*sim.Port]*ports.VirtualCapture{}}
}

type capturing struct {
	dir    string
	failed func(error)
	files  map[*sim.Port]*ports.VirtualCapture
	ended  bool
}

// Begin opens the files.
func (c *capturing) Begin(v *View) error {
	bytes := v.Net.Tap(func(at *sim.Port, head []byte, size int) {
		if f := c.files[at]; f != nil && !c.ended {
			c.note(f.Write(v.Net.Now(), head, size))
		}
	})
	if !bytes {
		return errors.New("captures need the bytes of packets, which models do not have: want engine: p4")
	}
	if err := os.MkdirAll(c.dir, 0o777); err != nil {
		return fmt.Errorf("capturing packets: %w", err)
	}
	for _, sw := range v.Net.Switches() {
		for _, p := range sw.Ports() {
			file, err := ports.CreateVirtual(filepath.Join(c.dir, fmt.Sprintf("%s-port%d.pcap", sw.Name, p.Number)))
			if err != nil {
				return errors.Join(err, c.close())
			}
			c.files[p] = file
		}
	}
	return nil
}

// note stops the captures after the first error.
func (c *capturing) note(err error) {
	if err != nil && !c.ended {
		c.ended = true
		c.failed(fmt.Errorf("captures end here: %w", err))
	}
}

func (c *capturing) close() error {
	var errs []error
	for _, f := range c.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// End writes buffered packets.
func (c *capturing) End() error {
	c.note(c.close())
	return nil
}
