package manifesttest

import (
	"reflect"
	"testing"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// TestWipe: only sentences are replaced, and the original keeps them.
func TestWipe(t *testing.T) {
	m, err := manifest.Decode("m.yaml", []byte(`version: 2
scheme: s
arch: v1model
registers:
- {name: C.r, kind: count, symbol: N, meaning: packets of a port}
tables:
- {name: C.t, purpose: none, meaning: nothing}
`))
	if err != nil {
		t.Fatal(err)
	}
	bare, err := Wipe(m)
	if err != nil {
		t.Fatal(err)
	}
	if m.Registers[0].Meaning != "packets of a port" || bare.Registers[0].Meaning != "x" {
		t.Errorf("the meaning is %q in the original and %q in the copy", m.Registers[0].Meaning, bare.Registers[0].Meaning)
	}
	bare.Registers[0].Meaning, bare.Registers[0].Symbol = m.Registers[0].Meaning, m.Registers[0].Symbol
	if !reflect.DeepEqual(bare.Registers, m.Registers) {
		t.Errorf("registers %+v, want %+v", bare.Registers, m.Registers)
	}
}
