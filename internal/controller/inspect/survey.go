package inspect

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// A Survey repeatedly reads many switches, in rounds. It is not safe for concurrent use.
type Survey struct {
	inspectors []*Inspector
	start      time.Time
}

// A Result is the outcome of reading one switch: a snapshot or an error.
type Result struct {
	Switch   string
	Snapshot *Snapshot
	Err      error
}

// NewSurvey returns a survey of the inspectors' switches.
func NewSurvey(inspectors []*Inspector) *Survey {
	return &Survey{inspectors: inspectors, start: time.Now()}
}

// Inspectors lists the inspectors, one for each switch, in order.
func (s *Survey) Inspectors() []*Inspector { return s.inspectors }

// Round reads all switches, several at a time, and returns the results in order. A switch that
// does not answer does not delay the others, and all end when ctx is done.
func (s *Survey) Round(ctx context.Context) []Result {
	wall := time.Now()
	now := wall.Sub(s.start)
	results := make([]Result, len(s.inspectors))
	// Most of the time is spent waiting, so more switches are read in parallel than there are
	// processors.
	places := make(chan struct{}, 4*runtime.GOMAXPROCS(0))
	var work sync.WaitGroup
	for i, in := range s.inspectors {
		places <- struct{}{}
		work.Go(func() {
			defer func() { <-places }()
			snapshot, err := in.Snapshot(ctx)
			if err == nil {
				snapshot.Time, snapshot.Wall = now, wall
			}
			results[i] = Result{in.node.Name, snapshot, err}
		})
	}
	work.Wait()
	return results
}
