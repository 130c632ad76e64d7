//go:build !linux

package deployed

import (
	"os"
	"syscall"
)

// processStart is "" where there is no process of that number. When it began is
// not known here.
func processStart(pid int) string {
	p, err := os.FindProcess(pid)
	if err != nil || p.Signal(syscall.Signal(0)) != nil {
		return ""
	}
	return "running"
}
