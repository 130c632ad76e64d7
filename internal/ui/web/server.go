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

	"github.com/p4lb/p4lb/internal/ui/live"
)

// Options say what the page is about and who may see it.
type Options struct {
	// Fabric is what is drawn; nil draws the switches of the frames alone.
	Fabric *Fabric
	// Token, where it is not empty, is what a reader must know.
	Token string
	// Open lets clients in that name the server by any host. Without it they must
	// name it by one of this machine, so that no page from elsewhere can look
	// into it through a reader's browser.
	Open bool
	// Metrics serves /metrics; nil leaves it out.
	Metrics http.Handler
	// TLS is what it is served with; nil serves it as it is.
	TLS *tls.Config
}

const (
	// maxReaders is how many pages may be open.
	maxReaders = 16
	// readerTime is how long a page may take to accept a frame.
	readerTime = 10 * time.Second
	// heartbeat keeps what is between server and page from giving up.
	heartbeat = 15 * time.Second
	// keptFrames and keptBytes are what a new page gets of the past.
	keptFrames = 240
	keptBytes  = 16 << 20
)

// A Server serves the page. Readers never wait for each other, and nobody waits
// for them: who is slow misses frames.
type Server struct {
	opts  Options
	plain string // the page
	page  []byte // compressed
	rule  string // what the page may do

	guesses guesses

	mu      sync.Mutex
	isReady bool
	readers int
	changed chan struct{} // is closed with the next frame
	asked   chan struct{} // gets something when the first reader comes
	coder   coder
	watch   watcher
	past    [][]byte // the latest frames as they are sent, the oldest first
	size    int      // of all of past
	first   int      // the number of past[0]
	events  []Event
	told    int // how many events there were before events[0]
	ended   bool
}

// New makes a server without frames.
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

// document puts the page together, and the rule that nothing but its own script
// runs in it and nothing is fetched from elsewhere.
func document() (text string, compressed []byte, rule string) {
	text = strings.NewReplacer("/*CSS*/", pageCSS, "/*JS*/", pageJS).Replace(pageHTML)
	sum := sha256.Sum256([]byte(pageJS))
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // a level that there is
	z.Write([]byte(text))
	z.Close()
	return text, b.Bytes(), fmt.Sprintf("default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-%s'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		base64.StdEncoding.EncodeToString(sum[:]))
}

// Watched reports whether any page is open.
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

// Show makes f the latest frame. Without readers it notes events alone, which
// newcomers are told.
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
		s.forget() // what is kept is about other series
	}
	// The oldest frames go.
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

// End tells readers that there will be no more frames.
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

// keptEvents is how many events a new page gets.
const keptEvents = 200

func (s *Server) note(list []Event) {
	s.events = append(s.events, list...)
	if surplus := len(s.events) - keptEvents; surplus > 0 {
		s.events = append(s.events[:0], s.events[surplus:]...)
		s.told += surplus
	}
}

// forget drops the past, which would have a hole in it.
func (s *Server) forget() {
	s.first += len(s.past)
	s.past, s.size = nil, 0
}

// Serve answers at l until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return live.Serve(ctx, l, s.opts.TLS, s)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "no-referrer")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "there is nothing to change here", http.StatusMethodNotAllowed)
	case !s.opts.Open && !isHere(r.Host):
		http.Error(w, "this server goes by the names of its own machine", http.StatusMisdirectedRequest)
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

// SetReady makes /readyz answer that there is something to show, though no
// frame has been shown: a page that is read on demand has none before.
func (s *Server) SetReady() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isReady = true
}

// isHere reports whether a client has named this machine.
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
