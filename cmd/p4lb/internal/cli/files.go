package cli

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// A hostFS presents the machine's file system as an fs.FS with root "/", so
// every file has a valid name regardless of the current folder. It remembers
// how the user typed folders, and shows files below them in the same form.
type hostFS struct {
	cwd   string // absolute
	typed []typedFolder
}

type typedFolder struct{ name, typed string }

// file returns the name in h of a file as typed by the user.
func (h *hostFS) file(typed string) string {
	h.folder(filepath.Dir(typed))
	return h.rooted(typed)
}

// folder returns the name in h of a folder as typed by the user.
func (h *hostFS) folder(typed string) string {
	name := h.rooted(typed)
	h.typed = append(h.typed, typedFolder{name, typed})
	return name
}

func (h *hostFS) rooted(typed string) string {
	if !filepath.IsAbs(typed) {
		typed = filepath.Join(h.cwd, typed)
	}
	name := strings.TrimPrefix(filepath.ToSlash(filepath.Clean(typed)), "/")
	return cmp.Or(name, ".")
}

// show returns the name of a file in h as the user would type it: relative to
// the innermost folder that the user named, else to the current folder, else
// absolute.
func (h *hostFS) show(name string) string {
	best, shown := -1, "/"+name
	for _, f := range append(h.typed, typedFolder{h.rooted(h.cwd), "."}) {
		rest, ok := strings.CutPrefix(name, f.name+"/")
		if ok && len(f.name) > best {
			best, shown = len(f.name), filepath.Join(f.typed, rest)
		}
	}
	return shown
}

// Open opens the named file.
func (h *hostFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return plain.OpenFile("/" + name)
}

// ReadFile reads a named regular file within the size limit of sources.
func (h *hostFS) ReadFile(name string) ([]byte, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return plain.ReadFile("/" + name)
}

// ReadSource reads a file named on the command line; - is standard input.
func (c *Console) ReadSource(name string) (text []byte, err error) {
	if name == "-" {
		text, err = plain.ReadAll(c.In)
	} else {
		text, err = plain.ReadFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", DisplayName(name), err)
	}
	return text, nil
}

// KeyPair reads a TLS certificate and its key.
func KeyPair(cert, key string) (tls.Certificate, error) {
	text, err := plain.ReadFile(cert)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("reading the certificate %s: %w", cert, err)
	}
	secret, err := plain.ReadFile(key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("reading the key %s: %w", key, err)
	}
	pair, err := tls.X509KeyPair(text, secret)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("reading the certificate %s and its key: %w", cert, err)
	}
	return pair, nil
}

// Besides returns a function that reads files from the first of dirs that
// contains them, or else relative to the current folder.
func Besides(dirs ...string) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		for _, dir := range dirs {
			if text, err := plain.ReadFile(filepath.Join(dir, name)); err == nil && !filepath.IsAbs(name) {
				return text, nil
			}
		}
		return plain.ReadFile(name)
	}
}

// DisplayName returns the name of a command line file in messages.
func DisplayName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}

// Outputs are files that p4lb writes together: Stage writes each beside its
// destination, and Commit moves all into place after the last is complete.
// Until then existing files are unchanged.
type Outputs struct {
	staged []stagedFile
}

type stagedFile struct {
	name string
	file *plain.NewFile
}

// Stage writes data to a temporary file for the file of that name.
func (o *Outputs) Stage(name string, data []byte) error {
	f, err := plain.Create(name)
	if err != nil {
		return CannotWrite(name, err)
	}
	o.staged = append(o.staged, stagedFile{name, f})
	_, err = f.Write(data)
	if err = cmp.Or(err, f.Close()); err != nil { // closed at once, as there may be many files
		return CannotWrite(name, err)
	}
	return nil
}

// CannotWrite returns the error of a failed write, with a hint if the folder is
// missing.
func CannotWrite(name string, err error) error {
	err = fmt.Errorf("writing %s: %w", name, plain.Bare(err))
	if errors.Is(err, fs.ErrNotExist) {
		return Hinted(err, "the folder %s does not exist", filepath.Dir(name))
	}
	return err
}

// Commit moves the staged files into place.
func (o *Outputs) Commit() error {
	for len(o.staged) > 0 {
		s := o.staged[0]
		if err := s.file.Place(); err != nil {
			return CannotWrite(s.name, err)
		}
		o.staged = o.staged[1:]
	}
	return nil
}

// Finish moves the staged files into place and prints their names.
func (c *Console) Finish(out *Outputs) error {
	names := lists.Map(out.staged, func(s stagedFile) string { return s.name })
	if err := out.Commit(); err != nil {
		return err
	}
	const most = 6
	switch {
	case len(names) == 0:
	case len(names) > most:
		c.Say("wrote %d files into %s", len(names), filepath.Dir(names[0]))
	default:
		c.Say("wrote %s", strings.Join(names, ", "))
	}
	return nil
}

// WriteFile writes a file and prints its name.
func (c *Console) WriteFile(name string, data []byte) error {
	var out Outputs
	defer out.Discard()
	if err := out.Stage(name, data); err != nil {
		return err
	}
	return c.Finish(&out)
}

// Discard removes staged files that are not committed.
func (o *Outputs) Discard() {
	for _, s := range o.staged {
		s.file.Discard()
	}
	o.staged = nil
}

// RecordFormat returns the recording format of a file name's extension, or "".
func RecordFormat(name string) string {
	ext := strings.TrimPrefix(filepath.Ext(name), ".")
	if !slices.Contains(inspect.RecordFormats, ext) {
		return ""
	}
	return ext
}

// IsFolder reports whether a folder of that name exists.
func IsFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}
