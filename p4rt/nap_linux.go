package p4rt

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps for a short time, more exactly than time.Sleep does.
func nap(d time.Duration) {
	if d > 0 {
		ts := unix.NsecToTimespec(int64(d))
		unix.Nanosleep(&ts, nil)
	}
}
