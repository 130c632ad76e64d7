//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// asNobody makes a command run as an unprivileged user.
func asNobody(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}
