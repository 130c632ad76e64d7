package cli

import (
	"bufio"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
)

// LimitMemory sets the soft memory limit of the process to 80 % of the
// machine's memory, so the garbage collector works harder before the kernel
// kills the process. The variable GOMEMLIMIT takes precedence.
func LimitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		if n := machineMemory(); n > 0 {
			debug.SetMemoryLimit(n / 10 * 8)
		}
	}
}

// The growth of the heap in percent before a collection. A large heap grows less, because its
// garbage takes more memory and its collections are rare.
const (
	earlyPercent = 1000 // before the first collection
	usualPercent = 100
	largePercent = 33 // after a collection that leaves largeHeap bytes
	largeHeap    = 256 << 20
)

// CollectLater delays the first garbage collection from 4 MB of heap to 40 MB,
// which saves short verbs the work. Later collections happen at the usual
// growth, or at less if the heap is large. The variable GOGC takes precedence.
func CollectLater() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(earlyPercent)
	afterCollection(earlyPercent)
}

// afterCollection sets the growth after each collection, unless a verb has set another value than
// the given one.
func afterCollection(percent int) {
	runtime.AddCleanup(new([16]byte), func(percent int) {
		next := growthOf(liveHeap())
		if next != percent {
			if now := debug.SetGCPercent(next); now != percent {
				debug.SetGCPercent(now) // a verb has set another value
				next = percent
			}
		}
		afterCollection(next)
	}, percent)
}

// growthOf returns the growth of a heap of which live bytes are in use.
func growthOf(live uint64) int {
	if live >= largeHeap {
		return largePercent
	}
	return usualPercent
}

// liveHeap returns the bytes that the last collection has left.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// MemoryLimit returns the memory limit of the process in bytes, or 0 for none.
func MemoryLimit() int64 {
	n := debug.SetMemoryLimit(-1)
	if n == math.MaxInt64 {
		return 0
	}
	return n
}

// machineMemory returns the memory of the machine or of the process's control
// group in bytes, the lower of the two, or 0 if unknown.
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
