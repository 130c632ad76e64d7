package sim

import (
	"time"
	"unsafe"
)

// hugePages moves the heap into huge pages while a network runs. A large network reads its
// memory at random, and finding the addresses of small pages takes a third of the time.
//
// Moving costs a millisecond for each huge page, or ten if memory is fragmented, so that
// only longer runs do it: first after firstMove packet-hops, then again each time the hops
// have quadrupled, because the heap may have grown. Each time it takes at most a fifth of
// the time since the run began.
type hugePages struct {
	began time.Time
	due   int64 // packet-hops before the next move
	size  int64 // bytes in huge pages after the last one
	err   error // error of the last move
}

// firstMove is the number of packet-hops before the heap moves, about one second of one
// core's time.
const firstMove = 1_000_000

// ran records the number of packet-hops so far, and moves the heap around an object
// if a move is due.
//
// Hostile input: none. The pointer serves as an address only.
func (h *hugePages) ran(hops int64, object unsafe.Pointer) {
	if h.began.IsZero() {
		h.began = time.Now()
	}
	if hops < max(h.due, firstMove) || h.err != nil {
		return
	}
	h.size, h.err = moveToHugePages(object, time.Since(h.began)/5)
	h.due = 4 * hops
}
