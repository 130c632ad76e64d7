package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// Names of the files in a run's folder.
const (
	resultFile = "result.json"
	flowsFile  = "flows.csv"
	linksFile  = "links.csv"
)

// ErrDiskFull is wrapped by the error of a run whose results could not be stored.
var ErrDiskFull = errors.New("the disk is full")

// closing closes a file that was written. Its error names the file.
func closing(f *os.File) error {
	if err := f.Close(); err != nil {
		return fileError("writing", f.Name(), err)
	}
	return nil
}

// writeJSON writes a file in JSON.
func writeJSON(name string, v any) error {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return writeFile(name, append(text, '\n'))
}

// writeFile writes a file atomically: other processes see the old file until the new one is
// complete.
func writeFile(name string, data []byte) error {
	if err := plain.WriteFile(name, data); err != nil {
		return fileError("writing", name, err)
	}
	return nil
}

// fileError names the file once, and recognises a full disk.
func fileError(doing, name string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%s %s: %w", doing, name, ErrDiskFull)
	}
	return fmt.Errorf("%s %s: %w", doing, name, plain.Bare(err))
}

// diskError returns the error of a run, shortened to one line if the disk is full.
func diskError(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return fileError("writing", filepath.Base(path.Path), err)
	}
	return err
}
