//go:build !linux

package p4rt

import "time"

// Nap sleeps for a short time.
func Nap(d time.Duration) { time.Sleep(d) }
