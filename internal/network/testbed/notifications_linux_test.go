package testbed

import (
	"os"
	"path/filepath"
	"testing"
)

// TestNotifications: the flag for the address of notifications is only passed to a
// switch that knows it or cannot be asked.
func TestNotifications(t *testing.T) {
	for text, lacks := range map[string]bool{
		"#!/bin/sh\necho '  --device-id arg'\n":                                  true,
		"#!/bin/sh\necho '  --device-id arg'; echo '--notifications-addr arg'\n": false,
		"#!/bin/sh\nexit 1\n": false,
	} {
		program := filepath.Join(t.TempDir(), "switch")
		if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		o := Options{Program: program}
		if got := o.lacksNotifications(t.Context()); got != lacks {
			t.Errorf("%q: lacks %v, want %v", text, got, lacks)
		}
	}
}
