package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// maxConnections is how many connections of clients there may be.
	maxConnections = 512
	// answerTime is how long an answer may take to be accepted, unless the handler
	// says otherwise.
	answerTime = 10 * time.Second
)

// Serve has h answer requests at l until ctx ends. None has anything but a head:
// there is nothing to change.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	d := door{open: map[net.Conn]place{}}
	server := &http.Server{
		Handler: d.guard(h), ReadHeaderTimeout: 10 * time.Second, WriteTimeout: answerTime, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 14,
		ConnState:   d.state,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, doorKey{}, c) },
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	err := server.Serve(l)
	if ctx.Err() != nil && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving at %v: %w", l.Addr(), err)
}

// A door lets in so many connections. For one more, the one gives way that has
// been without an answer under way for longest, once it has had a moment for it:
// who says nothing, or never ends a request, keeps nobody out. If all are being
// answered, the new one is closed.
type door struct {
	mu   sync.Mutex
	open map[net.Conn]place
}

// moment is what a connection has for a handshake and a request.
const moment = 200 * time.Millisecond

type place struct {
	answered bool
	since    time.Time
}

type doorKey struct{}

// state is told of each connection what it does.
func (d *door) state(c net.Conn, now http.ConnState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch now {
	case http.StateClosed, http.StateHijacked:
		delete(d.open, c)
	case http.StateNew:
		if !d.makeRoom() {
			c.Close()
			return
		}
		d.open[c] = place{since: time.Now()}
	}
}

// makeRoom waits until there is room, or reports that there is none. Others wait
// to be accepted meanwhile.
func (d *door) makeRoom() bool {
	for len(d.open) >= maxConnections {
		gone := d.idlest()
		if gone == nil {
			return false
		}
		if left := moment - time.Since(d.open[gone].since); left > 0 {
			d.mu.Unlock()
			time.Sleep(min(left, moment/20)) // others may go before
			d.mu.Lock()
			continue
		}
		delete(d.open, gone)
		go gone.Close()
	}
	return true
}

func (d *door) idlest() net.Conn {
	var gone net.Conn
	for c, p := range d.open {
		if !p.answered && (gone == nil || p.since.Before(d.open[gone].since)) {
			gone = c
		}
	}
	return gone
}

// guard notes who is being answered, and does not wait for the body of a request.
func (d *door) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			w.Header().Set("Connection", "close")
			http.Error(w, "a request has nothing but a head here", http.StatusRequestEntityTooLarge)
			// What is left of it would be read before the connection is closed.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now())
			return
		}
		c, _ := r.Context().Value(doorKey{}).(net.Conn)
		if d.answer(c, true) {
			w.Header().Set("Connection", "close") // others wait
		}
		defer d.answer(c, false)
		h.ServeHTTP(w, r)
	})
}

// answer notes whether a connection is being answered. It reports whether more than
// half of the room is taken.
func (d *door) answer(c net.Conn, now bool) (crowded bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.open[c]; ok {
		d.open[c] = place{now, time.Now()}
	}
	return len(d.open) > maxConnections/2
}
