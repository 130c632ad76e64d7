//go:build unix

package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
)

// peak is the most memory that a process has had, in MiB. It counts what this
// process had when it began that one.
func peak(s *os.ProcessState) int64 {
	usage, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" { // in bytes there
		return int64(usage.Maxrss) >> 20
	}
	return int64(usage.Maxrss) >> 10
}

// residentPeak is the most memory that a process has had that still runs, in
// MiB; 0 where that is not to be had.
func residentPeak(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, found := strings.Cut(string(text), "VmHWM:")
	var n int64
	if err == nil && found {
		fmt.Sscan(rest, &n)
	}
	return n >> 10
}
