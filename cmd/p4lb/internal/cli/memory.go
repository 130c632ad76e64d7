package cli

import (
	"bufio"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// LimitMemory has the collector work harder, instead of the process die, when
// the heap comes near to what the machine has. The variable GOMEMLIMIT says it
// otherwise.
func LimitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		if n := machineMemory(); n > 0 {
			debug.SetMemoryLimit(n / 10 * 8)
		}
	}
}

// earlyPercent is how much the heap may grow until the first collection, and
// usualPercent from then on.
const earlyPercent, usualPercent = 1000, 100

// CollectLater keeps the collector from work on what a short verb throws away
// as a whole: the first collection is at 40 MB instead of 4. From then on the
// heap grows as always. The variable GOGC says it otherwise.
func CollectLater() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(earlyPercent)
	runtime.AddCleanup(new([16]byte), func(struct{}) {
		if now := debug.SetGCPercent(usualPercent); now != earlyPercent {
			debug.SetGCPercent(now) // a verb has its own
		}
	}, struct{}{})
}

// MemoryLimit is what the process may take; 0 is no limit.
func MemoryLimit() int64 {
	n := debug.SetMemoryLimit(-1)
	if n == math.MaxInt64 {
		return 0
	}
	return n
}

// machineMemory is what the machine, or the control group that the process is
// in, has in bytes; 0 where nothing says so.
func machineMemory() int64 {
	total := int64(0)
	if f, err := os.Open("/proc/meminfo"); err == nil {
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if fields := strings.Fields(lines.Text()); len(fields) == 3 && fields[0] == "MemTotal:" {
				kib, _ := strconv.ParseInt(fields[1], 10, 64)
				total = kib << 10
				break
			}
		}
	}
	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 && (total == 0 || n < total) {
			total = n
		}
	}
	return total
}
