// Package provenance identifies the p4lb binary: its version and the commit
// from which it was built.
//
// Several sources are consulted. Releases and make build pass both to the
// linker. go build in a checkout records the commit, unless disabled. go
// install of a module records its version, and the commit if the version is not
// a tag. An archive created by git archive has the commit in a file. If none of
// them knows the commit, it is unknown.
package provenance

import (
	_ "embed"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
)

// Set by the linker with -X: the version of a release, and the commit, with the
// suffix +dirty if the build has uncommitted changes.
var version, commit string

// archived is the commit in an archive of the sources, inserted by git.
//
//go:embed commit.txt
var archived string

// A Build identifies a binary.
type Build struct {
	Version string // v1.2.3, or devel
	Commit  string // in hexadecimal, at least 12 digits; "" if unknown
	Changed bool   // the build has uncommitted changes
}

// This returns the build of the running binary.
var This = sync.OnceValue(func() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return identify(version, commit, archived, info)
})

// identify combines the sources; the linker's values take precedence.
func identify(version, commit, archived string, info *debug.BuildInfo) Build {
	b := Build{Version: version}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = info.Main.Version
	}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "devel"
	}
	var recorded string
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			recorded = s.Value
		case "vcs.modified":
			b.Changed = s.Value == "true"
		}
	}
	if at, changed := strings.CutSuffix(commit, "+dirty"); at != "" {
		commit, b.Changed = at, changed
	}
	for _, known := range []string{commit, recorded, inVersion(info.Main.Version), strings.TrimSpace(archived)} {
		if len(known) >= 12 && strings.Trim(known, "0123456789abcdef") == "" {
			b.Commit = known
			break
		}
	}
	return b
}

// pseudo matches pseudo-versions, which the Go tool gives commits without a
// tag.
var pseudo = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[-.]\d{14}-([0-9a-f]{12})(?:\+|$)`)
})

func inVersion(v string) string {
	if m := pseudo().FindStringSubmatch(v); m != nil {
		return m[1]
	}
	return ""
}

// Revision returns the commit, with the suffix +dirty if the build has
// uncommitted changes, or unknown.
func (b Build) Revision() string { return b.revision(len(b.Commit)) }

func (b Build) revision(digits int) string {
	switch {
	case b.Commit == "":
		return "unknown"
	case b.Changed:
		return b.Commit[:digits] + "+dirty"
	}
	return b.Commit[:digits]
}

// String returns the build in one line: v1.2.3 (commit 0123456789ab).
func (b Build) String() string {
	return b.Version + " (commit " + b.revision(min(12, len(b.Commit))) + ")"
}
