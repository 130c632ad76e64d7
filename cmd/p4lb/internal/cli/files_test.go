package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestHostFSNames(t *testing.T) {
	h := &hostFS{cwd: "/home/me/work"}
	for _, c := range []struct{ typed, name string }{
		{"a.p4", "home/me/work/a.p4"},
		{"./src/a.p4", "home/me/work/src/a.p4"},
		{"../b.p4", "home/me/b.p4"},
		{"../../../../../c.p4", "c.p4"},
		{"/etc/d.p4", "etc/d.p4"},
		{"/", "."},
	} {
		got := h.rooted(c.typed)
		if got != c.name {
			t.Errorf("%s is called %s, want %s", c.typed, got, c.name)
		}
		if !fs.ValidPath(got) {
			t.Errorf("%s is called %s, which is not valid", c.typed, got)
		}
	}
}

func TestHostFSShow(t *testing.T) {
	h := &hostFS{cwd: "/home/me/work"}
	h.file("src/prog.p4")
	h.folder("../inc")
	h.folder("/opt/p4")
	h.folder("src/deep/../near")
	for _, c := range []struct{ name, want string }{
		{"home/me/work/src/prog.p4", "src/prog.p4"},
		{"home/me/work/src/near/x.p4", "src/near/x.p4"},
		{"home/me/work/above.p4", "above.p4"},
		{"home/me/inc/core.p4", "../inc/core.p4"},
		{"opt/p4/x.p4", "/opt/p4/x.p4"},
		{"elsewhere/x.p4", "/elsewhere/x.p4"},
		{"home/me/workshop/x.p4", "/home/me/workshop/x.p4"},
	} {
		if got := h.show(c.name); got != c.want {
			t.Errorf("%s is shown as %s, want %s", c.name, got, c.want)
		}
	}
}

// TestOutputsTogether fails the second of two outputs. The first file must stay
// unchanged.
func TestOutputsTogether(t *testing.T) {
	dir := t.TempDir()
	first := filepath.Join(dir, "first")
	if err := os.WriteFile(first, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(first, 0o662); err != nil {
		t.Fatal(err)
	}
	var out Outputs
	if err := out.Stage(first, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if err := out.Stage(filepath.Join(dir, "no", "second"), nil); err == nil {
		t.Fatal("no error for a folder that is missing")
	}
	out.Discard()
	wantFile(t, first, "old")
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("left behind: %v", list)
	}

	if err := out.Stage(first, []byte("new")); err != nil {
		t.Fatal(err)
	}
	wantFile(t, first, "old")
	if err := out.Commit(); err != nil {
		t.Fatal(err)
	}
	wantFile(t, first, "new")
	if info, _ := os.Stat(first); info.Mode().Perm() != 0o662 {
		t.Errorf("mode is now %v", info.Mode())
	}
}

func wantFile(t *testing.T, name, want string) {
	t.Helper()
	got, err := os.ReadFile(name)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q (%v), want %q", name, got, err, want)
	}
}
