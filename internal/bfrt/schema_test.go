package bfrt

import (
	"strings"
	"testing"
)

func TestBits(t *testing.T) {
	for kind, want := range map[string]int{"uint8": 8, "int8": 8, "uint16": 16, "int16": 16, "uint32": 32, "int32": 32, "uint64": 64, "int64": 64, "bool": 0} {
		if got := (&Field{Type: &Type{Type: kind}}).Bits(); got != want {
			t.Errorf("%s has %d bits, want %d", kind, got, want)
		}
	}
	if got := (&Field{Type: &Type{Type: "bytes", Width: 9}}).Bits(); got != 9 {
		t.Errorf("9 bits are %d", got)
	}
	if got := new(Field).Bits(); got != 0 {
		t.Errorf("a container has %d bits", got)
	}
}

// TestDecodeHoles: the error for null, or for a field without a type, names the
// place.
func TestDecodeHoles(t *testing.T) {
	for text, want := range map[string]string{
		`{"tables": [null]}`:                                                                       "table 1 is null",
		`{"tables": [{"name": "t", "key": [null]}]}`:                                               "table t: field 1 is null",
		`{"tables": [{"name": "t", "key": [{"name": "k"}]}]}`:                                      "table t: field k has no type",
		`{"tables": [{"name": "t", "action_specs": [null]}]}`:                                      "table t: action 1 is null",
		`{"tables": [{"name": "t", "action_specs": [{"name": "a", "data": [{"name": "p"}]}]}]}`:    "table t: action a: field p has no type",
		`{"tables": [{"name": "t", "data": [null]}]}`:                                              "table t: part 1 of the data is null",
		`{"tables": [{"name": "t", "data": [{"singleton": {"name": "d"}}]}]}`:                      "table t: field d has no type",
		`{"tables": [{"name": "t", "data": [{"oneof": [null]}]}]}`:                                 "table t: field 1 is null",
		`{"tables": [{"name": "t", "data": [{"singleton": {"name": "d", "container": [null]}}]}]}`: "table t: field d: part 1 of the data is null",
		`{"learn_filters": [null]}`:                                                                "learn filter 1 is null",
		`{"learn_filters": [{"name": "l", "fields": [{"name": "f"}]}]}`:                            "learn filter l: field f has no type",
		`{"tables": {}}`: "cannot unmarshal object",
	} {
		if s, err := Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want an error with %q", text, s, err, want)
		}
	}
	if s, err := Decode([]byte(`{"tables": [{"name": "t", "data": [{"singleton": {"name": "d", "container": []}}]}]}`)); err != nil || s.Table("t") == nil {
		t.Errorf("an empty container: %v, %v", s, err)
	}
}
