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

// peak returns the peak memory of a finished process in MiB. It includes the
// memory of this process at the time of the fork.
func peak(s *os.ProcessState) int64 {
	usage, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" { // bytes on darwin
		return int64(usage.Maxrss) >> 20
	}
	return int64(usage.Maxrss) >> 10
}

// worked returns the CPU time of a running process, or the time since it began
// if that is not available.
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

// alive reports whether a process is running and not a zombie.
func alive(pid string) bool {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	return err == nil && len(fields) > 0 && fields[0] != "Z"
}

// residentPeak returns the peak memory of a running process in MiB, or 0 if
// that is not available.
func residentPeak(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, found := strings.Cut(string(text), "VmHWM:")
	var n int64
	if err == nil && found {
		fmt.Sscan(rest, &n)
	}
	return n >> 10
}
