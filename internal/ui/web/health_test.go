package web

import (
	"net/http"
	"testing"
)

// TestHealth: probes of an orchestrator need no token, and do not count as wrong
// ones.
func TestHealth(t *testing.T) {
	s := New(Options{Token: "secret", Open: true})
	h := serve(t, s)
	want := func(path string, status int) {
		t.Helper()
		r, err := http.Get(h.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != status {
			t.Errorf("%s: status %d, want %d", path, r.StatusCode, status)
		}
	}
	for range maxGuesses + 1 {
		want("/healthz", http.StatusOK)
	}
	want("/readyz", http.StatusServiceUnavailable)
	want("/", http.StatusUnauthorized)
	s.Show(aFrame(1))
	want("/readyz", http.StatusOK)
	other := New(Options{})
	other.SetReady()
	h = serve(t, other)
	want("/readyz", http.StatusOK)
}
