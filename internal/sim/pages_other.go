//go:build !linux

package sim

import (
	"errors"
	"time"
	"unsafe"
)

// moveToHugePages fails.
//
// Hostile input: none. It does not use the pointer.
func moveToHugePages(unsafe.Pointer, time.Duration) (int64, error) {
	return 0, errors.New("only Linux moves a heap into huge pages")
}
