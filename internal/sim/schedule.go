package sim

import (
	"math"
	"math/bits"
	"slices"
	"time"
	"unsafe"

	"github.com/p4lb/p4lb/internal/dataplane/asm"
)

// A schedule is a calendar queue: a ring of buckets, each of which covers a span of
// time. Buckets hold the plans of the near future unsorted; only the current bucket
// is sorted. Plans beyond the end of the ring wait in a heap. So the cost of a plan
// does not depend on the size of the network, whereas a single heap would become
// deeper. Plans are always taken in the order of time and number, whatever the
// width of the buckets.
//
// The width follows the traffic: it changes when buckets hold too many plans to sort quickly, or
// too few to justify a bucket.
type schedule struct {
	now   []plan // plans of the current bucket and before, next one last
	added heap   // further plans of the current bucket, if now is long
	day   int64  // number of the current bucket: time >> shift
	shift uint   // a bucket spans 1<<shift ns
	ring  [][]plan
	some  [days / 64]uint64 // bitmap of the buckets that are not empty
	n     int               // number of plans in the ring
	later heap

	fetches       bool // prefetch the data of the next events; not needed in a small network, which fits in the cache
	taken, opened int  // plans taken and buckets opened since the last check of the width
	seq           uint64
}

// days is the number of buckets of the ring.
const days = 1024

// A bucket should have about this many plans.
const (
	fewest  = 4
	most    = 20
	watched = 256 // number of buckets between two checks of the width
)

// firstShift is the initial width: 128 ns.
const firstShift = 7

// next draws the number that orders events of the same time.
func (s *schedule) next() uint64 {
	s.seq++
	return s.seq
}

// plan makes an event happen at a time.
func (s *schedule) plan(e *event, at time.Duration) { s.planAs(e, at, s.next()) }

// planAs plans an event with a number drawn earlier. Among events at the same time, lower numbers
// come first.
func (s *schedule) planAs(e *event, at time.Duration, seq uint64) {
	e.seq = seq
	s.put(plan{at, seq, e})
}

func (s *schedule) put(p plan) {
	switch ahead := int64(p.at)>>s.shift - s.day; {
	case ahead <= 0:
		s.insert(p)
	case ahead < days && s.ring != nil:
		i := int(int64(p.at)>>s.shift) & (days - 1)
		s.ring[i] = append(s.ring[i], p)
		s.some[i/64] |= 1 << (i % 64)
		s.n++
	default:
		s.later.push(p)
	}
}

// maxMoved is the largest number of plans that an insertion moves in the current bucket. Further
// plans go into a heap: a million flows may start at the same time.
const maxMoved = 256

// insert adds a plan to the current bucket.
func (s *schedule) insert(p plan) {
	i := len(s.now)
	if i >= maxMoved {
		s.added.push(p)
		return
	}
	s.now = append(s.now, p)
	if i > 0 && !p.before(&s.now[i-1]) {
		i, _ = slices.BinarySearchFunc(s.now[:i], p, latestFirst)
		copy(s.now[i+1:], s.now[i:])
		s.now[i] = p
	}
}

// latestFirst orders the plans of the current bucket.
func latestFirst(a, b plan) int {
	if a.before(&b) {
		return 1
	}
	return -1
}

// cancel cancels an event, which need not be planned.
func (s *schedule) cancel(e *event) { e.seq = 0 }

// pop removes and returns the first event, if it happens by the given time.
func (s *schedule) pop(until time.Duration) (e *event, at time.Duration) {
	for {
		last := len(s.now) - 1
		if len(s.added) > 0 && (last < 0 || s.added[0].before(&s.now[last])) {
			if s.added[0].at > until {
				return nil, 0
			}
			if p := s.added.pop(); p.ev.seq == p.seq {
				p.ev.seq = 0
				return p.ev, p.at
			}
			continue
		}
		if last < 0 {
			if !s.open(until) {
				return nil, 0
			}
			continue
		}
		p := &s.now[last]
		if p.at > until {
			return nil, 0
		}
		s.now = s.now[:last]
		if p.ev.seq == p.seq {
			p.ev.seq = 0
			if last > 0 && s.fetches {
				s.fetch(last)
			}
			return p.ev, p.at
		}
	}
}

// fetch prefetches the data of the next events. n events wait in the current bucket.
//
// Hostile input: none. The events are Go pointers, only prefetched.
func (s *schedule) fetch(n int) {
	if n >= 3 {
		asm.Prefetch(unsafe.Pointer(s.now[n-3].ev))
	}
	if n >= 2 {
		s.now[n-2].ev.what.soon(false)
	}
	s.now[n-1].ev.what.soon(true)
}

// first returns the time of the next plan, or never.
func (s *schedule) first() time.Duration {
	at := never
	if n := len(s.now); n > 0 {
		at = s.now[n-1].at
	}
	if len(s.added) > 0 {
		at = min(at, s.added[0].at)
	}
	if at < never {
		return at
	}
	if s.n > 0 {
		for _, p := range s.ring[int(s.day+s.ahead())&(days-1)] {
			at = min(at, p.at)
		}
	}
	if len(s.later) > 0 {
		at = min(at, s.later[0].at)
	}
	return at
}

