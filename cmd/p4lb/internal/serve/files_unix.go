//go:build unix

package serve

import (
	"math"
	"syscall"
)

// maxFiles returns the maximum number of open files of the process.
func maxFiles() int {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil || r.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(r.Cur)
}
