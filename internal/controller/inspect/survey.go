package inspect

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// A Survey reads many switches again and again, round by round. It must not be
// used from two goroutines at once.
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

// NewSurvey makes a survey of these switches.
func NewSurvey(inspectors []*Inspector) *Survey {
	return &Survey{inspectors: inspectors, start: time.Now()}
}

// Inspectors lists the inspectors, one for each switch, in order.
func (s *Survey) Inspectors() []*Inspector { return s.inspectors }

// Round reads all switches, several at a time, and returns the results in their
// order. One that does not answer does not stop the others; all have until ctx
// is done.
func (s *Survey) Round(ctx context.Context) []Result {
	wall := time.Now()
	now := wall.Sub(s.start)
	results := make([]Result, len(s.inspectors))
	// More switches are read at a time than there are processors, since some of
	// them are waited for.
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
