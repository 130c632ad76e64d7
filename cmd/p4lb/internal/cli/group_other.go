//go:build !unix

package cli

import (
	"os/exec"
	"time"
)

// Group has a command end, though not what it has started.
func Group(cmd *exec.Cmd) { cmd.WaitDelay = 100 * time.Millisecond }
