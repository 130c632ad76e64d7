package cli

import (
	"runtime/debug"
	"strings"
)

// stamped is the version that a release was built as, by the linker.
var stamped string

// Version is a release's, or what the Go tool recorded: a module's version, or the
// commit that the binary was built from.
func Version() string {
	if stamped != "" {
		return stamped
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(devel)"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+dirty"
		}
	}
	if commit == "" {
		return "(devel)"
	}
	return strings.TrimSpace("(devel) " + commit + changed)
}
