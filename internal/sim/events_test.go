package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A noted event records its execution and schedules other events.
type noted struct {
	event
	id int
	f  func(id int)
}

func (e *noted) fire()     { e.f(e.id) }
func (e *noted) soon(bool) {}

// TestSchedule adds and cancels events at random, also during events, and compares with a
// list that is sorted each time.
func TestSchedule(t *testing.T) {
	type entry struct {
		at time.Duration
		id int
	}
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var s schedule
		var list []entry // in the order of planning
		events := map[int]*noted{}
		var now time.Duration
		add := func() {
			e := &noted{id: len(events)}
			e.what, events[e.id] = e, e
			at := now + time.Duration(rnd.IntN([]int{20, 3000, 1 << 21}[rnd.IntN(3)]))
			s.plan(&e.event, at)
			list = append(list, entry{at, e.id})
		}
		drop := func() {
			if len(list) == 0 {
				return
			}
			i := rnd.IntN(len(list))
			s.cancel(&events[list[i].id].event)
			list = slices.Delete(list, i, i+1)
		}
		for range []int{30, 1000}[seed%2] { // with 1,000, the present bucket overflows into its heap
			add()
		}
		for steps := 0; ; steps++ {
			e, at := s.pop(never)
			if e == nil {
				break
			}
			first := slices.MinFunc(list, func(a, b entry) int { return int(a.at - b.at) })
			if at < now || at != first.at || e.what.(*noted).id != first.id {
				t.Fatalf("seed %d: event %d at %v, want %d at %v", seed, e.what.(*noted).id, at, first.id, first.at)
			}
			now = at
			list = slices.DeleteFunc(list, func(x entry) bool { return x.id == first.id })
			for range rnd.IntN(4) {
				if rnd.IntN(4) == 0 {
					drop()
				} else if steps < 2000 {
					add()
				}
			}
		}
		if len(list) != 0 {
			t.Fatalf("seed %d: %d events never happened", seed, len(list))
		}
	}
}

// TestTimer sets a timer later, earlier, and stops it.
func TestTimer(t *testing.T) {
	n := &Network{}
	var rang []time.Duration
	timer := n.NewTimer(func() { rang = append(rang, n.now) })
	timer.Set(10)
	timer.Set(30)
	n.At(20, func() {
		if timer.deadline == never {
			t.Error("the timer does not run at 20")
		}
	})
	n.At(31, func() { timer.Set(50); timer.Set(40) })
	n.At(41, func() { timer.Set(60); timer.Stop() })
	n.At(70, func() { timer.after(5) })
	if err := n.Run(Forever); err != nil {
		t.Fatal(err)
	}
	if want := []time.Duration{30, 40, 75}; !slices.Equal(rang, want) {
		t.Errorf("the timer rang at %v, want %v", rang, want)
	}
}

// TestRing: a ring returns values in the order of their arrival, however it is filled
// and emptied meanwhile. A host's list of waiters for its NIC, which moved up
// as each had its turn, took the square of their number.
func TestRing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var r ring[int]
	in, out := 0, 0
	for range 100 {
		for range random.IntN(2000) {
			r.push(in)
			in++
		}
		if r.n > 0 && *r.first() != out {
			t.Fatalf("%d is first, want %d", *r.first(), out)
		}
		for range random.IntN(int(r.n) + 1) {
			if got := r.pop(); got != out {
				t.Fatalf("%d comes out, want %d", got, out)
			}
			out++
		}
		all := out
		r.each(func(v *int) {
			if *v != all {
				t.Fatalf("%d is in it, want %d", *v, all)
			}
			all++
		})
		if all != in {
			t.Fatalf("%d are in it, want %d", all-out, in-out)
		}
	}
}
