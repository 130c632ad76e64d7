package sim

import (
	"bytes"
	"testing"
	"time"
	"unsafe"
)

// TestMoveToHugePages moves a large object and checks that its content stays. How much the
// kernel moves depends on its free memory.
func TestMoveToHugePages(t *testing.T) {
	object := make([]byte, 16*hugePage)
	for i := range object {
		object[i] = byte(i / smallPage)
	}
	want := bytes.Clone(object)
	size, err := moveToHugePages(unsafe.Pointer(&object[0]), time.Minute)
	switch {
	case err != nil:
		t.Skipf("the kernel has no huge pages for this process: %v", err)
	case size == 0:
		t.Skip("the kernel has no free huge page now")
	}
	if !bytes.Equal(object, want) {
		t.Error("the content has changed")
	}
	if size, err := moveToHugePages(unsafe.Pointer(&object[0]), 0); size != 0 || err != nil {
		t.Errorf("without time: %d bytes moved, %v: want none", size, err)
	}
}
