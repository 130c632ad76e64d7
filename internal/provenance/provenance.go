// Package provenance says which p4lb this is: the version and the commit that the
// binary was made of, whichever way it was built.
//
// A release and make build tell the linker; go build in a checkout records the
// commit, unless it is told not to; go install of a module records its version,
// which has the commit where it is no tag; and an archive of the sources, which git
// archive makes, has the commit in a file. Where none of these knows it, the commit
// is unknown.
package provenance

import (
	_ "embed"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
)

// What the linker was told by -X: the version that a release is built as, and the
// commit, with +dirty behind it where not all that was built is in it.
var version, commit string

// archived is the commit in an archive of the sources, where git has put it in.
//
//go:embed commit.txt
var archived string

// A Build is what a binary was made of.
type Build struct {
	Version string // v1.2.3, or devel
	Commit  string // in hexadecimal, 12 digits at least; "" where it is not known
	Changed bool   // what was built had changes that are in no commit
}

// This is the build of the running binary.
var This = sync.OnceValue(func() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return identify(version, commit, archived, info)
})

// identify puts together what is known: what the linker was told comes first.
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

// pseudo matches the versions that the Go tool gives commits without a tag.
var pseudo = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[-.]\d{14}-([0-9a-f]{12})(?:\+|$)`)
})

func inVersion(v string) string {
	if m := pseudo().FindStringSubmatch(v); m != nil {
		return m[1]
	}
	return ""
}

// Revision is the commit, with +dirty behind it where what was built had changes,
// or unknown.
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

// String is the build in a line: v1.2.3 (commit 0123456789ab).
func (b Build) String() string {
	return b.Version + " (commit " + b.revision(min(12, len(b.Commit))) + ")"
}
