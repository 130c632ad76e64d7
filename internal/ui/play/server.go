// Package play is the server of p4lb play: it serves the page of the playground and
// runs the native engine. The page has no secrets and needs no token. Requests to
// the engine need the token and must come from the page itself.
package play

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/play"
	"github.com/p4lb/p4lb/internal/play/page"
	"github.com/p4lb/p4lb/internal/server/gate"
)

// A Server serves the page.
type Server struct {
	token string
	index []byte
	slots chan struct{} // one token for each request in progress
}

const (
	// maxCalls bounds the requests that run at the same time.
	maxCalls = 2
	// maxBody bounds a request in bytes.
	maxBody = 8 << 20
	// maxConnections bounds the open connections.
	maxConnections = 64
)

// New returns a server. Requests to its engine need the token.
func New(token string) (*Server, error) {
	index, err := page.Served()
	if err != nil {
		return nil, err
	}
	return &Server{token: token, index: index, slots: make(chan struct{}, maxCalls)}, nil
}

// Serve answers requests until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 14,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	err := gate.ServeHTTP(server, l, maxConnections)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// rule is the Content-Security-Policy.
const rule = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// cookie keeps the token after the first request.
const cookie = "p4lb-play"

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", rule)
	h.Set("Cache-Control", "no-store")
	name, isCall := strings.CutPrefix(r.URL.Path, "/api/")
	switch {
	case !isHere(r.Host):
		http.Error(w, "unknown host name: want localhost or an address of this machine", http.StatusMisdirectedRequest)
	case isCall:
		s.call(w, r, name)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed: want GET or HEAD", http.StatusMethodNotAllowed)
	case r.URL.Path == "/" && r.URL.Query().Has("token"):
		if !s.same(r.URL.Query().Get("token")) {
			http.Error(w, "wrong token: open the address that p4lb play printed", http.StatusUnauthorized)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: cookie, Value: s.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		http.Redirect(w, r, "/", http.StatusSeeOther)
	case r.URL.Path == "/":
		h.Set("Content-Type", "text/html; charset=utf-8")
		w.Write(s.index)
	default:
		s.file(w, r)
	}
}

func (s *Server) same(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 1
}

// file serves a file of the page.
func (s *Server) file(w http.ResponseWriter, r *http.Request) {
	text, err := page.Files.ReadFile(strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil || path.Ext(r.URL.Path) == ".html" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(r.URL.Path)))
	w.Write(text)
}

// call answers a request to the engine with lines of JSON: messages about the
// progress, then the answer.
func (s *Server) call(w http.ResponseWriter, r *http.Request, name string) {
	c, err := r.Cookie(cookie)
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "POST")
		http.Error(w, "method not allowed: want POST", http.StatusMethodNotAllowed)
		return
	case r.Header.Get("Origin") != "http://"+r.Host:
		http.Error(w, "the request does not come from the page", http.StatusForbidden)
		return
	case err != nil || !s.same(c.Value):
		http.Error(w, "missing or wrong token: open the address that p4lb play printed", http.StatusUnauthorized)
		return
	case kind != "application/json":
		http.Error(w, "want a body of application/json", http.StatusUnsupportedMediaType)
		return
	}
	request, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the request is too large", http.StatusRequestEntityTooLarge)
		return
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-r.Context().Done():
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := json.NewEncoder(w)
	flush := http.NewResponseController(w)
	answer := play.Call(r.Context(), name, request, func(message any) {
		if out.Encode(map[string]any{"progress": message}) == nil {
			_ = flush.Flush() // a lost connection ends the context
		}
	})
	_ = out.Encode(map[string]json.RawMessage{"answer": answer}) // a lost connection ends the context
}

// isHere reports whether a host name or address refers to this machine. Without
// this check, pages of other sites could reach the server under their own host name
// (DNS rebinding).
func isHere(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
