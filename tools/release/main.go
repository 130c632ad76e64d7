// Command release builds a release of p4lb: for each platform an archive with
// the static binary, the manual pages, shell completion and the license; for
// Linux also packages (deb, rpm); a software bill of materials (SPDX); and
// checksums. Builds are reproducible: the same commit results in the same bytes
// on any machine.
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip" // twice as fast as Go's
)

// platforms are the platforms of the archives. On darwin, network interfaces
// and namespaces are not available.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}

// stamps is the package with the variables for version and commit.
const stamps = "github.com/p4lb/p4lb/internal/provenance"

func main() {
	var r release
	flag.StringVar(&r.version, "version", "", "the version, such as 0.2.0 (default the commit's tag, or 0.0.0 and the commit)")
	flag.StringVar(&r.dir, "o", "dist", "the output folder")
	only := flag.String("platforms", strings.Join(platforms, ","), "the platforms")
	flag.Parse()
	if err := r.run(strings.Split(*only, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// A release is a release under construction.
type release struct {
	version string
	commit  string
	dir     string
	date    time.Time // modification time of all files: the commit's
	files   []string  // written so far

	manual     []entry // by file name
	completion []entry // by installation path
}

func (r *release) run(platforms []string) error {
	if err := r.identify(); err != nil {
		return err
	}
	if err := os.MkdirAll(r.dir, 0o777); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "p4lb-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := r.ask(work); err != nil {
		return err
	}
	for _, platform := range platforms {
		goos, goarch, ok := strings.Cut(platform, "/")
		if !ok {
			return fmt.Errorf("platform %q: want one such as linux/amd64", platform)
		}
		binary, err := r.binary(work, goos, goarch)
		if err != nil {
			return err
		}
		if err := r.pack(goos, goarch, binary); err != nil {
			return err
		}
	}
	return r.checksums()
}

// identify determines the version and the date from the commit.
func (r *release) identify() error {
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", args...).Output()
		return strings.TrimSpace(string(out)), err
	}
	stamp, err := git("log", "-1", "--format=%ct")
	if err == nil {
		r.commit, err = git("rev-parse", "HEAD")
	}
	if err != nil {
		return fmt.Errorf("not in a git checkout: git: %w", err)
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return err
	}
	r.date = time.Unix(seconds, 0).UTC()
	if r.version != "" {
		return nil
	}
	if tag, err := git("describe", "--tags", "--exact-match"); err == nil {
		r.version = strings.TrimPrefix(tag, "v")
		return nil
	}
	r.version = "0.0.0-" + r.commit[:12]
	return nil
}

// binary returns the binary for a platform, built once.
func (r *release) binary(work, goos, goarch string) (string, error) {
	name := filepath.Join(work, goos+"-"+goarch)
	if _, err := os.Stat(name); err == nil {
		return name, nil
	}
	return name, r.build(goos, goarch, name)
}

// build compiles the binary. Nothing from the machine or the folder becomes
// part of it.
func (r *release) build(goos, goarch, to string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", fmt.Sprintf("-s -w -buildid= -X %[1]s.version=v%[2]s -X %[1]s.commit=%[3]s", stamps, r.version, r.commit), "-o", to, "./cmd/p4lb")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch, "GOAMD64=v1", "GOFLAGS=")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building for %s/%s: %w", goos, goarch, err)
	}
	return nil
}

// ask runs the binary for this machine to generate the manual pages and the
// shell completion.
func (r *release) ask(work string) error {
	self, err := r.binary(work, runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return err
	}
	dir := filepath.Join(work, "man")
	if out, err := exec.Command(self, "man", "-q", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("writing the manual: %w: %s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, errors.New("p4lb man wrote no pages"))
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		r.manual = append(r.manual, entry{name: filepath.Base(f), data: text, mode: 0o644})
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		text, err := exec.Command(self, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("writing the completion of %s: %w", shell, err)
		}
		r.completion = append(r.completion, entry{name: completions[shell], data: text, mode: 0o644})
	}
	return nil
}

// completions are the paths where shells look for completion scripts.
var completions = map[string]string{
	"bash": "usr/share/bash-completion/completions/p4lb",
	"zsh":  "usr/share/zsh/site-functions/_p4lb",
	"fish": "usr/share/fish/vendor_completions.d/p4lb.fish",
}

// An entry is a file in an archive.
type entry struct {
	name string
	data []byte
	mode int64
}

// pack writes the files of a platform.
func (r *release) pack(goos, goarch, binary string) error {
	program, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	base := fmt.Sprintf("p4lb-%s-%s-%s", r.version, goos, goarch)
	list := []entry{{base + "/p4lb", program, 0o755}}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		list = append(list, entry{base + "/" + name, text, 0o644})
	}
	for _, p := range r.manual {
		list = append(list, entry{base + "/man/" + p.name, p.data, p.mode})
	}
	for _, c := range r.completion {
		list = append(list, entry{base + "/completion/" + filepath.Base(c.name), c.data, c.mode})
	}
	archive, err := r.archive(list)
	if err != nil {
		return err
	}
	bill, err := r.bill(binary, base)
	if err != nil {
		return err
	}
	if err := errors.Join(r.write(base+".tar.gz", archive), r.write(base+".spdx.json", bill)); err != nil || goos != "linux" {
		return err
	}
	installed, err := r.installed(program)
	if err != nil {
		return err
	}
	deb, err := r.debian(goarch, installed)
	if err != nil {
		return err
	}
	rpm, err := r.redHat(goarch, installed)
	if err != nil {
		return err
	}
	return errors.Join(r.write(fmt.Sprintf("p4lb_%s_%s.deb", r.version, goarch), deb), r.write(rpmName(r.version, goarch), rpm))
}

