package cli

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// A line that is said again within quietTime is a repeat. Of the lines that were said
// lately mostLines are remembered.
const (
	quietTime = 10 * time.Second
	mostLines = 256
)

// repeats hands warnings and errors on that were not said lately. What goes wrong with
// every packet is otherwise thousands of lines a second: of a line that is repeated
// the 10th, the 100th, the 1,000th is printed, with how often it was said.
type repeats struct {
	slog.Handler
	prefix string // what With… has added
	*said
}

// said is what handlers that come from one share.
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

// again counts a line, and tells whether it is to be printed.
func (s *said) again(line string, now time.Time) (n int, print bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[line]
	if l == nil || now.Sub(l.last) > quietTime {
		// The oldest line makes room.
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
