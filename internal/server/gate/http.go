package gate

import (
	"context"
	"log/slog"
	"net"
	"net/http"
)

type slotKey struct{}

// CountRequests makes an HTTP server record the requests in progress, so that a listener of
// Bound does not replace their connections. It must be called before the server serves, and
// after Handler has been set.
func CountRequests(s *http.Server) {
	h := s.Handler
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, slotKey{}, SlotOf(c))
	}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		slot := r.Context().Value(slotKey{}).(*Slot)
		slot.Begin()
		defer slot.End()
		h.ServeHTTP(w, r)
	})
}

// ServeHTTP serves HTTP with at most limit open connections. New connections do not replace
// connections with a request in progress.
func ServeHTTP(s *http.Server, l net.Listener, limit int) error {
	CountRequests(s)
	return s.Serve(Bound(l, limit, false, slog.New(slog.DiscardHandler)))
}
