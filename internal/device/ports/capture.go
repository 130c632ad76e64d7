package ports

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Captures write the packets of ports to pcap files, one per port with both
// directions. If a file cannot be written, its capture ends and the port
// continues.
type Captures struct {
	dir    string
	failed func(error)

	mu    sync.Mutex
	files map[string]*captureFile
	done  chan struct{}
	work  sync.WaitGroup
}

// flushEvery is the longest delay between a packet and its record in the file.
const flushEvery = time.Second

// NewCaptures creates the folder. failed is called only for the first capture
// that ends, because a full disk ends all of them.
func NewCaptures(dir string, failed func(error)) (*Captures, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("capturing packets: %w", err)
	}
	var once sync.Once
	told := func(err error) { once.Do(func() { failed(err) }) }
	c := &Captures{dir: dir, failed: told, files: map[string]*captureFile{}, done: make(chan struct{})}
	c.work.Go(func() {
		tick := time.NewTicker(flushEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				c.each((*captureFile).flush)
			case <-c.done:
				return
			}
		}
	})
	return c, nil
}

func (c *Captures) each(do func(*captureFile)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.files {
		do(f)
	}
}

// Tap wraps a port with a capture named NAME.pcap. A port opened again under
// the same name continues its file.
func (c *Captures) Tap(name string, p Port) (Port, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.files[name]
	if f == nil {
		file, err := os.Create(filepath.Join(c.dir, name+".pcap"))
		if err != nil {
			return nil, fmt.Errorf("capturing packets: %w", err)
		}
		f = &captureFile{w: newPcapWriter(file), failed: c.failed}
		c.files[name] = f
	}
	return &tap{p, f}, nil
}

// Close flushes and closes all files.
func (c *Captures) Close() error {
	close(c.done)
	c.work.Wait()
	var errs []error
	c.each(func(f *captureFile) {
		f.flush()
		errs = append(errs, f.w.file.Close())
	})
	return errors.Join(errs...)
}

// A captureFile is the capture of one port.
type captureFile struct {
	mu     sync.Mutex
	w      *pcapWriter
	given  bool // writing failed: the capture has ended
	failed func(error)
}

func (f *captureFile) write(packets ...[]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.given {
		return
	}
	now := time.Now()
	for _, p := range packets {
		f.w.write(now, p)
	}
}

func (f *captureFile) flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.given {
		return
	}
	if err := f.w.buf.Flush(); err != nil {
		f.given = true
		f.failed(fmt.Errorf("the capture ends here: %w", err))
	}
}

// A tap is a port with a capture.
type tap struct {
	Port
	f *captureFile
}

// Receive implements Port.
func (t *tap) Receive(deliver func([][]byte)) error {
	return t.Port.Receive(func(packets [][]byte) {
		t.f.write(packets...)
		deliver(packets)
	})
}

// Send implements Port.
func (t *tap) Send(packet []byte) {
	t.f.write(packet)
	t.Port.Send(packet)
}

// Lost returns the counts of the wrapped port, or zeros if it has none.
func (t *tap) Lost() (in, out uint64) {
	if l, ok := t.Port.(interface{ Lost() (in, out uint64) }); ok {
		return l.Lost()
	}
	return 0, 0
}

// OnLink passes f to the wrapped port if it watches its link.
func (t *tap) OnLink(f func(up bool)) {
	if l, ok := t.Port.(interface{ OnLink(func(up bool)) }); ok {
		l.OnLink(f)
	}
}
