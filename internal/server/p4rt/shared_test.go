package p4rt

import (
	"bytes"
	"runtime"
	"testing"
)

// Devices with the same program hold one copy of it, as long as one of them uses it.
func TestShareProgram(t *testing.T) {
	program := bytes.Repeat([]byte("program "), 100)
	first := share(bytes.Clone(program))
	second := share(bytes.Clone(program))
	other := share(append(bytes.Clone(program), '!'))
	if &first.bytes[0] != &second.bytes[0] {
		t.Error("two devices with the same program hold two copies")
	}
	if bytes.Equal(first.bytes, other.bytes) {
		t.Error("two programs share their bytes")
	}
	runtime.KeepAlive(first)
	runtime.KeepAlive(second)
	runtime.KeepAlive(other)
	runtime.GC()
	if again := share(bytes.Clone(program)); !bytes.Equal(again.bytes, program) {
		t.Errorf("the program is %q after its devices ended", again.bytes)
	}
}
