package hosts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// All commands on the hosts of a network share one PID namespace. Its first process
// reaps orphans and ends with the process that owns the network. The kernel then ends
// all others, including daemons in other sessions.

// first marks the first process of a network.
const first = "P4LB_FIRST_OF_NETWORK"

// lifeFile is the descriptor of the pipe by which the first process detects the end of the owner.
const lifeFile = 3

// The first process of a network is this program, started again. It never leaves
// this init function, so no program that uses the package has to handle this case.
func init() {
	if os.Getenv(first) == "" {
		return
	}
	go func() {
		// The kernel closes the other end when the owning process ends. The parent-death signal
		// is not sufficient: it is lost if the owner is killed before the signal is requested,
		// and in its own namespace the first process cannot send it to itself.
		os.NewFile(lifeFile, "the process that has the network").Read(make([]byte, 1))
		os.Exit(0)
	}()
	ended := make(chan os.Signal, 1)
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	signal.Notify(ended, syscall.SIGCHLD)
	for range ended {
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if err != nil || pid <= 0 {
				break
			}
		}
	}
}

// startFirst starts the first process and keeps its namespace open.
func (n *Network) startFirst() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	life, alive, err := os.Pipe()
	if err != nil {
		return err
	}
	defer life.Close()
	n.alive = alive
	cmd := exec.Command(self)
	cmd.Args[0], cmd.ExtraFiles = os.Args[0], []*os.File{life}
	cmd.Env = []string{first + "=1", "GOMAXPROCS=1"}
	if IsDetached() {
		unix.CloseOnExec(readyFile) // it must outlive the waiting process
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Setsid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	n.finished.Go(func() {
		runtime.LockOSThread() // the kernel ends the process with the thread that started it
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
		}
	})
	if err := <-started; err != nil {
		return fmt.Errorf("starting the first process of the hosts: %w", err)
	}
	n.first = cmd.Process
	n.processes, err = os.Open(fmt.Sprintf("/proc/%d/ns/pid", cmd.Process.Pid))
	return err
}

// endAll ends all processes on the hosts.
func (n *Network) endAll() error {
	if n.first == nil {
		if n.alive != nil {
			return n.alive.Close()
		}
		return nil
	}
	err := errors.Join(n.first.Kill(), n.alive.Close())
	if n.processes != nil {
		err = errors.Join(err, n.processes.Close())
	}
	n.finished.Wait()
	return err
}
