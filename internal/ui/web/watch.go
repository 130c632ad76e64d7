package web

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/ui/live"
)

// An Event is something that a reader wants to know of even if he has not looked
// at that moment.
type Event struct {
	At     int64  `json:"t"`           // time of the frame in us
	Wall   int64  `json:"w,omitempty"` // Unix time in ms; 0 where time is virtual
	Good   bool   `json:"good"`        // something is better again
	Switch string `json:"sw,omitempty"`
	Port   int    `json:"port,omitempty"`
	Text   string `json:"text"`
}

// A rule says when a value is worth an event: when it comes to high, and when it
// is back at low.
type rule struct {
	high, low float64
	frames    int // how many in a row are high
	began     func(v *live.Value) string
	over      string
}

// rules are those for quantities of ports.
var rules = map[string]rule{
	live.PortDown: {1, 0, 1,
		func(v *live.Value) string { return "the link is down" }, "the link is up again"},
	live.PortLoad: {0.95, 0.8, sustained,
		func(v *live.Value) string { return fmt.Sprintf("sends at %.0f %% of its rate", 100*v.Number) }, "sends below 80 % of its rate again"},
	live.PortFill: {0.9, 0.5, sustained,
		func(v *live.Value) string { return fmt.Sprintf("the queue is %.0f %% full", 100*v.Number) }, "the queue is half empty again"},
	"warned": {1, 0, 1,
		func(*live.Value) string { return "is expected to be paused" }, "is not expected to be paused any more"},
}

// sustained is for how many frames something must go on that comes and goes as
// traffic does.
const sustained = 4

// quietTime is how long a port drops nothing before that is worth telling.
const quietTime = 3 * time.Second

// most is how many events a frame may have: more than that tell nothing new.
const most = 20

// A watcher finds events in frames.
type watcher struct {
	raised map[string]bool
	high   map[string]int           // for how many frames a value has been
	drops  map[string]time.Duration // of ports that drop, when they last did
	seen   map[string]float64       // the drops of ports in the frame before
}

// look compares a frame with what was before.
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

// weight puts events about whole switches first.
func weight(e Event) int {
	if e.Port == 0 {
		return 1
	}
	return 0
}

// value is the event of one value, if it is one.
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

// dropping tells when a port begins to drop packets and when it has ended.
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
		return "drops no more packets", true, true
	}
	return "", false, false
}