// open makes the next non-empty bucket the current one. It returns false if no such bucket begins
// by the given time.
func (s *schedule) open(until time.Duration) bool {
	if s.ring == nil {
		s.ring = make([][]plan, days)
		s.shift, s.day = firstShift, -1
		s.refile(nil)
	}
	if s.opened == watched {
		s.adapt()
	}
	next := int64(math.MaxInt64)
	if s.n > 0 {
		next = s.day + s.ahead()
	}
	if len(s.later) > 0 {
		next = min(next, int64(s.later[0].at)>>s.shift)
	}
	if next == math.MaxInt64 || next > int64(until)>>s.shift {
		return false
	}
	s.day = next
	i := int(s.day) & (days - 1)
	s.now, s.ring[i] = s.ring[i], emptied(s.now)
	s.some[i/64] &^= 1 << (i % 64)
	s.n -= len(s.now)
	for len(s.later) > 0 && int64(s.later[0].at)>>s.shift-s.day < days {
		p := s.later.pop()
		if int64(p.at)>>s.shift <= s.day {
			s.now = append(s.now, p)
		} else {
			s.put(p)
		}
	}
	s.taken += len(s.now)
	s.opened++
	s.sort()
	return true
}

// maxSpare is the capacity up to which the array of an empty bucket is kept. A million timers may
// once fill all buckets; later the width of the buckets has followed.
const maxSpare = 8 * most

// emptied returns the array of a bucket for further use, or nil.
func emptied(bucket []plan) []plan {
	if cap(bucket) > maxSpare {
		return nil
	}
	return bucket[:0]
}

// sort sorts the current bucket, which usually holds few plans.
func (s *schedule) sort() {
	if len(s.now) > 2*most {
		slices.SortFunc(s.now, latestFirst)
		return
	}
	for i := 1; i < len(s.now); i++ {
		p, j := s.now[i], i
		for ; j > 0 && s.now[j-1].before(&p); j-- {
			s.now[j] = s.now[j-1]
		}
		s.now[j] = p
	}
}

// ahead returns the distance from the current bucket to the next non-empty one. The ring must not
// be empty.
func (s *schedule) ahead() int64 {
	at := int(s.day+1) & (days - 1)
	i := at / 64
	if w := s.some[i] >> (at % 64); w != 0 {
		return 1 + int64(bits.TrailingZeros64(w))
	}
	gone := 64 - at%64
	for {
		i = (i + 1) % len(s.some)
		if w := s.some[i]; w != 0 {
			return 1 + int64(gone+bits.TrailingZeros64(w))
		}
		gone += 64
	}
}

// adapt changes the width of the buckets if they have recently held too many or too few plans.
// The current bucket must be empty.
func (s *schedule) adapt() {
	mean := s.taken / s.opened
	s.taken, s.opened = 0, 0
	before, shift := s.shift, s.shift
	switch {
	case mean > most && shift > 0:
		shift--
	case mean < fewest && shift < 20:
		shift++
	default:
		return
	}
	all := make([]plan, 0, s.n)
	for i, b := range s.ring {
		all = append(all, b...)
		s.ring[i] = emptied(b)
	}
	s.some, s.n = [days / 64]uint64{}, 0
	s.day = ((s.day+1)<<before)>>shift - 1
	s.shift = shift
	s.refile(all)
}

// refile moves the given plans, and those in the heap, to their buckets.
func (s *schedule) refile(plans []plan) {
	later := s.later
	s.later = nil
	for _, p := range plans {
		s.put(p)
	}
	for _, p := range later {
		s.put(p)
	}
}

// A heap is a heap of plans in which each node has four children. It is half as deep as a binary
// heap, and the children share cache lines.
type heap []plan

const children = 4

func (h *heap) push(p plan) {
	*h = append(*h, p)
	s := *h
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / children
		if !p.before(&s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = p
}

// pop removes and returns the first plan. The heap must not be empty.
func (h *heap) pop() plan {
	s := *h
	top, last := s[0], len(s)-1
	p := s[last]
	s[last].ev = nil
	s = s[:last]
	*h = s
	if last == 0 {
		return top
	}
	i := 0
	for {
		first := i*children + 1
		if first >= len(s) {
			break
		}
		least := first
		for c := first + 1; c < min(first+children, len(s)); c++ {
			if s[c].before(&s[least]) {
				least = c
			}
		}
		if !s[least].before(&p) {
			break
		}
		s[i] = s[least]
		i = least
	}
	s[i] = p
	return top
}

// A handler is the action of an event. Shortly before the event, soon is called twice, the second
// time with next set. It prefetches the data that fire will read, because a large network does
// not fit in the cache.
type handler interface {
	fire()
	soon(next bool)
}

// An event happens at a time. It is a field of the object that it concerns, so that planning
// allocates nothing. It can be planned only once at a time.
type event struct {
	seq  uint64 // number of its plan; 0: not planned
	what handler
}

func (e *event) planned() bool { return e.seq != 0 }

// A plan is the entry of an event in the schedule. Of two plans at the same time, the one with
// the smaller number comes first. If the event's number differs, the plan has been cancelled.
type plan struct {
	at  time.Duration
	seq uint64
	ev  *event
}

func (a *plan) before(b *plan) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

// never is the deadline of a stopped timer.
const never time.Duration = math.MaxInt64
