package plain

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestFolder(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"../../evil1", "_._.._evil1"}, {"..", "_."}, {".", "_"}, {"", "_"}, {"a/b", "a_b"}, {"a b", "a_b"}, {"drill+rlb", "drill+rlb"},
		{"qall-poly3@tna", "qall-poly3_tna"}, {"0.7", "0.7"}, {"a\x00b", "a_b"}, {"é", "__"}, {`c:\x`, "c__x"},
	} {
		if got := Folder(c.name); got != c.want || !filepath.IsLocal(got) || strings.ContainsAny(got, `/\`) {
			t.Errorf("%q becomes %q, want %q", c.name, got, c.want)
		}
	}
	if n := len(Folder(strings.Repeat("x", 5000))); n != maxFolder {
		t.Errorf("a long name becomes one of %d bytes", n)
	}
}
