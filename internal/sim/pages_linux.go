package sim

import (
	"bufio"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	smallPage = 4096
	hugePage  = 2 << 20
)

// moveToHugePages asks the kernel to move the part of the heap around an object into huge
// pages. It skips a huge page if less than seven eighths of it is in memory, so that the
// heap grows by at most one eighth, and stops after a time. It returns the number of bytes in
// huge pages.
//
// Hostile input: none. The kernel moves memory without changing it, and gets only addresses
// within the mapping that contains the object.
func moveToHugePages(object unsafe.Pointer, limit time.Duration) (size int64, err error) {
	from, to, err := mappingOf(uintptr(object))
	if err != nil {
		return 0, err
	}
	began := time.Now()
	var pages [hugePage / smallPage]byte
	for at := (from + hugePage - 1) &^ (hugePage - 1); at+hugePage <= to && time.Since(began) < limit; at += hugePage {
		if _, _, errno := unix.Syscall(unix.SYS_MINCORE, at, hugePage, uintptr(unsafe.Pointer(&pages))); errno != 0 {
			return size, fmt.Errorf("asking for the pages in memory: %w", errno)
		}
		resident := 0
		for _, p := range pages {
			resident += int(p & 1)
		}
		if resident < len(pages)*7/8 {
			continue
		}
		switch _, _, errno := unix.Syscall(unix.SYS_MADVISE, at, hugePage, unix.MADV_COLLAPSE); errno {
		case 0:
			size += hugePage
		case unix.EAGAIN, unix.EBUSY, unix.ENOMEM: // this page cannot be moved now
		default:
			return size, fmt.Errorf("moving the heap: %w: want Linux 6.1 or later with transparent huge pages", errno)
		}
	}
	return size, nil
}

// mappingOf returns the limits of the mapping that contains an address.
func mappingOf(at uintptr) (from, to uintptr, err error) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x", &from, &to); err == nil && from <= at && at < to {
			return from, to, nil
		}
	}
	return 0, 0, fmt.Errorf("%s has no mapping of the heap", f.Name())
}
