package hosts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// inside marks the process that has entered a user namespace.
const inside = "P4LB_IN_USER_NAMESPACE"

// Capable reports whether this process may create network namespaces.
func Capable() bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&head, &data[0]) != nil {
		return false
	}
	const wanted = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_NET_RAW
	return data[0].Effective&wanted == wanted
}

// Possible returns an error that names the reason why hosts cannot be created here,
// with or without root. It creates namespaces for a process that ends immediately.
func Possible() error {
	if Capable() {
		return nil
	}
	cmd := exec.Command("true")
	cmd.SysProcAttr = root(syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", ErrNotHere, setting())
	}
	return nil
}

// root makes a process root in a user namespace. Outside of it, the process has
// this user's rights.
func root(namespaces uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  namespaces,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}

// AsRoot runs this program again, with the same arguments, as root of a new user
// namespace, in which it may create network namespaces. It returns the exit code of
// that process, which ends with this one.
func AsRoot() (code int, err error) {
	if os.Getenv(inside) != "" {
		return 0, fmt.Errorf("%w: %s", ErrNotHere, setting())
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = root(syscall.CLONE_NEWUSER)
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.Args[0] = os.Args[0]
	var waits *os.File
	if IsDetached() {
		waits = os.NewFile(readyFile, "the process that waits")
		cmd.ExtraFiles = []*os.File{waits}
	}
	runtime.LockOSThread() // the kernel ends the process with this thread
	defer runtime.UnlockOSThread()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("%w: %s", ErrNotHere, setting())
	}
	if waits != nil {
		// Callers wait until the output of the other process ends, too.
		waits.Close()
		if null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err == nil {
			redirect(int(null.Fd()))
			null.Close()
		}
	}
	go func() {
		for s := range signals {
			// A terminal sends an interrupt to both processes.
			if s != syscall.SIGINT || !isTerminal() {
				cmd.Process.Signal(s)
			}
		}
	}()
	err = cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		err = nil
	}
	return cmd.ProcessState.ExitCode(), err
}

func isTerminal() bool {
	_, err := unix.IoctlGetTermios(int(os.Stdin.Fd()), unix.TCGETS)
	return err == nil
}

// refusal explains why namespaces cannot be created.
func refusal(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%w: %s", ErrNotHere, setting())
	}
	return err
}

// setting names the kernel setting that forbids namespaces.
func setting() string {
	for _, s := range []struct{ file, bad, want string }{
		{"kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"},
		{"user/max_user_namespaces", "0", "user.max_user_namespaces=10000"},
		{"user/max_net_namespaces", "0", "user.max_net_namespaces=10000"},
		{"kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"},
	} {
		text, err := os.ReadFile("/proc/sys/" + s.file)
		if err == nil && strings.TrimSpace(string(text)) == s.bad {
			return fmt.Sprintf("the kernel keeps users from making namespaces; sudo, or sysctl %s", s.want)
		}
	}
	return "the kernel refuses to make namespaces; sudo may help"
}
