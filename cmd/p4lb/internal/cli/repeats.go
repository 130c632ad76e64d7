package cli

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// A line is a repeat if the same line was logged within quietTime. The handler
// remembers the mostLines latest lines.
const (
	quietTime = 10 * time.Second
	mostLines = 256
)

// repeats is a log handler that thins out repeated warnings and errors. A
// problem with every packet would otherwise log thousands of lines a second. Of
// a repeated line it prints the 1st, 10th, 100th, … with the count.
type repeats struct {
	slog.Handler
	prefix string // attributes and groups added by WithAttrs and WithGroup
	*said
}

// said is the state shared by handlers derived from the same one.
type said struct {
	mu    sync.Mutex
	lines map[string]*saidLine
}

type saidLine struct {
	last time.Time
	n    int
}

func newRepeats(h slog.Handler) *repeats {
	return &repeats{Handler: h, said: &said{lines: map[string]*saidLine{}}}
}

// Handle implements slog.Handler.
func (r *repeats) Handle(ctx context.Context, rec slog.Record) error {
	if rec.Level < slog.LevelWarn {
		return r.Handler.Handle(ctx, rec)
	}
	var key strings.Builder
	key.WriteString(r.prefix + rec.Message)
	rec.Attrs(func(a slog.Attr) bool {
		key.WriteString("\x00" + a.String())
		return true
	})
	switch n, print := r.again(key.String(), rec.Time); {
	case !print:
		return nil
	case n > 1:
		rec = rec.Clone()
		rec.AddAttrs(slog.Int("times", n))
	}
	return r.Handler.Handle(ctx, rec)
}

// again counts a line and reports whether to print it.
func (s *said) again(line string, now time.Time) (n int, print bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[line]
	if l == nil || now.Sub(l.last) > quietTime {
		// The oldest line is removed if the map is full.
		if len(s.lines) >= mostLines {
			var oldest string
			for line, l := range s.lines {
				if oldest == "" || l.last.Before(s.lines[oldest].last) {
					oldest = line
				}
			}
			delete(s.lines, oldest)
		}
		l = &saidLine{}
		s.lines[line] = l
	}
	l.last, l.n = now, l.n+1
	power := l.n
	for power%10 == 0 {
		power /= 10
	}
	return l.n, power == 1
}

// WithAttrs implements slog.Handler.
func (r *repeats) WithAttrs(list []slog.Attr) slog.Handler {
	prefix := r.prefix
	for _, a := range list {
		prefix += a.String() + "\x00"
	}
	return &repeats{r.Handler.WithAttrs(list), prefix, r.said}
}

// WithGroup implements slog.Handler.
func (r *repeats) WithGroup(name string) slog.Handler {
	return &repeats{r.Handler.WithGroup(name), r.prefix + name + ".", r.said}
}
