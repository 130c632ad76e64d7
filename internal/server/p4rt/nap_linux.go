package p4rt

import (
	"time"

	"golang.org/x/sys/unix"
)

// Nap sleeps for a short time, more precisely than time.Sleep.
func Nap(d time.Duration) {
	if d > 0 {
		ts := unix.NsecToTimespec(int64(d))
		unix.Nanosleep(&ts, nil)
	}
}
