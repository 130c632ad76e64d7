package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime returns the CPU time of the calling thread, and processTime the CPU
// time of all threads of the process. Time of other processes does not count.
func threadTime() time.Duration  { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }
func processTime() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		panic(err) // supported since Linux 2.6.12
	}
	return time.Duration(t.Nano())
}
