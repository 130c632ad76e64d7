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
	// maxGuesses is how many wrong tokens may come from one place in a minute.
	maxGuesses = 30
	// maxPlaces is how many places are kept in mind.
	maxPlaces = 4096
)

// guesses counts wrong tokens by where they come from, for a minute each.
type guesses struct {
	mu    sync.Mutex
	since time.Time
	wrong map[netip.Prefix]int
}

// place is where a request comes from: an address, or what IPv6 gives to one
// machine.
func place(r *http.Request) netip.Prefix {
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	addr, bits := from.Addr().Unmap(), 64
	if addr.Is4() {
		bits = 32
	}
	p, _ := addr.Prefix(bits)
	return p
}

// tooMany reports whether from a place no token is looked at any more.
func (g *guesses) tooMany(from netip.Prefix) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.since) > time.Minute {
		g.since, g.wrong = time.Now(), map[netip.Prefix]int{}
	}
	return g.wrong[from] >= maxGuesses
}

// add notes a wrong token.
func (g *guesses) add(from netip.Prefix) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.wrong) >= maxPlaces {
		clear(g.wrong)
	}
	g.wrong[from]++
}

// tokenCookie keeps the token out of the addresses that browsers remember.
const tokenCookie = "p4lb-token"

// knows reports whether the client has the token, if there is one; it answers
// where not, or where the client comes with it for the first time.
func (s *Server) knows(w http.ResponseWriter, r *http.Request) bool {
	if s.opts.Token == "" {
		return true
	}
	from, tried := place(r), false
	if s.guesses.tooMany(from) {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "too many wrong tokens have come from there: wait a minute", http.StatusTooManyRequests)
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
	http.Error(w, "the page wants its token: open it as /?token=TOKEN", http.StatusUnauthorized)
	return false
}
