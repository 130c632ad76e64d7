package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	_ "embed"

	"github.com/p4lb/p4lb/internal/lab/chart"
	"github.com/p4lb/p4lb/internal/ui/live"
)

// Options configure a Server.
type Options struct {
	// Fabric is the topology to draw. nil draws only the switches in the frames.
	Fabric *Fabric
	// Token is the password of the page unless it is empty.
	Token string
	// Open accepts requests with any host name. Otherwise the name must refer
	// to this machine, so that other web pages cannot read the server through a
	// user's browser (DNS rebinding).
	Open bool
	// Metrics serves /metrics. nil disables it.
	Metrics http.Handler
	// TLS is the TLS configuration. nil serves plain HTTP.
	TLS *tls.Config
}

const (
	// maxReaders bounds the number of open pages.
	maxReaders = 16
	// readerTime limits the wait for a page that does not accept a frame.
	readerTime = 10 * time.Second
	// heartbeat is the interval of empty messages that keep proxies from
	// closing an idle connection.
	heartbeat = 15 * time.Second
	// keptFrames and keptBytes bound the history that a new page receives.
	keptFrames = 240
	keptBytes  = 16 << 20
)

// A Server serves the page. Neither other readers nor the producer of frames wait
// for a slow reader, which misses frames instead.
type Server struct {
	opts  Options
	plain string // the page, uncompressed
	page  []byte // the page, compressed by gzip
	rule  string // the Content-Security-Policy

	guesses guesses

	mu      sync.Mutex
	isReady bool
	readers int
	changed chan struct{} // closed when new messages are available
	asked   chan struct{} // signals a new reader
	coder   coder
	watch   watcher
	past    [][]byte // latest encoded frames, the oldest first
	size    int      // total bytes of past
	first   int      // number of past[0]
	events  []Event
	told    int    // number of events before events[0]
	figures []byte // the latest figures, as sent
	drawn   int    // number of figures drawn so far
	ended   bool
}

// A Figure is a chart of the run so far.
type Figure struct {
	Title string `json:"title"`
	About string `json:"about"`
	Wide  bool   `json:"wide"`
	SVG   string `json:"svg"` // for a page with the style sheet of package chart
	Keys  []Key  `json:"keys"`
}

// A Key is the name and the number of the colour of a series.
type Key struct {
	Label  string `json:"label"`
	Colour int    `json:"colour"`
}

// New returns a server without frames.
func New(o Options) *Server {
	s := &Server{opts: o, changed: make(chan struct{}), asked: make(chan struct{}, 1)}
	s.plain, s.page, s.rule = document()
	return s
}

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// document returns the page, its gzip compression and a Content-Security-Policy
// that permits only its own script and no external resources.
func document() (text string, compressed []byte, rule string) {
	text = strings.NewReplacer("/*CSS*/", pageCSS+chartCSS(), "/*JS*/", pageJS).Replace(pageHTML)
	sum := sha256.Sum256([]byte(pageJS))
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // a valid level
	z.Write([]byte(text))
	z.Close()
	return text, b.Bytes(), fmt.Sprintf("default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-%s'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		base64.StdEncoding.EncodeToString(sum[:]))
}

// chartCSS returns the style sheet of figures.
func chartCSS() string {
	return ".chart{" + chart.Colours(false) + "}:root[data-theme=\"dark\"] .chart{" + chart.Colours(true) + "}" + chart.Style()
}

// Watched reports whether a page is open.
func (s *Server) Watched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readers > 0
}

// Await waits until a page is open.
func (s *Server) Await(ctx context.Context) error {
	for !s.Watched() {
		select {
		case <-s.asked:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Show publishes f as the latest frame. Without readers it only records events,
// for readers that come later.
func (s *Server) Show(f *live.Frame) {
	s.SetReady()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(s.watch.look(f))
	if s.readers == 0 {
		s.forget()
		return
	}
	frame, same := s.coder.encode(f)
	if !same {
		s.forget() // the history has other series
	}
	// The oldest frames are removed.
	s.past, s.size = append(s.past, frame), s.size+len(frame)
	for len(s.past) > keptFrames || s.size > keptBytes && len(s.past) > 1 {
		s.size -= len(s.past[0])
		s.past[0] = nil
		s.past, s.first = s.past[1:], s.first+1
	}
	s.wake()
}

// Tell adds an event that frames do not show.
func (s *Server) Tell(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note([]Event{e})
	s.wake()
}

// Draw publishes the figures of the run, with a line about its progress. They
// replace the previous figures.
func (s *Server) Draw(text string, figures []Figure) {
	m := message("figures", map[string]any{"text": text, "figures": figures})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.figures = m
	s.drawn++
	s.wake()
}

// End announces that no more frames follow.
func (s *Server) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.wake()
}

func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// keptEvents is the number of events that a new page receives.
const keptEvents = 200

func (s *Server) note(list []Event) {
	s.events = append(s.events, list...)
	if surplus := len(s.events) - keptEvents; surplus > 0 {
		s.events = append(s.events[:0], s.events[surplus:]...)
		s.told += surplus
	}
}

// forget deletes the history, as it would have a gap.
func (s *Server) forget() {
	s.first += len(s.past)
	s.past, s.size = nil, 0
}

// Serve serves requests at l until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return live.Serve(ctx, l, s.opts.TLS, s)
}

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "no-referrer")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed: want GET or HEAD", http.StatusMethodNotAllowed)
	case !s.opts.Open && !isHere(r.Host):
		http.Error(w, "unknown host name: want localhost or an address of this machine", http.StatusMisdirectedRequest)
	case live.Health(w, r, s.ready()):
	case !s.knows(w, r):
	case r.URL.Path == "/":
		s.servePage(w, r)
	case r.URL.Path == "/events":
		s.serveEvents(w, r)
	case r.URL.Path == "/metrics" && s.opts.Metrics != nil:
		s.opts.Metrics.ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

// ready reports whether there is a frame to show.
func (s *Server) ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isReady
}

// SetReady makes /readyz report ready before the first frame. A page whose readings
// start on demand has no frames before its first reader.
func (s *Server) SetReady() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isReady = true
}

// isHere reports whether a host name or address refers to this machine.
func isHere(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", s.rule)
	h.Set("Cache-Control", "no-store")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		w.Write(s.page)
		return
	}
	io.WriteString(w, s.plain)
}