func (r *release) write(name string, data []byte) error {
	r.files = append(r.files, name)
	return os.WriteFile(filepath.Join(r.dir, name), data, 0o644)
}

// archive returns a compressed tar archive of files with the same date and
// without owners.
func (r *release) archive(list []entry) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.DefaultCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	made := map[string]bool{}
	for _, e := range list {
		for _, dir := range parents(e.name) {
			if !made[dir] {
				made[dir] = true
				if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: r.date, Format: tar.FormatUSTAR}); err != nil {
					return nil, err
				}
			}
		}
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: r.date, Format: tar.FormatUSTAR}); err != nil {
			return nil, err
		}
		if _, err := t.Write(e.data); err != nil {
			return nil, err
		}
	}
	err = errors.Join(t.Close(), z.Close())
	return b.Bytes(), err
}

// parents returns the parent folders of a name, the outermost first.
func parents(name string) []string {
	var list []string
	for i, c := range name {
		if c == '/' && i > 0 && name[:i] != "." {
			list = append(list, name[:i])
		}
	}
	return list
}

// bill returns the list of modules in a binary as SPDX 2.3.
func (r *release) bill(binary, base string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("reading the build information of %s: %w", base, err)
	}
	type packaged struct {
		Name     string `json:"name"`
		ID       string `json:"SPDXID"`
		Version  string `json:"versionInfo"`
		Location string `json:"downloadLocation"`
		Analyzed bool   `json:"filesAnalyzed"`
	}
	type relation struct {
		From string `json:"spdxElementId"`
		Kind string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
	doc := struct {
		Version   string `json:"spdxVersion"`
		License   string `json:"dataLicense"`
		ID        string `json:"SPDXID"`
		Name      string `json:"name"`
		Namespace string `json:"documentNamespace"`
		Creation  struct {
			Created  string   `json:"created"`
			Creators []string `json:"creators"`
		} `json:"creationInfo"`
		Packages  []packaged `json:"packages"`
		Relations []relation `json:"relationships"`
	}{Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: base, Namespace: "https://" + info.Main.Path + "/spdx/" + base}
	doc.Creation.Created, doc.Creation.Creators = r.date.Format(time.RFC3339), []string{"Tool: p4lb-release"}
	doc.Packages = []packaged{{Name: info.Main.Path, ID: "SPDXRef-p4lb", Version: "v" + r.version, Location: "NOASSERTION"}}
	doc.Relations = []relation{{"SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-p4lb"}}
	slices.SortFunc(info.Deps, func(a, b *debug.Module) int { return strings.Compare(a.Path, b.Path) })
	for i, m := range append([]*debug.Module{{Path: "std", Version: info.GoVersion}}, info.Deps...) {
		id := fmt.Sprintf("SPDXRef-%d", i)
		doc.Packages = append(doc.Packages, packaged{Name: m.Path, ID: id, Version: m.Version, Location: "NOASSERTION"})
		doc.Relations = append(doc.Relations, relation{"SPDXRef-p4lb", "DEPENDS_ON", id})
	}
	return json.MarshalIndent(doc, "", " ")
}

// checksums writes the SHA-256 of every file in the format of sha256sum -c.
func (r *release) checksums() error {
	var b strings.Builder
	slices.Sort(r.files)
	for _, name := range r.files {
		f, err := os.Open(filepath.Join(r.dir, name))
		if err != nil {
			return err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		f.Close()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", h.Sum(nil), name)
	}
	fmt.Print(b.String())
	return os.WriteFile(filepath.Join(r.dir, "SHA256SUMS"), []byte(b.String()), 0o644)
}
