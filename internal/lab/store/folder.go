package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// A folder is a bucket in a file system, which several machines may share. An
// object is written to a temporary file and then linked to its name; the link
// succeeds for exactly one of several writers.
type folder struct{ root string }

// scratchName is the folder of temporary files. No object's name begins with it.
const scratchName = ".tmp"

// mkdirTries is how often put creates an object's folder again. Removing the
// last object of a folder also removes the folder, even if another process has
// just created it.
const mkdirTries = 1000

func (d *folder) String() string { return d.root }

func (d *folder) path(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

func (d *folder) scratch() (string, error) {
	dir := filepath.Join(d.root, scratchName)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", d.explain("writing into", err)
	}
	return dir, nil
}

func (d *folder) put(_ context.Context, name string, b *body, fresh bool) error {
	temp, err := d.temp(b)
	if err != nil {
		return d.explain("writing "+name+" into", err)
	}
	defer os.Remove(temp)
	final := d.path(name)
	place := os.Rename
	if fresh {
		place = linkNew
	}
	err = place(temp, final)
	for n := 0; n < mkdirTries && errors.Is(err, fs.ErrNotExist); n++ { // its folder does not exist
		if err = os.MkdirAll(filepath.Dir(final), 0o777); err == nil {
			err = place(temp, final)
		} else if errors.Is(err, fs.ErrExist) { // it existed and was removed in between
			err = fs.ErrNotExist
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return errExists
	}
	if err != nil {
		return d.explain("writing "+name+" into", err)
	}
	return nil
}

// temp returns a file in the folder's file system with the content of b.
func (d *folder) temp(b *body) (string, error) {
	dir, err := d.scratch()
	if err != nil {
		return "", err
	}
	if b.file != "" && filepath.Dir(b.file) == dir {
		return b.file, os.Chmod(b.file, 0o644)
	}
	f, err := os.CreateTemp(dir, "put-")
	if err != nil {
		return "", err
	}
	in, err := b.open()
	if err == nil {
		_, err = io.Copy(f, in)
		in.Close()
	}
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err != nil {
		os.Remove(f.Name())
	}
	return f.Name(), err
}

// linkNew gives a file a second name that must be free. On file systems without
// hard links it renames the file.
func linkNew(from, to string) error {
	err := os.Link(from, to)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, errors.ErrUnsupported) {
		return markNew(from, to)
	}
	return err
}

// markNew renames a file to a name that must be free. It creates a marker file
// exclusively, which decides between several writers.
func markNew(from, to string) error {
	mark, err := os.OpenFile(to+".new", os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer os.Remove(mark.Name())
	mark.Close()
	if _, err := os.Lstat(to); err == nil {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}

func (d *folder) get(_ context.Context, name string) (io.ReadCloser, error) {
	f, err := plain.OpenFile(d.path(name))
	if err != nil {
		return nil, d.explain("reading "+name+" of", err)
	}
	return f, nil
}

func (d *folder) list(ctx context.Context, prefix string, each func(Object) error) error {
	from := d.path(prefix)
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		from = filepath.Dir(from)
	}
	return filepath.WalkDir(from, func(file string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(d.root, file)
		name := filepath.ToSlash(rel)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return d.explain("listing", err)
		case ctx.Err() != nil:
			return ctx.Err()
		case e.IsDir() && name == scratchName:
			return fs.SkipDir
		case !e.Type().IsRegular() || !strings.HasPrefix(name, prefix):
			return nil
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed in between
		}
		if err != nil {
			return d.explain("listing", err)
		}
		return each(Object{name, info.Size()})
	})
}

func (d *folder) remove(_ context.Context, name string) error {
	file := d.path(name)
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d.explain("removing "+name+" of", err)
	}
	for dir := filepath.Dir(file); len(dir) > len(d.root) && os.Remove(dir) == nil; {
		dir = filepath.Dir(dir)
	}
	return nil
}

// explain adds the store to an error and classifies it.
func (d *folder) explain(doing string, err error) error {
	cause := plain.Bare(err)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		cause = ErrFull
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		cause = fmt.Errorf("%w (%v)", ErrDenied, cause)
	}
	return fmt.Errorf("%s the store %s: %w", doing, d.root, cause)
}
