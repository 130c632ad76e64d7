package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// asRelease is the variable that makes the test binary run the command.
const asRelease = "P4LB_AS_RELEASE"

func TestMain(m *testing.M) {
	if os.Getenv(asRelease) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestReproducible builds the same release twice and compares every byte.
func TestReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("links p4lb twice")
	}
	head, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Skip("not in a git checkout")
	}
	commit := string(head[:12])
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for range 2 {
		dir := filepath.Join(t.TempDir(), "p4lb")
		if out, err := exec.Command("git", "clone", "-q", "../..", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		cmd := exec.Command(self, "-version", "1.2.3", "-platforms", "linux/"+runtime.GOARCH, "-o", "dist")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), asRelease+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		dirs = append(dirs, filepath.Join(dir, "dist"))
	}
	names, err := os.ReadDir(dirs[0])
	if err != nil || len(names) != 5 {
		t.Fatalf("%d files, %v: want an archive, two packages, a bill and the checksums", len(names), err)
	}
	for _, n := range names {
		a, errA := os.ReadFile(filepath.Join(dirs[0], n.Name()))
		b, errB := os.ReadFile(filepath.Join(dirs[1], n.Name()))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %v, %v", n.Name(), errA, errB)
		}
	}
	archive, err := os.ReadFile(filepath.Join(dirs[0], "p4lb-1.2.3-linux-"+runtime.GOARCH+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	files := untar(t, archive)
	program := filepath.Join(t.TempDir(), "p4lb")
	for name, want := range map[string]string{"LICENSE": "Apache", "man/p4lb-gen.1": ".TH P4LB\\-GEN 1", "README.md": "# p4lb", "completion/_p4lb": "#compdef p4lb", "completion/p4lb.fish": "fish completion for p4lb"} {
		if got := files["p4lb-1.2.3-linux-"+runtime.GOARCH+"/"+name]; !strings.Contains(got, want) {
			t.Errorf("%s: %.60q", name, got)
		}
	}
	if err := os.WriteFile(program, []byte(files["p4lb-1.2.3-linux-"+runtime.GOARCH+"/p4lb"]), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, "version").Output(); err != nil || !strings.HasPrefix(string(out), "p4lb v1.2.3 (commit "+commit+") ") {
		t.Errorf("%s, %v", out, err)
	}
	if dpkg, err := exec.LookPath("dpkg-deb"); err == nil {
		out, err := exec.Command(dpkg, "-c", filepath.Join(dirs[0], "p4lb_1.2.3_"+runtime.GOARCH+".deb")).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "./usr/bin/p4lb") {
			t.Errorf("dpkg-deb -c: %v: %s", err, out)
		}
	}
	checkRPM(t, filepath.Join(dirs[0], rpmName("1.2.3", runtime.GOARCH)))
}

// checkRPM checks the header, and the package with rpm if it is installed.
func checkRPM(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(text, []byte{0xed, 0xab, 0xee, 0xdb, 3, 0}) {
		t.Errorf("%s begins with % x", name, text[:6])
	}
	for _, want := range []string{"p4lb-gen.1.gz\x00", "/usr/bin/\x00", "_p4lb\x00", "p4lb.fish\x00", "Apache-2.0\x00"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the header of %s has no %q", name, want)
		}
	}
	if rpm, err := exec.LookPath("rpm"); err == nil {
		out, err := exec.Command(rpm, "-qp", "--dbpath", t.TempDir(), "--qf", "%{NAME} %{VERSION} %{LICENSE} %{FILENAMES}", name).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "p4lb 1.2.3 Apache-2.0 /usr/bin/p4lb") {
			t.Errorf("rpm -qp: %v: %s", err, out)
		}
	}
}

func TestRPMVersion(t *testing.T) {
	for version, want := range map[string]string{"1.2.3": "1.2.3", "0.0.0-0123456789ab": "0.0.0~0123456789ab"} {
		if got := rpmVersion(version); got != want {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
}

// untar reads an archive and checks that its files have the same date and no
// owner.
func untar(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	var date int64
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if date != 0 && h.ModTime.Unix() != date || h.Uid != 0 || h.Gid != 0 || h.Uname != "" {
			t.Errorf("%s is of %v, by %d", h.Name, h.ModTime, h.Uid)
		}
		date = h.ModTime.Unix()
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(text)
	}
}
