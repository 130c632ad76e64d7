//go:build !js

package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// begin schedules the moments. It must be called before anything else is scheduled
// at time 0.
func (d *served) begin(ctx context.Context) {
	var turn func()
	turn = func() {
		if err := d.moment(ctx, d.r.net.Now()); err != nil {
			d.r.fail(err)
			return
		}
		d.r.net.At(d.r.net.Now()+d.o.Every, turn)
	}
	d.r.net.At(0, turn)
}

// moment stops virtual time until the controllers are ready.
func (d *served) moment(ctx context.Context, now time.Duration) error {
	d.now.Store(int64(now))
	d.mu.Lock()
	notices := d.notices
	d.mu.Unlock()
	for _, f := range notices {
		f()
	}
	d.mu.Lock()
	d.open, d.opened, d.heard = true, time.Now(), time.Now()
	d.moments++
	if d.moments > 1 { // a call before the first moment counts for the first moment
		for _, c := range d.callers {
			c.waits = false
		}
	}
	d.notify()
	err := d.wait(ctx, now, d.settled)
	if err == nil {
		d.open = false
		err = d.wait(ctx, now, d.quiet)
	}
	frames := d.frames
	d.frames, d.waiting = nil, 0
	d.mu.Unlock()
	for _, f := range frames {
		f.sw.PacketOut(f.frame)
	}
	for _, s := range d.at {
		if n := d.nodes[s.Name]; n.due != nil {
			n.poll()
		}
	}
	return err
}

// settled reports whether virtual time may continue, or when to check again. It
// returns an error that names the controller if one does not respond.
func (d *served) settled(now time.Duration) (ok bool, again time.Duration, err error) {
	first := d.moments == 1
	if d.o.Wait == 0 {
		if first && d.began.IsZero() {
			if len(d.sessions) == 0 {
				return d.awaited("controller has opened a stream to a switch")
			}
			d.began = time.Now()
		}
		left := time.Until(d.began.Add(time.Duration(float64(now) * d.o.Slow)))
		if busy := linger - time.Since(d.called); left <= 0 && time.Since(d.opened) < d.o.Timeout && (busy > 0 || d.queued > 0) {
			return false, max(busy, linger/4), nil
		}
		return left <= 0, left, nil
	}
	ready := 0
	var late []string
	for name, c := range d.callers {
		switch {
		case c.gone:
			return false, 0, fmt.Errorf("controller %s has gone at %v: it closed its connection while it waited for /next", name, now)
		case c.waits, c.left:
			ready++
		default:
			late = append(late, name)
		}
	}
	switch {
	case len(late) == 0 && (ready >= d.o.Wait || !first):
		return true, 0, nil
	case first && ready+len(late) < d.o.Wait:
		return d.awaited(fmt.Sprintf("more than %d of %d controllers have called http://%s/next", ready+len(late), d.o.Wait, d.listen[0].Addr()))
	}
	slices.Sort(late)
	want := fmt.Sprintf("want a call of http://%s/next?name=%s, or of /done at its end", d.listen[0].Addr(), late[0])
	if left := d.o.Timeout - time.Since(d.heard); left > 0 || d.working() {
		if stands := time.Since(d.opened); stands > standstill*d.o.Timeout && d.stood != d.moments {
			d.stood = d.moments
			d.o.Log(fmt.Sprintf("the clock has stood at %v for %v: requests arrive, but controller %s has not finished: %s", now, stands.Round(time.Millisecond), strings.Join(late, ", "), want))
		}
		return false, max(left, d.o.Timeout/4), nil
	}
	return false, 0, fmt.Errorf("controller %s has not answered for %v at %v: %s", strings.Join(late, ", "), d.o.Timeout, now, want)
}

// standstill is the number of timeouts after which a moment of busy controllers is
// reported. A controller may take long to write many entries, so it is no error.
const standstill = 10

// linger is how long a moment waits for the next request of a busy controller if virtual
// time is behind real time.
const linger = 2 * time.Millisecond

// awaited decides whether to keep waiting for controllers at the first moment.
func (d *served) awaited(what string) (bool, time.Duration, error) {
	left := d.o.Start - time.Since(d.heard)
	if left > 0 {
		return false, left, nil
	}
	return false, 0, fmt.Errorf("no %s within %v", what, d.o.Start)
}

// working reports whether the server processes a call and does not wait for its
// client.
func (d *served) working() bool {
	for c := range d.active {
		if !c.Stream {
			return true
		}
	}
	return false
}

// quiet reports whether no call is in progress. If a client does not read its
// answer, the error names it.
func (d *served) quiet(now time.Duration) (ok bool, again time.Duration, err error) {
	again = d.o.Timeout
	for c := range d.active {
		left := d.o.Timeout - time.Since(c.began)
		if c.Stream && left <= 0 {
			return false, 0, fmt.Errorf("the controller at %s does not take in the answer to its %s to %s at %v: no end within %v", c.Client, c.Method, c.sw, now, d.o.Timeout)
		}
		again = max(min(again, left), time.Millisecond)
	}
	return len(d.active) == 0, again, nil
}
