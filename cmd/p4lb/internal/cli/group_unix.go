//go:build unix

package cli

import (
	"os/exec"
	"syscall"
	"time"
)

// Group makes cancellation kill a command together with all processes that it
// started. A compiler may be a script that starts others, and its output ends
// only with the last of them.
func Group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 100 * time.Millisecond
}
