package web

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/ui/live"
)

// An Event is a change that readers should see even if they were not connected when
// it happened.
type Event struct {
	At     int64  `json:"t"`           // time of the frame in us
	Wall   int64  `json:"w,omitempty"` // Unix time in ms; 0 in virtual time
	Good   bool   `json:"good"`        // the change is an improvement
	Switch string `json:"sw,omitempty"`
	Port   int    `json:"port,omitempty"`
	Text   string `json:"text"`
}

// A rule defines when a value causes an event: when it reaches high for several
// frames, and when it returns to low.
type rule struct {
	high, low float64
	frames    int // number of consecutive frames at high
	began     func(v *live.Value) string
	over      string
}

// rules are the rules for quantities of ports.
var rules = map[string]rule{
	live.PortDown: {1, 0, 1,
		func(v *live.Value) string { return "the link is down" }, "the link is up again"},
	live.PortLoad: {0.95, 0.8, sustained,
		func(v *live.Value) string { return fmt.Sprintf("sends at %.0f %% of its rate", 100*v.Number) }, "sends below 80 % of its rate again"},
	live.PortFill: {0.9, 0.5, sustained,
		func(v *live.Value) string { return fmt.Sprintf("the queue is %.0f %% full", 100*v.Number) }, "the queue is half empty again"},
	"warned": {1, 0, 1,
		func(*live.Value) string { return "is predicted to pause" }, "is no longer predicted to pause"},
}

// sustained is the number of frames that a condition must last if it varies
// with traffic.
const sustained = 4

// quietTime is the time without drops after which an event reports their end.
const quietTime = 3 * time.Second

// most bounds the number of events per frame.
const most = 20

// A watcher finds events in frames.
type watcher struct {
	raised map[string]bool
	high   map[string]int           // number of consecutive frames of a value at high
	drops  map[string]time.Duration // last time of drops, for ports that drop
	seen   map[string]float64       // drop counters in the frame before
}

// look compares a frame with the one before and returns the events.
func (w *watcher) look(f *live.Frame) (list []Event) {
	if w.raised == nil {
		w.raised, w.high, w.drops, w.seen = map[string]bool{}, map[string]int{}, map[string]time.Duration{}, map[string]float64{}
	}
	for i := range f.Switches {
		sw := &f.Switches[i]
		if gone := sw.Err != ""; gone != w.raised[sw.Name] {
			w.raised[sw.Name] = gone
			text := "answers again"
			if gone {
				text = "does not answer: " + sw.Err
			}
			list = append(list, Event{Good: !gone, Switch: sw.Name, Text: text})
		}
		for j := range sw.Values {
			v := &sw.Values[j]
			if v.Port == 0 || v.Path != 0 {
				continue
			}
			if e, ok := w.value(f, sw, v); ok {
				list = append(list, e)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Event) int { return cmp.Compare(weight(b), weight(a)) })
	list = list[:min(len(list), most)]
	for i := range list {
		list[i].At = f.Time.Microseconds()
		if !f.Wall.IsZero() {
			list[i].Wall = f.Wall.UnixMilli()
		}
	}
	return list
}

// weight orders events of whole switches before those of ports.
func weight(e Event) int {
	if e.Port == 0 {
		return 1
	}
	return 0
}

// value returns the event of a value, if there is one.
func (w *watcher) value(f *live.Frame, sw *live.Switch, v *live.Value) (e Event, ok bool) {
	e = Event{Switch: sw.Name, Port: v.Port}
	key := fmt.Sprint(sw.Name, " ", v.Port, " ", v.Register)
	if v.Register == live.PortDrops {
		e.Text, e.Good, ok = w.dropping(key, f.Time, v)
		return e, ok
	}
	r, ok := rules[v.Register]
	if !ok {
		return e, false
	}
	if v.Number >= r.high {
		w.high[key]++
	} else {
		delete(w.high, key)
	}
	switch was := w.raised[key]; {
	case !was && w.high[key] >= r.frames:
		w.raised[key] = true
		e.Text = r.began(v)
	case was && v.Number <= r.low:
		w.raised[key] = false
		e.Text, e.Good = r.over, true
	default:
		return e, false
	}
	return e, true
}

// dropping reports when a port starts to drop packets and when it stops.
func (w *watcher) dropping(key string, now time.Duration, v *live.Value) (text string, good, ok bool) {
	before, known := w.seen[key]
	w.seen[key] = v.Number
	last, drops := w.drops[key]
	switch {
	case known && v.Number > before:
		w.drops[key] = now
		return fmt.Sprintf("drops packets: %s", v.Text), false, !drops
	case drops && now-last >= quietTime:
		delete(w.drops, key)
		return "has stopped dropping packets", true, true
	}
	return "", false, false
}
