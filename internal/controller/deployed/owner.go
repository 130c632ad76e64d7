package deployed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// The process that runs a deployment owns it: it holds a POSIX record lock on the
// deployment's lock file until it ends. The kernel reports the holder of such a lock
// and drops the lock with the process. So p4lb never trusts a process id in a file:
// neither an edited file nor a reused id can make it signal a process that does not
// run this deployment.
//
// A process loses its record locks on a file when it closes any descriptor of the
// file. owned lists the locks of this process, and p4lb does not open their files
// again.
var (
	ownedMu sync.Mutex
	owned   = map[string]*Lock{}
)

// A Lock proves that this process owns a deployment.
type Lock struct {
	state string
	key   string // absolute name of the lock file
	file  *os.File
}

// An OwnedError reports that another process owns the deployment.
type OwnedError struct{ PID int }

func (e *OwnedError) Error() string { return fmt.Sprintf("process %d runs this deployment", e.PID) }

// Own makes this process the owner of a deployment. If another process owns it, the error wraps
// an OwnedError.
func Own(state string) (*Lock, error) {
	key, err := filepath.Abs(lockFile(state))
	if err != nil {
		return nil, fmt.Errorf("locking the deployment: %w", err)
	}
	ownedMu.Lock()
	defer ownedMu.Unlock()
	if owned[key] != nil {
		return nil, &OwnedError{os.Getpid()}
	}
	if err := os.MkdirAll(filepath.Dir(key), 0o700); err != nil {
		return nil, fmt.Errorf("locking the deployment: %w", err)
	}
	for {
		f, err := openRegular(key, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return nil, fmt.Errorf("locking the deployment: %w", err)
		}
		lock := wholeFile(unix.F_WRLCK)
		switch err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock); {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
			pid, err := holder(f)
			f.Close()
			if err == nil && pid == 0 {
				continue // the owner has just ended
			}
			return nil, errors.Join(&OwnedError{pid}, err)
		case err != nil:
			f.Close()
			return nil, fmt.Errorf("locking the deployment: %s: %w", key, err)
		}
		// A previous owner may have removed the file after it was opened here.
		if mine, err := f.Stat(); err == nil {
			if now, err := os.Lstat(key); err == nil && os.SameFile(mine, now) {
				l := &Lock{state, key, f}
				owned[key] = l
				return l, nil
			}
		}
		f.Close()
	}
}

func wholeFile(kind int16) unix.Flock_t { return unix.Flock_t{Type: kind, Whence: io.SeekStart} }

// Release ends the ownership. It keeps the deployment's state and log.
func (l *Lock) Release() error {
	ownedMu.Lock()
	defer ownedMu.Unlock()
	return l.release()
}

func (l *Lock) release() error {
	if owned[l.key] != l {
		return nil // already released
	}
	delete(owned, l.key)
	return errors.Join(remove(l.key), l.file.Close())
}

// Forget removes the files of the deployment and gives it up.
func (l *Lock) Forget() error {
	ownedMu.Lock()
	defer ownedMu.Unlock()
	return errors.Join(remove(l.state, LogFile(l.state), partFile(l.state)), l.release())
}

// Owner returns the process that runs a deployment, or 0 if none does. It is -1 if the owner is
// in another PID namespace.
func Owner(state string) (pid int, err error) {
	key, err := filepath.Abs(lockFile(state))
	if err != nil {
		return 0, err
	}
	ownedMu.Lock()
	defer ownedMu.Unlock()
	if owned[key] != nil {
		return os.Getpid(), nil
	}
	f, err := openRegular(key, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the lock: %s: %w", key, plain.Bare(err))
	}
	defer f.Close()
	return holder(f)
}

// holder asks the kernel which process locks a file.
func holder(f *os.File) (pid int, err error) {
	lock := wholeFile(unix.F_WRLCK)
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil {
		return 0, fmt.Errorf("reading the lock: %s: %w", f.Name(), err)
	}
	return processOf(&lock), nil
}

// processOf returns the process that holds a lock as the kernel describes it. The kernel names
// no process of another PID namespace.
func processOf(lock *unix.Flock_t) int {
	switch {
	case lock.Type == unix.F_UNLCK:
		return 0
	case lock.Pid <= 0:
		return -1
	}
	return int(lock.Pid)
}

// ErrStays is wrapped by the error for an owner that does not end in time.
var ErrStays = errors.New("has not ended")

// EndOwner asks the owner of a deployment to end and waits for it. It returns the owner's process
// id, or 0 if there was none.
func EndOwner(ctx context.Context, state string, patience time.Duration) (pid int, err error) {
	pid, err = Owner(state)
	switch {
	case err != nil || pid == 0:
		return 0, err
	case pid < 0:
		return pid, errors.New("a process in another namespace of processes runs this deployment: end it there")
	case pid == os.Getpid():
		return pid, errors.New("this process runs the deployment")
	}
	// Open the process before checking the ownership again, so that the signal reaches only the
	// owner.
	p, err := os.FindProcess(pid)
	if err != nil {
		return pid, fmt.Errorf("ending process %d: %w", pid, err)
	}
	defer p.Release()
	if now, err := Owner(state); err != nil || now != pid {
		return 0, err
	}
	if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return pid, fmt.Errorf("ending process %d: %w", pid, err)
	}
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	late := time.After(patience)
	for {
		if now, err := Owner(state); err != nil || now != pid {
			return pid, err
		}
		select {
		case <-ctx.Done():
			return pid, ctx.Err()
		case <-late:
			return pid, fmt.Errorf("process %d %w within %v", pid, ErrStays, patience)
		case <-poll.C:
		}
	}
}
