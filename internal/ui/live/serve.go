package live

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/p4lb/p4lb/internal/server/gate"
)

const (
	// maxConnections is the maximum number of client connections.
	maxConnections = 512
	// answerTime is how long a client may take to receive a response, unless the
	// handler sets another limit.
	answerTime = 10 * time.Second
)

// Serve serves requests at l with h until ctx ends, with TLS if secret is not nil.
// It rejects request bodies, because no handler changes anything.
func Serve(ctx context.Context, l net.Listener, secret *tls.Config, h http.Handler) error {
	at := l.Addr()
	l = gate.Bound(l, maxConnections, secret != nil, slog.New(slog.DiscardHandler))
	if secret != nil {
		l = tls.NewListener(l, secret)
	}
	server := &http.Server{
		Handler: guard(h), ErrorLog: log.New(faults{}, "", log.LstdFlags), ReadHeaderTimeout: 10 * time.Second, WriteTimeout: answerTime, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 14,
		ConnState: func(c net.Conn, s http.ConnState) {
			if s != http.StateNew { // after the handshake
				gate.SlotOf(c).EndHandshake()
			}
		},
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	gate.CountRequests(server)
	server.SetKeepAlivesEnabled(false)
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	err := server.Serve(l)
	if ctx.Err() != nil && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving at %v: %w", at, err)
}

// faults logs panics of handlers. It does not log failed handshakes, because any
// client can cause them.
type faults struct{}

func (faults) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("TLS handshake error")) {
		return len(b), nil
	}
	return log.Writer().Write(b)
}

// guard rejects request bodies and does not wait for them.
func guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			w.Header().Set("Connection", "close")
			http.Error(w, "a request has nothing but a head here", http.StatusRequestEntityTooLarge)
			// Otherwise the server would read the rest of the body before closing
			// the connection.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now())
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Health answers /healthz, which is always 200 while the process serves, and
// /readyz, which is 503 until there is something to show. It reports whether the
// request was one of these. They need no token and reveal nothing else.
func Health(w http.ResponseWriter, r *http.Request, ready bool) bool {
	switch {
	case r.URL.Path != "/healthz" && r.URL.Path != "/readyz":
		return false
	case r.URL.Path == "/readyz" && !ready:
		http.Error(w, "not ready", http.StatusServiceUnavailable)
	default:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, "ok\n")
	}
	return true
}
