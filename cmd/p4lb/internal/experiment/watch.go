package experiment

import (
	"context"
	"io"
	"time"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/view"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/text/plain"
	"github.com/p4lb/p4lb/internal/ui/live"
	"github.com/p4lb/p4lb/internal/ui/web"
)

// frameEvery is the shortest time for which a frame is shown.
const frameEvery = 100 * time.Millisecond

// screen shows the first run of an experiment while it runs. A run that is ahead of the screen
// waits for it, and therefore stops while the screen is paused. When the user leaves the screen,
// the run continues alone. The returned function waits until then.
func (j *labJob) screen(ctx context.Context, r *lab.Runner, x *spec.Experiment, bar *labProgress) (leave func() error) {
	rounds, left, ended := make(chan *view.Round), make(chan struct{}), make(chan struct{})
	r.Record = lab.Watch(j.watchEvery(), nil, func(list []*inspect.Snapshot) error {
		select {
		case rounds <- view.RoundOf(list, x.Name):
		case <-left:
		case <-ctx.Done():
		}
		return nil
	})
	frames := live.SourceFunc(func(ctx context.Context) (*live.Frame, error) {
		if err := plain.Pause(ctx, frameEvery); err != nil {
			return nil, err
		}
		select {
		case r := <-rounds:
			return r.Frame(j.c.Verbose), nil
		case <-ended:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	bar.Hold(true)
	var err error
	go func() {
		defer close(left)
		err = live.Watch(ctx, frames, live.Options{NoColor: bool(!j.c.Paint)})
		bar.Hold(false)
	}()
	return func() error {
		close(ended)
		<-left
		return err
	}
}

// endWithin bounds the wait for open pages to receive the last frame.
const endWithin = 5 * time.Second

// show serves the page of the first run of an experiment while it runs. While a browser
// is connected, the run waits for the page, which shows frameEvery; otherwise it runs at
// full speed. The page shows the end of the run until the returned function is called.
func (j *labJob) show(ctx context.Context, r *lab.Runner, x *spec.Experiment) (leave func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var failure error
	var page *web.Server
	exporter := &live.Exporter{}
	at := j.page
	var charts *drawing
	begin := func(v *lab.View) {
		page = at.Serve(ctx, j.c, v.Topology, exporter, func(err error) { failure = err })
		charts = &drawing{view: v, page: page}
		if j.listenWait {
			page.Await(ctx) // an error ends the run too
		}
	}
	r.Record = lab.Watch(j.watchEvery(), begin, func(list []*inspect.Snapshot) error {
		f := view.RoundOf(list, x.Name).PageFrame()
		f.Virtual = true
		exporter.Show(f)
		page.Show(f)
		if page.Watched() {
			charts.draw(false)
			plain.Pause(ctx, frameEvery)
		}
		return nil
	})
	return func() error {
		defer cancel()
		if page != nil {
			charts.draw(true)
			page.End()
			for until := time.Now().Add(endWithin); page.Watched() && time.Now().Before(until) && ctx.Err() == nil; {
				plain.Pause(ctx, frameEvery)
			}
		}
		return failure
	}
}

// watchEvery returns the interval of the snapshots on the screen or the page; 0: lab's.
func (j *labJob) watchEvery() time.Duration {
	if !j.everyGiven {
		return 0
	}
	return j.every
}

// A drawing draws the figures of collectives on the page of a run.
type drawing struct {
	view *lab.View
	page *web.Server
	next time.Time // the earliest time of the next figures
}

// drawEvery is the shortest interval between updates of figures. Figures of large runs take at
// most a tenth of the run time.
const drawEvery = 500 * time.Millisecond

// draw draws the figures if they are due, or at once if they are the last ones.
func (d *drawing) draw(last bool) {
	began := time.Now()
	if d.view.Progress == nil || !last && began.Before(d.next) {
		return
	}
	p := d.view.Progress()
	figures := make([]web.Figure, len(p.Figures))
	for i, f := range p.Figures {
		figures[i] = web.Figure{Title: f.Title, About: f.About, Wide: f.Wide, SVG: f.Inline(), Keys: []web.Key{}}
		for _, s := range f.Series {
			figures[i].Keys = append(figures[i].Keys, web.Key{Label: s.Label, Colour: s.Colour()})
		}
	}
	d.page.Draw(p.Text, figures)
	d.next = time.Now().Add(max(drawEvery, 10*time.Since(began)))
}
