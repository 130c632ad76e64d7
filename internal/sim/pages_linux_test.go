package sim

import (
	"bytes"
	"testing"
	"time"
	"unsafe"
)

// TestMoveToHugePages moves a large object and checks that its content stays, and that the
// kernel counts its pages as huge.
func TestMoveToHugePages(t *testing.T) {
	object := make([]byte, 16*hugePage)
	for i := range object {
		object[i] = byte(i / smallPage)
	}
	want := bytes.Clone(object)
	size, err := moveToHugePages(unsafe.Pointer(&object[0]), time.Minute)
	if err != nil {
		t.Skipf("the kernel has no huge pages for this process: %v", err)
	}
	if !bytes.Equal(object, want) {
		t.Error("the content has changed")
	}
	if size < 15*hugePage { // the object need not begin with a huge page
		t.Errorf("%d bytes are in huge pages: want all %d of the object", size, len(object))
	}
	if size, err := moveToHugePages(unsafe.Pointer(&object[0]), 0); size != 0 || err != nil {
		t.Errorf("without time: %d bytes moved, %v: want none", size, err)
	}
}
