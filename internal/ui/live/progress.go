package live

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ProgressOptions configure a Progress.
type ProgressOptions struct {
	Out      io.Writer
	Terminal bool   // Out is a terminal: draw a moving bar instead of printing lines
	What     string // the activity, such as deploy
	Unit     string // unit of the work in the plural, such as switches
	Total    int    // amount of work in Unit; 0 if still unknown
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// The interval of a Progress's lines.
const (
	barEvery  = 100 * time.Millisecond
	lineEvery = 10 * time.Second
)

// barWidth is the length of the bar in columns.
const barWidth = 24

// A Progress prints the progress of a long task: percent, rate and remaining time. Its
// methods may be called concurrently.
type Progress struct {
	o     ProgressOptions
	mu    sync.Mutex
	start time.Time
	last  time.Time // time of the last output
	done  int
	had   int // amount of work that existed before the start
	note  string
	drawn bool // a bar is on the current line
	held  bool
}

// NewProgress starts to show the progress of a task.
func NewProgress(o ProgressOptions) *Progress {
	if o.Now == nil {
		o.Now = time.Now
	}
	now := o.Now()
	return &Progress{o: o, start: now, last: now}
}

// Set sets the amount of finished work and a short description of the current step.
func (p *Progress) Set(done int, note string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.note = done, note
	p.tick()
}

// Of sets the total amount of work and the amount that existed before. Rate and
// remaining time exclude the latter.
func (p *Progress) Of(total, had int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.o.Total, p.had = total, had
}

// Tick updates the elapsed time between rare calls of Set.
func (p *Progress) Tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tick()
}

// Hold stops drawing, so that other output can use the terminal, or resumes it.
func (p *Progress) Hold(held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = held
}

func (p *Progress) tick() {
	now := p.o.Now()
	every := lineEvery
	if p.o.Terminal {
		every = barEvery
	}
	if now.Sub(p.last) >= every && !p.held {
		p.last = now
		p.say(now)
	}
}

// End removes the bar from the terminal.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn {
		io.WriteString(p.o.Out, "\r\x1b[K")
		p.drawn = false
	}
}

func (p *Progress) say(now time.Time) {
	text := strings.Join(p.facts(now.Sub(p.start)), ", ")
	if !p.o.Terminal {
		fmt.Fprintf(p.o.Out, "%s: %s\n", p.o.What, text)
		return
	}
	fmt.Fprintf(p.o.Out, "\r%s %s %s\x1b[K", p.o.What, bar(p.share()), text)
	p.drawn = true
}

// share returns the finished share of the work, or -1 if it is unknown.
func (p *Progress) share() float64 {
	if p.o.Total <= 0 {
		return -1
	}
	return min(1, float64(p.done)/float64(p.o.Total))
}

// facts returns the known values to print.
func (p *Progress) facts(elapsed time.Duration) []string {
	var facts []string
	if share := p.share(); share >= 0 {
		facts = append(facts, fmt.Sprintf("%.0f %%", math.Floor(100*share)), fmt.Sprintf("%d of %d %s", p.done, p.o.Total, p.o.Unit))
	} else {
		facts = append(facts, fmt.Sprintf("%d %s", p.done, p.o.Unit))
	}
	rate := float64(p.done-p.had) / elapsed.Seconds()
	if p.done > p.had && elapsed > 0 {
		facts = append(facts, strconv.FormatFloat(math.Round(rate*10)/10, 'f', -1, 64)+"/s")
		if p.o.Total > p.done {
			left := time.Duration(float64(p.o.Total-p.done) / rate * float64(time.Second))
			facts = append(facts, left.Round(time.Second).String()+" left")
		}
	}
	if p.note != "" {
		facts = append(facts, p.note)
	}
	return facts
}

func bar(share float64) string {
	full := int(max(0, share) * barWidth)
	return strings.Repeat("█", full) + strings.Repeat("░", barWidth-full)
}
