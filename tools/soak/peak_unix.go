//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
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

// worked is how long processors have worked for a process that runs, or how long
// ago it began where that is not to be had.
func worked(pid int, began time.Time) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if err != nil || len(fields) < 13 {
		return time.Since(began)
	}
	var user, system time.Duration
	fmt.Sscan(fields[11], &user)
	fmt.Sscan(fields[12], &system)
	return (user + system) * (time.Second / 100)
}

// alive reports whether a process is there, and not merely waited for.
func alive(pid string) bool {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	return err == nil && len(fields) > 0 && fields[0] != "Z"
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
