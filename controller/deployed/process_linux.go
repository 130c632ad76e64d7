package deployed

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// exiting is PF_EXITING of the kernel: what the process had open may be closed by now,
// long before it is gone.
const exiting = 4

// processStart names a process by when it began, since its number will be
// another's one day. It is "" where there is none, or one that is about to end, or has
// ended and nobody has waited for it.
func processStart(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	return startIn(text)
}

// startIn is processStart by what /proc has of it.
func startIn(text []byte) string {
	// The name, in parentheses, may hold anything; the state, as field 9 the flags and,
	// as field 22, the start in ticks since the machine's follow.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return ""
	}
	if flags, _ := strconv.ParseUint(string(fields[6]), 10, 64); flags&exiting != 0 {
		return ""
	}
	// Processes that begin within one tick differ by their names at least.
	name := text[bytes.IndexByte(text, '(')+1 : bytes.LastIndexByte(text, ')')]
	return string(fields[19]) + " " + string(name)
}
