package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestRepeats prints the 1st, 10th and 100th of repeated lines, all different
// lines, lines below warnings, and a repeated line again after quietTime.
func TestRepeats(t *testing.T) {
	var b strings.Builder
	h := newRepeats(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: dropTime}))
	now := time.Unix(1e9, 0)
	say := func(h slog.Handler, level slog.Level, text string, sw int) {
		rec := slog.NewRecord(now, level, text, 0)
		rec.AddAttrs(slog.Int("switch", sw))
		if err := h.Handle(context.Background(), rec); err != nil {
			t.Fatal(err)
		}
	}
	want := func(lines ...string) {
		t.Helper()
		if got := strings.TrimSuffix(b.String(), "\n"); got != strings.Join(lines, "\n") {
			t.Errorf("printed\n%s\nwant\n%s", got, strings.Join(lines, "\n"))
		}
		b.Reset()
	}
	for range 500 {
		say(h, slog.LevelWarn, "no", 1)
		say(h, slog.LevelWarn, "no", 2)
		now = now.Add(time.Second)
	}
	var lines []string
	for _, times := range []string{"", " times=10", " times=100"} {
		for sw := 1; sw <= 2; sw++ {
			lines = append(lines, fmt.Sprintf("level=WARN msg=no switch=%d%s", sw, times))
		}
	}
	want(lines...)
	now = now.Add(quietTime)
	say(h, slog.LevelWarn, "no", 1)
	want("level=WARN msg=no switch=1")
	say(h.WithAttrs([]slog.Attr{slog.Int("run", 3)}), slog.LevelWarn, "no", 1)
	say(h.WithGroup("g"), slog.LevelWarn, "no", 1)
	want("level=WARN msg=no run=3 switch=1", "level=WARN msg=no g.switch=1")
	say(h, slog.LevelInfo, "yes", 1)
	say(h, slog.LevelInfo, "yes", 1)
	want("level=INFO msg=yes switch=1", "level=INFO msg=yes switch=1")
	for n := range 10 * mostLines {
		say(h, slog.LevelError, "each", n)
	}
	if len(h.lines) != mostLines {
		t.Errorf("%d lines are remembered, want %d", len(h.lines), mostLines)
	}
	b.Reset()
	say(h, slog.LevelError, "each", 10*mostLines-1)
	want()
}
