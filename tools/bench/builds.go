package bench

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// ownBuild describes how this binary was built.
func ownBuild() string {
	list := []string{runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return list[0]
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "-gcflags", "-ldflags", "-race", "-tags", "-trimpath", "CGO_ENABLED", "GOAMD64", "GOARM64":
			list = append(list, s.Key+"="+s.Value)
		}
	}
	return strings.Join(list, " ")
}

// logged is a message that simple_switch contains only with its logging macros.
const logged = "Processing packet received on port"

// peerBuild describes how a simple_switch was built, as far as the binary shows it.
// Compilers do not record their options in binaries.
func peerBuild(path string) string {
	text, err := os.ReadFile(path)
	switch {
	case err != nil:
		return fmt.Sprintf("its build is unknown: %v", err)
	case !bytes.HasPrefix(text, []byte("\x7fELF")):
		return "its build is unknown: it is a script or a wrapper"
	case bytes.Contains(text, []byte(logged)):
		return "built with logging macros, which make it slower; optimisation not recorded"
	}
	return "no logging macros in the binary; optimisation not recorded, want -O2"
}
