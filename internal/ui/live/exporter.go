package live

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
)

// An Exporter serves the latest frame as metrics for Prometheus. A scrape does not
// read switches: reading them is part of producing a frame. The text of a frame is
// generated at its first scrape.
type Exporter struct {
	mu       sync.Mutex
	frame    *Frame
	text     []byte // the text of frame; nil until the first request
	reads    map[string]int
	failures map[string]int
}

func (e *Exporter) ready() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.frame != nil
}

// Show makes f the frame to serve.
func (e *Exporter) Show(f *Frame) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.frame, e.text = f, nil
	if e.reads == nil {
		e.reads, e.failures = map[string]int{}, map[string]int{}
	}
	for i := range f.Switches {
		sw := &f.Switches[i]
		e.reads[sw.Name]++
		if sw.Err != "" {
			e.failures[sw.Name]++
		}
	}
}

// Serve serves /metrics at l until ctx ends, and a page with a link to it.
func (e *Exporter) Serve(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", e)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<!doctype html><title>p4lb</title><p>p4lb: <a href="/metrics">metrics</a></p>`)
	})
	health := func(w http.ResponseWriter, r *http.Request) { Health(w, r, e.ready()) }
	mux.HandleFunc("GET /healthz", health)
	mux.HandleFunc("GET /readyz", health)
	return Serve(ctx, l, nil, mux)
}

// ServeHTTP answers a scrape in Prometheus' text format, version 0.0.4.
func (e *Exporter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Write(e.metrics())
}

// metrics returns the text of the latest frame, or no text before the first frame.
// The text must not be changed.
func (e *Exporter) metrics() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.text == nil && e.frame != nil {
		var p page
		for _, m := range metrics {
			before := p.Len()
			p.family(m)
			lines := p.Len()
			if m.write(&p, m.name, e); p.Len() == lines {
				p.Truncate(before) // no switch has a value for this metric
			}
		}
		e.text = p.Bytes()
	}
	return e.text
}

// A metric is a metric family of Prometheus.
type metric struct {
	name, kind, help string
	write            func(p *page, name string, e *Exporter)
}

func writeUp(p *page, name string, e *Exporter) {
	for _, sw := range e.frame.Switches {
		up := 1.0
		if sw.Err != "" {
			up = 0
		}
		p.begin(name, p.labels("scheme", e.frame.Scheme, "switch", sw.Name, "role", sw.Role))
		p.end(up)
	}
}

func writeClocks(p *page, name string, e *Exporter) {
	for _, sw := range e.frame.Switches {
		if sw.Err == "" {
			p.begin(name, p.labels("scheme", e.frame.Scheme, "switch", sw.Name))
			p.end(sw.Clock.Seconds())
		}
	}
}

func writeReads(p *page, name string, e *Exporter)    { e.writeCounts(p, name, e.reads) }
func writeFailures(p *page, name string, e *Exporter) { e.writeCounts(p, name, e.failures) }

func (e *Exporter) writeCounts(p *page, name string, counts map[string]int) {
	for _, sw := range e.frame.Switches {
		p.begin(name, p.labels("scheme", e.frame.Scheme, "switch", sw.Name))
		p.end(float64(counts[sw.Name]))
	}
}

// A page is the text of a response to a scrape.
type page struct {
	bytes.Buffer
	number []byte
}

func (p *page) family(m metric) {
	fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s %s\n", m.name, m.help, m.name, m.kind)
}

// labels formats pairs of names and values, for use in several lines.
func (p *page) labels(pairs ...string) string {
	var aside page
	for i := 0; i < len(pairs); i += 2 {
		aside.label(pairs[i], pairs[i+1])
	}
	return aside.String()
}

// begin starts a line with labels that are already formatted.
func (p *page) begin(name, labels string) {
	p.WriteString(name)
	p.WriteByte('{')
	p.WriteString(labels)
}

// label adds a label. For Prometheus, a label without a value is the same as no
// label.
func (p *page) label(name, value string) {
	if value == "" {
		return
	}
	if b := p.Bytes(); len(b) > 0 && b[len(b)-1] != '{' {
		p.WriteByte(',')
	}
	p.WriteString(name)
	p.WriteString(`="`)
	for i := range len(value) {
		switch b := value[i]; b {
		case '\\', '"':
			p.WriteByte('\\')
			p.WriteByte(b)
		case '\n':
			p.WriteString(`\n`)
		default:
			p.WriteByte(b)
		}
	}
	p.WriteByte('"')
}

// place writes the position of a cell as numbers, or as words if it has no numbers.
func (p *page) place(v *Value) {
	if v.Port == 0 && v.Group == 0 && v.Path == 0 {
		p.label("index", v.Index)
		return
	}
	p.count("port", v.Port)
	p.label("peer", v.Peer)
	p.count("group", v.Group)
	p.count("path", v.Path)
}

func (p *page) count(name string, n int) {
	if n != 0 {
		p.label(name, strconv.Itoa(n))
	}
}

func (p *page) end(x float64) {
	p.WriteString("} ")
	p.number = strconv.AppendFloat(p.number[:0], x, 'g', -1, 64)
	p.Write(p.number)
	p.WriteByte('\n')
}
