package web

import (
	"crypto/subtle"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

const (
	// maxGuesses is the number of wrong tokens that a place may send per
	// minute.
	maxGuesses = 30
	// maxPlaces bounds the number of places in memory.
	maxPlaces = 4096
)

// guesses counts wrong tokens per place within a minute.
type guesses struct {
	mu    sync.Mutex
	since time.Time
	wrong map[netip.Prefix]int
}

// place identifies the sender of a request: its IPv4 address, or the /64
// network of its IPv6 address, as IPv6 hosts can choose any address in it.
func place(r *http.Request) netip.Prefix {
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	addr, bits := from.Addr().Unmap(), 64
	if addr.Is4() {
		bits = 32
	}
	p, _ := addr.Prefix(bits)
	return p
}

// tooMany reports whether a place has sent too many wrong tokens to be checked
// again in this minute.
func (g *guesses) tooMany(from netip.Prefix) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.since) > time.Minute {
		g.since, g.wrong = time.Now(), map[netip.Prefix]int{}
	}
	return g.wrong[from] >= maxGuesses
}

// add counts a wrong token.
func (g *guesses) add(from netip.Prefix) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.wrong) >= maxPlaces {
		clear(g.wrong)
	}
	g.wrong[from]++
}

// tokenCookie stores the token after the first request, so that it does not
// remain in browser histories.
const tokenCookie = "p4lb-token"

// knows reports whether the request has the right token, or the server needs
// none. Otherwise it answers the request: it rejects it, or, for the token in
// the address, sets the cookie and redirects.
func (s *Server) knows(w http.ResponseWriter, r *http.Request) bool {
	if s.opts.Token == "" {
		return true
	}
	from, tried := place(r), false
	if s.guesses.tooMany(from) {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "too many wrong tokens from this address: wait a minute", http.StatusTooManyRequests)
		return false
	}
	same := func(got string) bool {
		tried = true
		return subtle.ConstantTimeCompare([]byte(got), []byte(s.opts.Token)) == 1
	}
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && same(bearer) {
		return true
	}
	if c, err := r.Cookie(tokenCookie); err == nil && same(c.Value) {
		return true
	}
	if r.URL.Path == "/" && r.URL.Query().Has("token") && same(r.URL.Query().Get("token")) {
		http.SetCookie(w, &http.Cookie{Name: tokenCookie, Value: s.opts.Token, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return false
	}
	if tried {
		s.guesses.add(from)
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	http.Error(w, "missing or wrong token: open the page as /?token=TOKEN", http.StatusUnauthorized)
	return false
}
