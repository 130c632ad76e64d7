package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/rpmpack"
	"github.com/klauspost/compress/gzip"
)

const (
	summary     = "in-network load balancers in P4_16"
	description = "Generates, compiles, runs, deploys, measures and inspects load balancers\nwritten in P4_16, in one static binary."
)

// installed returns the files of a package by installation path, sorted by
// name.
func (r *release) installed(program []byte) ([]entry, error) {
	list := append([]entry{{"usr/bin/p4lb", program, 0o755}}, r.completion...)
	for _, p := range r.manual {
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err != nil {
			return nil, err
		}
		_, err = z.Write(p.data)
		if err := errors.Join(err, z.Close()); err != nil {
			return nil, err
		}
		list = append(list, entry{"usr/share/man/man1/" + p.name + ".gz", b.Bytes(), 0o644})
	}
	licence, err := os.ReadFile("LICENSE")
	if err != nil {
		return nil, err
	}
	list = append(list, entry{"usr/share/doc/p4lb/copyright", licence, 0o644})
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return list, nil
}

// debian returns a package for dpkg: an ar(1) archive of the format version,
// the metadata, and the files (deb(5)).
func (r *release) debian(arch string, installed []entry) ([]byte, error) {
	var list []entry
	size := 0
	for _, e := range installed {
		e.name = "./" + strings.Replace(e.name, "zsh/site-functions", "zsh/vendor-completions", 1) // Debian uses another folder
		list = append(list, e)
		size += len(e.data)
	}
	control := fmt.Sprintf("Package: p4lb\nVersion: %s\nArchitecture: %s\nMaintainer: the p4lb authors <p4lb@localhost>\nInstalled-Size: %d\nSection: net\nPriority: optional\nRecommends: iproute2\nDescription: %s\n %s\n", r.version, arch, (size+1023)/1024, summary, strings.ReplaceAll(description, "\n", "\n "))
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

// rpmArchs are rpm's names of the architectures.
var rpmArchs = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// rpmVersion converts a version for rpm: a dash would separate the release, and
// a pre-release must sort before the release.
func rpmVersion(version string) string { return strings.ReplaceAll(version, "-", "~") }

func rpmName(version, arch string) string {
	return fmt.Sprintf("p4lb-%s-1.%s.rpm", rpmVersion(version), rpmArchs[arch])
}

// redHat returns a package for rpm.
func (r *release) redHat(arch string, installed []entry) ([]byte, error) {
	rpm, err := rpmpack.NewRPM(rpmpack.RPMMetaData{
		Name: "p4lb", Version: rpmVersion(r.version), Release: "1", Arch: rpmArchs[arch],
		Summary: summary, Description: description, Licence: "Apache-2.0", URL: "https://github.com/p4lb/p4lb",
		Packager: "the p4lb authors", BuildHost: "localhost", BuildTime: r.date, Compressor: "zstd",
	})
	if err != nil {
		return nil, err
	}
	for _, e := range installed {
		kind := rpmpack.GenericFile
		if e.name == "usr/share/doc/p4lb/copyright" {
			kind = rpmpack.LicenceFile
		}
		rpm.AddFile(rpmpack.RPMFile{Name: "/" + e.name, Body: e.data, Mode: uint(0o100000 | e.mode), Owner: "root", Group: "root", MTime: uint32(r.date.Unix()), Type: kind})
	}
	var b bytes.Buffer
	if err := rpm.Write(&b); err != nil {
		return nil, fmt.Errorf("writing the rpm: %w", err)
	}
	return b.Bytes(), nil
}
