//go:build !unix

package main

import (
	"os"
	"time"
)

// peak is not available on this system.
func peak(*os.ProcessState) int64 { return 0 }

func worked(_ int, began time.Time) time.Duration { return time.Since(began) }

func alive(string) bool { return false }

func residentPeak(int) int64 { return 0 }
