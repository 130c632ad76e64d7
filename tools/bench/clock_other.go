//go:build !linux

package bench

import "time"

var benchStart = time.Now()

// threadTime and processTime are the time by the clock where the system has no
// other in common with Linux.
func threadTime() time.Duration  { return time.Since(benchStart) }
func processTime() time.Duration { return time.Since(benchStart) }
