package deployed

import (
	"bytes"
	"fmt"
	"os"
)

// processStart names a process by when it began, since its number will be
// another's one day. It is "" where there is none, or one that has ended and
// that nobody has waited for.
func processStart(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The name, in parentheses, may hold anything; the state and, as field 22,
	// the start in ticks since the machine's follow.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return ""
	}
	// Processes that begin within one tick differ by their names at least.
	name := text[bytes.IndexByte(text, '(')+1 : bytes.LastIndexByte(text, ')')]
	return string(fields[19]) + " " + string(name)
}
