package provenance

import (
	"runtime/debug"
	"testing"
)

func TestIdentify(t *testing.T) {
	const a, b = "0123456789abcdef0123456789abcdef01234567", "89abcdef0123456789abcdef0123456789abcdef"
	recorded := []debug.BuildSetting{{Key: "vcs.revision", Value: b}, {Key: "vcs.modified", Value: "true"}}
	for _, c := range []struct {
		name, version, commit, archived, module string
		settings                                []debug.BuildSetting
		want                                    string
	}{
		{name: "nothing known", archived: "$Format:%H$\n", want: "devel (commit unknown)"},
		{name: "a release", version: "v1.2.3", commit: a, want: "v1.2.3 (commit 0123456789ab)"},
		{name: "make build", commit: a + "+dirty", want: "devel (commit 0123456789ab+dirty)"},
		{name: "make build where git is not", commit: "", archived: a + "\n", want: "devel (commit 0123456789ab)"},
		{name: "the linker takes precedence over the recorded commit", commit: a, settings: recorded[:1], want: "devel (commit 0123456789ab)"},
		{name: "go build", settings: recorded, module: "v0.0.0-20260102030405-89abcdef0123+dirty", want: "v0.0.0-20260102030405-89abcdef0123+dirty (commit 89abcdef0123+dirty)"},
		{name: "go install of a commit", module: "v0.0.0-20260102030405-89abcdef0123", want: "v0.0.0-20260102030405-89abcdef0123 (commit 89abcdef0123)"},
		{name: "go install of a commit after a tag", module: "v1.2.4-0.20260102030405-89abcdef0123", want: "v1.2.4-0.20260102030405-89abcdef0123 (commit 89abcdef0123)"},
		{name: "go install of a tag", module: "v1.2.3", want: "v1.2.3 (commit unknown)"},
		{name: "no commit", commit: "HEAD", want: "devel (commit unknown)"},
	} {
		info := &debug.BuildInfo{Settings: c.settings}
		info.Main.Version = c.module
		if got := identify(c.version, c.commit, c.archived, info).String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
