package experiment

import (
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/ui/live"
)

// TestLabProgress: runs that were there before make the others no faster.
func TestLabProgress(t *testing.T) {
	var errs strings.Builder
	c := &cli.Console{Err: &errs}
	c.SetUp()
	now := time.Now()
	clock := func() time.Time {
		now = now.Add(20 * time.Second)
		return now
	}
	o := live.ProgressOptions{Out: &errs, What: "demo", Unit: "runs", Now: clock}
	p := &labProgress{Progress: live.NewProgress(o), c: c, began: time.Now().Add(-20 * time.Second), stop: make(chan struct{})}
	p.ended(lab.Progress{Done: 3, Of: 12, Taken: 1, Hops: 8e6})
	p.close()
	const want = "demo: 25 %, 3 of 12 runs, 0.1/s, 1m30s left, 0.40 M hops/s\n"
	if errs.String() != want {
		t.Errorf("got %q, want %q", errs.String(), want)
	}
}
