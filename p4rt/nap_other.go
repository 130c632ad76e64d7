//go:build !linux

package p4rt

import "time"

func nap(d time.Duration) { time.Sleep(d) }
