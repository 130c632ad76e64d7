package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/p4lb/p4lb/lab"
)

// A labProgress shows how far an experiment is: a bar on a terminal, a line
// every ten seconds elsewhere.
type labProgress struct {
	c     *cli
	name  string
	live  bool // on a terminal
	began time.Time

	mu      sync.Mutex
	hidden  bool // something else has the terminal
	last    lab.Progress
	hops    int64
	printed time.Time
	stop    chan struct{}
	stopped sync.WaitGroup
}

const (
	redrawEvery = 200 * time.Millisecond
	printEvery  = 10 * time.Second
	barWidth    = 30
)

func newLabProgress(c *cli, name string) *labProgress {
	now := time.Now()
	p := &labProgress{c: c, name: name, live: isTerminal(c.err) && !c.logJSON, began: now, printed: now, stop: make(chan struct{})}
	if !c.quiet {
		p.stopped.Go(p.tick)
	}
	return p
}

// tick shows the progress now and then.
func (p *labProgress) tick() {
	every := printEvery
	if p.live {
		every = redrawEvery
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-t.C:
			p.mu.Lock()
			p.show()
			p.mu.Unlock()
		}
	}
}

// ended takes note of a run that has ended.
func (p *labProgress) ended(now lab.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = now
	p.hops += now.Hops
	if p.c.verbose {
		p.clear()
	}
	p.c.log.Debug("run", "name", now.Name, "took", now.Took.Round(time.Millisecond), "hops", now.Hops)
}

// show draws the bar, or prints a line.
func (p *labProgress) show() {
	if p.hidden || p.last.Of == 0 && !p.live {
		return
	}
	share := 0.0
	if p.last.Of > 0 {
		share = float64(p.last.Done) / float64(p.last.Of)
	}
	text := fmt.Sprintf("%3.0f%%  %d of %d runs%s", 100*share, p.last.Done, p.last.Of, p.left())
	if !p.live {
		fmt.Fprintf(p.c.err, "%s: %s\n", p.name, strings.TrimSpace(text))
		return
	}
	full := int(share * barWidth)
	fmt.Fprintf(p.c.err, "\r\x1b[K%s [%s%s] %s", p.name, strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), text)
}

// hide leaves the terminal to something else, or takes it back.
func (p *labProgress) hide(hidden bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hidden = hidden
}

// left estimates the time that is left, by the runs that were not there already.
func (p *labProgress) left() string {
	ran := p.last.Done - p.last.Taken
	if ran == 0 {
		return ""
	}
	per := time.Since(p.began) / time.Duration(ran)
	eta := per * time.Duration(p.last.Of-p.last.Done)
	rate := float64(p.hops) / time.Since(p.began).Seconds() / 1e6
	return fmt.Sprintf(", %.2f M hops/s, %v left", rate, eta.Round(time.Second))
}

func (p *labProgress) clear() {
	if p.live {
		fmt.Fprint(p.c.err, "\r\x1b[K")
	}
}

// close ends the showing.
func (p *labProgress) close() {
	close(p.stop)
	p.stopped.Wait()
	if !p.c.quiet {
		p.clear()
	}
}
