package deployed

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// stateDir returns the folder for the state of the user's deployments: $XDG_STATE_HOME/p4lb, or
// ~/.local/state/p4lb. It creates the folder, and rejects a folder that another user can change.
func stateDir() (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) { // the XDG specification requires ignoring relative paths
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("finding the state folder: %w: set XDG_STATE_HOME or HOME", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	dir := filepath.Join(base, "p4lb")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the state folder %s: %w: set XDG_STATE_HOME to a folder of your own", dir, plain.Bare(err))
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("opening the state folder %s: %w", dir, plain.Bare(err))
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return "", fmt.Errorf("opening the state folder %s: not a folder: remove it, or set XDG_STATE_HOME", dir)
	case known && int(owner.Uid) != os.Geteuid():
		return "", fmt.Errorf("opening the state folder %s: it belongs to user %d: set XDG_STATE_HOME to a folder of your own", dir, owner.Uid)
	case info.Mode().Perm()&0o022 != 0:
		return "", fmt.Errorf("opening the state folder %s: other users may write to it: chmod 700 it", dir)
	}
	return dir, nil
}

// StateOf returns the state file of the deployment made from a folder.
func StateOf(folder string) (string, error) {
	dir, err := stateDir()
	if err != nil {
		return "", err
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return "", fmt.Errorf("finding the state: %w", err)
	}
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, filepath.Base(folder))
	sum := sha256.Sum256([]byte(folder))
	return filepath.Join(dir, fmt.Sprintf("%.40s-%x.json", name, sum[:4])), nil
}

// States lists the state files of the user's deployments.
func States() ([]string, error) {
	dir, err := stateDir()
	if err != nil {
		return nil, err
	}
	return filepath.Glob(filepath.Join(dir, "*.json"))
}

// LogFile returns the log file of a detached deployment, next to its state.
func LogFile(state string) string { return beside(state, ".log") }

func partFile(state string) string { return beside(state, ".part") }

func lockFile(state string) string { return beside(state, ".lock") }

func beside(state, ext string) string {
	return strings.TrimSuffix(state, filepath.Ext(state)) + ext
}

// OpenLog empties the log of a deployment and opens it for appending.
func OpenLog(state string) (*os.File, error) {
	return openRegular(LogFile(state), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND)
}

// errLink reports a state file that is a symbolic link.
var errLink = errors.New("a symbolic link: want a file")

// openRegular opens a file of a deployment. It follows no symbolic link in the last path element,
// and does not block on a pipe.
func openRegular(name string, flags int) (*os.File, error) {
	truncate := flags&os.O_TRUNC != 0
	f, err := os.OpenFile(name, flags&^os.O_TRUNC|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	switch {
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.EMLINK): // EMLINK on FreeBSD
		return nil, &fs.PathError{Op: "open", Path: name, Err: errLink}
	case err != nil:
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: plain.ErrNotRegular}
	}
	if err == nil && truncate {
		err = f.Truncate(0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Forget removes the files of a deployment without an owner. It keeps a lock file that a process
// holds.
func Forget(state string) error {
	l, err := Own(state)
	if err != nil {
		return err
	}
	return l.Forget()
}

func remove(files ...string) error {
	var errs []error
	for _, file := range files {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
