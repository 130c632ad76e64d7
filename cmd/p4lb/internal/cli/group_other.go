//go:build !unix

package cli

import (
	"os/exec"
	"time"
)

// Group limits the wait for the output of a cancelled command. The processes
// that it started continue.
func Group(cmd *exec.Cmd) { cmd.WaitDelay = 100 * time.Millisecond }
