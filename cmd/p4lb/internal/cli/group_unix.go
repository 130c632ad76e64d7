//go:build unix

package cli

import (
	"os/exec"
	"syscall"
	"time"
)

// Group has a command end with all that it has started: a compiler is a script
// that runs others, and what it says ends when they all do.
func Group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 100 * time.Millisecond
}
