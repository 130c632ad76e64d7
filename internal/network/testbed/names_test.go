package testbed

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for _, tt := range []struct{ name, node, want string }{
		{"leaf-spine", "h1", "p4lb-leaf_spine-h1"},
		{"QALL", "l1", "p4lb-qall-l1"},
		{"a/../b c", "s1", "p4lb-a____b_c-s1"},
		{strings.Repeat("x", 100), "s1", "p4lb-" + strings.Repeat("x", 32) + "-s1"},
	} {
		if got := Shell(tt.name, tt.node); got[3] != tt.want {
			t.Errorf("Shell(%q, %q) = %v, want %s", tt.name, tt.node, got, tt.want)
		}
	}
	// No deployment's prefix may be the begin of another's.
	if strings.HasPrefix(prefix(nameOf("a-b")), prefix(nameOf("a"))) {
		t.Error("removing deployment a would remove deployment a-b")
	}
}
