package experiment

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/ui/live"
)

// A labProgress shows how far an experiment is, also during long runs.
type labProgress struct {
	*live.Progress
	c     *cli.Console
	began time.Time

	mu      sync.Mutex
	hops    int64
	stop    chan struct{}
	stopped sync.WaitGroup
}

const tickEvery = 200 * time.Millisecond

func newLabProgress(c *cli.Console, name string) *labProgress {
	o := live.ProgressOptions{Out: c.Err, Terminal: cli.IsTerminal(c.Err) && !c.LogJSON, What: name, Unit: "runs"}
	if c.Quiet {
		o.Out = io.Discard
	}
	p := &labProgress{Progress: live.NewProgress(o), c: c, began: time.Now(), stop: make(chan struct{})}
	p.stopped.Go(p.tick)
	return p
}

// tick shows the progress while runs continue.
func (p *labProgress) tick() {
	t := time.NewTicker(tickEvery)
	defer t.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-t.C:
			p.Tick()
		}
	}
}

// ended records a finished run.
func (p *labProgress) ended(now lab.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hops += now.Hops
	if p.c.Verbose {
		p.End()
	}
	p.c.Log.Debug("run", "name", now.Name, "took", now.Took.Round(time.Millisecond), "hops", now.Hops)
	p.Of(now.Of, now.Taken)
	p.Set(now.Done, fmt.Sprintf("%.2f M hops/s", float64(p.hops)/time.Since(p.began).Seconds()/1e6))
}

// close stops the display.
func (p *labProgress) close() {
	close(p.stop)
	p.stopped.Wait()
	p.End()
}
