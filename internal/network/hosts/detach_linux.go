package hosts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// ready marks a background process. Its first file after the standard streams reports
// that it has started.
const ready = "P4LB_READY"

const readyFile = 3

// IsDetached reports whether this process has been started by Detach.
func IsDetached() bool { return os.Getenv(ready) != "" }

// Detach runs this program again in the background with the same arguments. It waits
// until the new process calls Begun, and prints its output until then. If the new
// process ends instead, code is its exit code.
func Detach() (begun bool, code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return false, 0, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return false, 0, err
	}
	defer r.Close()
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), ready+"=1")
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stdout, os.Stderr, []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return false, 0, fmt.Errorf("starting in the background: %w", err)
	}
	if n, _ := r.Read(make([]byte, 1)); n > 0 {
		return true, 0, cmd.Process.Release()
	}
	err = cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		err = nil
	}
	return false, cmd.ProcessState.ExitCode(), err
}

// Begun reports to the waiting process that this one has started. Later output goes to
// the log.
func Begun(log *os.File) error {
	if err := redirect(int(log.Fd())); err != nil {
		return err
	}
	w := os.NewFile(readyFile, "the process that waits")
	_, err := w.Write([]byte{1})
	return errors.Join(err, w.Close())
}

// redirect redirects standard output and standard error to a file.
func redirect(fd int) error {
	for _, std := range []int{1, 2} {
		if err := unix.Dup3(fd, std, 0); err != nil {
			return fmt.Errorf("redirecting the output: %w", err)
		}
	}
	return nil
}
