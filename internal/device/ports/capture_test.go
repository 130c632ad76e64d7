package ports

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A loop is a port that receives the packets it sends.
type loop struct {
	packets chan []byte
}

func (l *loop) Receive(deliver func([][]byte)) error {
	for p := range l.packets {
		deliver([][]byte{p})
	}
	return nil
}
func (l *loop) Send(p []byte) { l.packets <- append([]byte(nil), p...) }
func (l *loop) Flush() error  { return nil }
func (l *loop) Close() error  { close(l.packets); return nil }

// TestCaptures: a capture holds both directions, also for a port that is opened
// again under the same name.
func TestCaptures(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	c, err := NewCaptures(dir, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first", "second"} {
		p, err := c.Tap("l1-port3", &loop{make(chan []byte, 1)})
		if err != nil {
			t.Fatal(err)
		}
		packets, end := collect(p)
		p.Send([]byte(text))
		want(t, packets, text)
		p.Close()
		wantEnd(t, end)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := Open("pcap:" + filepath.Join(dir, "l1-port3.pcap") + ",")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	packets, end := collect(p)
	for _, text := range []string{"first", "first", "second", "second"} {
		want(t, packets, text)
	}
	wantEnd(t, end)
}

// TestCaptureOnFullDisk: a capture that cannot be written ends with one error,
// and the port continues.
func TestCaptureOnFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no device that is full:", err)
	}
	var errs []error
	f := &captureFile{w: newPcapWriter(full), failed: func(err error) { errs = append(errs, err) }}
	p := &tap{&loop{make(chan []byte, 1000)}, f}
	for range 1000 {
		p.Send(make([]byte, 100)) // more than the buffer holds
		f.flush()
	}
	if len(errs) != 1 || errors.Unwrap(errs[0]) == nil {
		t.Errorf("got %d errors (%v), want one", len(errs), errs)
	}
	if n := len(p.Port.(*loop).packets); n != 1000 {
		t.Errorf("%d packets went on, want 1000", n)
	}
}
