//go:build !linux

package bench

import "time"

var benchStart = time.Now()

// threadTime and processTime are the elapsed time on this system.
func threadTime() time.Duration  { return time.Since(benchStart) }
func processTime() time.Duration { return time.Since(benchStart) }
