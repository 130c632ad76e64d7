package serve

import (
	"bufio"
	"encoding/json"
	"os"
	"sync"
	"time"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/dataplane"
)

// A traceFile writes the events of packets, one JSON object per line.
type traceFile struct {
	name  string
	start time.Time
	stop  chan struct{}
	done  chan struct{}

	mu   sync.Mutex
	file *os.File
	buf  *bufio.Writer
	enc  *json.Encoder
}

// A TraceLine is one line of the file. Its fields depend on the event.
type TraceLine struct {
	Time   int64       `json:"us"` // since the start of the switch
	Packet uint64      `json:"packet"`
	Event  string      `json:"event"`
	Name   string      `json:"name,omitempty"`
	Value  *int64      `json:"value,omitempty"`
	Depth  *int        `json:"depth,omitempty"`
	Source *traceplace `json:"source,omitempty"`
}

// A traceplace is the source position of an action.
type traceplace struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text,omitempty"`
}

// traceFlush is the longest time before a line reaches the file, for readers
// that follow it.
const traceFlush = 200 * time.Millisecond

// begin creates the file, before the first event.
func (t *traceFile) begin() (err error) {
	if t.file, err = os.Create(t.name); err != nil {
		return cli.CannotWrite(t.name, err)
	}
	t.start = time.Now()
	t.buf = bufio.NewWriterSize(t.file, 1<<16)
	t.enc = json.NewEncoder(t.buf)
	t.enc.SetEscapeHTML(false)
	t.stop, t.done = make(chan struct{}), make(chan struct{})
	go t.flush()
	return nil
}

func (t *traceFile) flush() {
	defer close(t.done)
	tick := time.NewTicker(traceFlush)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			t.mu.Lock()
			t.buf.Flush() // close reports the error
			t.mu.Unlock()
		case <-t.stop:
			return
		}
	}
}

// event writes a line.
func (t *traceFile) event(e dataplane.Event) {
	line := TraceLine{Time: time.Since(t.start).Microseconds(), Packet: e.Packet, Event: e.Kind.String(), Name: e.Name}
	switch e.Kind {
	case dataplane.EventEnqueue:
		line.Depth = &e.Depth
		line.Value = &e.Value
	case dataplane.EventTableHit, dataplane.EventClone, dataplane.EventTransmit, dataplane.EventParserError:
		line.Value = &e.Value
	}
	if s := e.Source; s != nil {
		line.Source = &traceplace{s.Filename, s.Line, s.SourceFragment}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.enc.Encode(line)
}

func (t *traceFile) close() error {
	if t.file == nil {
		return nil
	}
	close(t.stop)
	<-t.done
	err := t.buf.Flush()
	if e := t.file.Close(); err == nil {
		err = e
	}
	if err != nil {
		return cli.CannotWrite(t.name, err)
	}
	return nil
}
