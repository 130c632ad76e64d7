package page

import (
	"bytes"
	"testing"
)

// TestBounded bounds a module with one memory of 3 pages, written by hand after the
// WebAssembly specification, section 5.5.
func TestBounded(t *testing.T) {
	head := []byte{0, 'a', 's', 'm', 1, 0, 0, 0, 1, 1, 0}
	module := append(bytes.Clone(head), 5, 3, 1, 0, 3, 10, 1, 0)
	want := append(bytes.Clone(head), 5, 5, 1, 1, 3, 0xc0, 0x3e, 10, 1, 0) // 8000 pages
	got, err := bounded(module, 500<<20)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%x, %v, want %x", got, err, want)
	}
	for _, bad := range [][]byte{head, append(bytes.Clone(head), 5, 4, 1, 1, 3, 9), append(bytes.Clone(head), 5, 200)} {
		if _, err := bounded(bad, 500<<20); err == nil {
			t.Errorf("%x is accepted", bad)
		}
	}
}
