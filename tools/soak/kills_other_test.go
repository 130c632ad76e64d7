//go:build !unix

package main

import "os/exec"

// asNobody does nothing on this system.
func asNobody(*exec.Cmd) {}
