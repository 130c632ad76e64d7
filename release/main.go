// Command release builds what a release of p4lb consists of: for each platform an
// archive with the static binary, the manual pages and the licence; for Debian and
// its kin a package; the list of what is linked in (SPDX); and the checksums. The
// same commit gives the same bytes, wherever it is built.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
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
	"slices"
	"strconv"
	"strings"
	"time"
)

// platforms are those that archives are made for. On darwin there are no
// interfaces and no namespaces; everything else is there.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}

// stamps is where the linker puts version and commit.
const stamps = "github.com/p4lb/p4lb/provenance"

func main() {
	var r release
	flag.StringVar(&r.version, "version", "", "the version, such as 0.2.0 (default the commit's tag, or 0.0.0 and the commit)")
	flag.StringVar(&r.dir, "o", "dist", "the folder to write into")
	only := flag.String("platforms", strings.Join(platforms, ","), "the platforms")
	flag.Parse()
	if err := r.run(strings.Split(*only, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// A release is one being made.
type release struct {
	version string
	commit  string
	dir     string
	date    time.Time // of all files: the commit's
	files   []string  // written so far
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
	pages, err := r.manPages(work)
	if err != nil {
		return err
	}
	for _, platform := range platforms {
		goos, goarch, ok := strings.Cut(platform, "/")
		if !ok {
			return fmt.Errorf("platform %q: want one such as linux/amd64", platform)
		}
		binary := filepath.Join(work, goos+"-"+goarch)
		if err := r.build(goos, goarch, binary); err != nil {
			return err
		}
		if err := r.pack(goos, goarch, binary, pages); err != nil {
			return err
		}
	}
	return r.checksums()
}

// identify finds the version and the date by the commit.
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
		return fmt.Errorf("a release is made from a checkout: git: %w", err)
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

// build compiles the binary. Nothing of the machine or the folder goes into it.
func (r *release) build(goos, goarch, to string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", fmt.Sprintf("-s -w -buildid= -X %[1]s.version=v%[2]s -X %[1]s.commit=%[3]s", stamps, r.version, r.commit), "-o", to, "./cmd/p4lb")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch, "GOAMD64=v1", "GOFLAGS=")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building for %s/%s: %w", goos, goarch, err)
	}
	return nil
}

// manPages are the manual, as the binary for this machine writes it.
func (r *release) manPages(work string) ([]entry, error) {
	self, dir := filepath.Join(work, "self"), filepath.Join(work, "man")
	if err := r.build(runtime.GOOS, runtime.GOARCH, self); err != nil {
		return nil, err
	}
	if out, err := exec.Command(self, "man", "-q", dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("writing the manual: %w: %s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, errors.New("there is no manual"))
	}
	var list []entry
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		list = append(list, entry{name: filepath.Base(f), data: text, mode: 0o644})
	}
	return list, nil
}

// An entry is a file of an archive.
type entry struct {
	name string
	data []byte
	mode int64
}

// pack writes what a platform gets.
func (r *release) pack(goos, goarch, binary string, pages []entry) error {
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
	for _, p := range pages {
		list = append(list, entry{base + "/man/" + p.name, p.data, p.mode})
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
	deb, err := r.debian(goarch, program, pages)
	if err != nil {
		return err
	}
	return r.write(fmt.Sprintf("p4lb_%s_%s.deb", r.version, goarch), deb)
}

func (r *release) write(name string, data []byte) error {
	r.files = append(r.files, name)
	return os.WriteFile(filepath.Join(r.dir, name), data, 0o644)
}

// archive is a compressed tape of files, all of one date and nobody's.
func (r *release) archive(list []entry) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
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

// parents are the folders that a name lies in, the outermost first.
func parents(name string) []string {
	var list []string
	for i, c := range name {
		if c == '/' && i > 0 && name[:i] != "." {
			list = append(list, name[:i])
		}
	}
	return list
}

// debian is a package for dpkg: an ar(1) of a version, of what it is, and of the
// files (deb(5)).
func (r *release) debian(arch string, program []byte, pages []entry) ([]byte, error) {
	list := []entry{{"./usr/bin/p4lb", program, 0o755}}
	size := len(program)
	for _, p := range pages {
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err != nil {
			return nil, err
		}
		_, err = z.Write(p.data)
		if err := errors.Join(err, z.Close()); err != nil {
			return nil, err
		}
		list = append(list, entry{"./usr/share/man/man1/" + p.name + ".gz", b.Bytes(), 0o644})
		size += b.Len()
	}
	licence, err := os.ReadFile("LICENSE")
	if err != nil {
		return nil, err
	}
	list = append(list, entry{"./usr/share/doc/p4lb/copyright", licence, 0o644})
	control := fmt.Sprintf("Package: p4lb\nVersion: %s\nArchitecture: %s\nMaintainer: the p4lb authors <p4lb@localhost>\nInstalled-Size: %d\nSection: net\nPriority: optional\nRecommends: iproute2\nDescription: in-network load balancers in P4_16\n Generates, compiles, runs, deploys, measures and inspects load balancers\n written in P4_16, in one static binary.\n", r.version, arch, (size+1023)/1024)
	meta, err := r.archive([]entry{{"./control", []byte(control), 0o644}})
	if err != nil {
		return nil, err
	}
	data, err := r.archive(list)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, e := range []entry{{"debian-binary", []byte("2.0\n"), 0}, {"control.tar.gz", meta, 0}, {"data.tar.gz", data, 0}} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", e.name, r.date.Unix(), 0, 0, 0o100644, len(e.data))
		b.Write(e.data)
		if len(e.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes(), nil
}

// bill lists the modules that are linked into a binary, as SPDX 2.3.
func (r *release) bill(binary, base string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("reading what is in %s: %w", base, err)
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
	deps := append([]*debugModule{{Path: "std", Version: info.GoVersion}}, modules(info)...)
	for i, m := range deps {
		id := fmt.Sprintf("SPDXRef-%d", i)
		doc.Packages = append(doc.Packages, packaged{Name: m.Path, ID: id, Version: m.Version, Location: "NOASSERTION"})
		doc.Relations = append(doc.Relations, relation{"SPDXRef-p4lb", "DEPENDS_ON", id})
	}
	return json.MarshalIndent(doc, "", " ")
}

type debugModule struct{ Path, Version string }

func modules(info *buildinfo.BuildInfo) []*debugModule {
	var list []*debugModule
	for _, m := range info.Deps {
		list = append(list, &debugModule{m.Path, m.Version})
	}
	slices.SortFunc(list, func(a, b *debugModule) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// checksums writes the SHA-256 of every file, as sha256sum -c reads them.
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
