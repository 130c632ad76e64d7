// Package store keeps the results of runs. The key of a run is the digest of
// everything that determines its result. Processes on several machines share a
// store, which is a folder or an object store. A process uses a stored result
// instead of executing the run, so the store provides resuming, sharing and
// caching.
//
// Nothing coordinates the processes. Two properties make this safe: an
// operation that creates an object only if it does not exist (bucket.put), and
// digests of all content.
//
//	p4lb-store.json         the format of the store
//	runs/ab/abcd….run       a result with its digest, and the digests of its tables
//	tables/ef/ef01….csv     rows of a run, named by their digest
//	leases/abcd…/1          the worker that executes a run (lease.go)
//	owners/…                a counter that shows that a worker is alive
//	experiments/NAME-1a2b/… the description of an experiment
//
// A run is written once, after its tables. Damaged objects are reported in one
// line and never used.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Store keeps runs. Its methods are safe for concurrent use.
type Store struct{ b bucket }

const (
	markerName = "p4lb-store.json"
	format     = "p4lb-store 1"
	runFormat  = "p4lb-run 1"
	maxObject  = 64 << 20 // limit for objects that are read completely
)

// schemes lists the URL schemes of stores; any other address is a folder.
var schemes = []string{"file", "s3", "gs", "az"}

// Open opens a store: a folder, or s3://BUCKET/PREFIX, gs://… or az://…. If the
// location is empty, it creates a store if create is set, and returns an error
// that wraps ErrNone otherwise.
func Open(ctx context.Context, addr string, create bool) (*Store, error) {
	b, err := open(addr)
	if err != nil {
		return nil, err
	}
	s := &Store{b}
	text, err := read(ctx, b, markerName, 1<<16)
	if isMissing(err) {
		return s, s.begin(ctx, create)
	}
	if err != nil {
		return nil, err
	}
	var m struct {
		Format string `json:"format"`
	}
	if json.Unmarshal(text, &m) != nil || !strings.HasPrefix(m.Format, "p4lb-store ") {
		return nil, fmt.Errorf("%s of %s was not written by p4lb", markerName, b)
	}
	if m.Format != format {
		return nil, fmt.Errorf("the store %s has format %q, but this p4lb uses %q: use the p4lb version that created it, or another store", b, m.Format, format)
	}
	return s, nil
}

func open(addr string) (bucket, error) {
	scheme, _, ok := strings.Cut(addr, "://")
	if !ok {
		return openFolder(addr)
	}
	u, err := url.Parse(addr)
	if err != nil {
		return nil, fmt.Errorf("store %q: want a folder, or an address such as s3://bucket/prefix", addr)
	}
	if scheme != "file" && u.Host == "" {
		return nil, fmt.Errorf("store %q: want the name of a bucket, as in %s://bucket/prefix", addr, scheme)
	}
	switch scheme {
	case "file":
		if u.Host != "" {
			return nil, fmt.Errorf("store %q: want three slashes, as in file:///%s%s", addr, u.Host, u.Path)
		}
		return openFolder(u.Path)
	case "s3":
		return openS3(u)
	case "gs":
		return openGCS(u)
	case "az":
		return openAzure(u)
	}
	return nil, fmt.Errorf("store %q: want a folder, or an address that begins with one of %s", addr, strings.Join(schemes, "://, ")+"://")
}

func openFolder(dir string) (bucket, error) {
	if dir == "" {
		return nil, errors.New("empty store name: want a folder, or an address such as s3://bucket/prefix")
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("store %s: is a file: want a folder", dir)
	}
	return &folder{filepath.Clean(dir)}, nil
}

// ErrNone is wrapped by the error of Open if there is no store and none may be
// created. The store returned with it is empty.
var ErrNone = errors.New("no store")

var errSomething = errors.New("something is there")

// begin creates a store in an empty location.
func (s *Store) begin(ctx context.Context, create bool) error {
	if !create {
		return fmt.Errorf("%w at %s", ErrNone, s.b)
	}
	var first string
	err := s.b.list(ctx, "", func(o Object) error {
		first = o.Name
		return errSomething
	})
	if errors.Is(err, errSomething) {
		return fmt.Errorf("%s is not a p4lb store and not empty (it has %s): choose another location", s.b, first)
	}
	if err != nil {
		return err
	}
	err = s.b.put(ctx, markerName, bytesBody([]byte(`{"format": "`+format+`"}`+"\n")), true)
	if errors.Is(err, errExists) {
		return nil // another process created it
	}
	return err
}

// String returns the store's address.
func (s *Store) String() string { return s.b.String() }

// Scratch creates a file for Put, which may move it.
func (s *Store) Scratch() (*os.File, error) {
	dir, err := s.b.scratch()
	if err != nil {
		return nil, err
	}
	return os.CreateTemp(dir, "p4lb-run-")
}

// A Run is the stored result of a run.
type Run struct {
	Result json.RawMessage  `json:"result"`
	Tables map[string]Table `json:"tables"` // by name, for example flows.csv
}

// A Table is a table of a run, stored under its digest.
type Table struct {
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

func (t Table) name() string { return "tables/" + t.Digest[:2] + "/" + t.Digest }

func runName(key string) string { return "runs/" + key[:2] + "/" + key + ".run" }

// keyLength is the number of hexadecimal digits in a key.
const keyLength = 32

// IsKey reports whether text can be the key of a run.
func IsKey(text string) bool { return isHex(text, keyLength) }

// isHex reports whether text consists of n lower-case hexadecimal digits.
func isHex(text string, n int) bool {
	return len(text) == n && strings.Trim(text, "0123456789abcdef") == ""
}

// ErrMissing is wrapped by errors about an object that the store does not have.
var ErrMissing = errors.New("not in the store")

// A DamagedError describes an object with content that does not match its name.
type DamagedError struct{ Store, Name, Why string }

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s of the store %s %s: it is not used", e.Name, e.Store, e.Why)
}

// Get reads a run and verifies its key and digest.
func (s *Store) Get(ctx context.Context, key string) (*Run, error) {
	name := runName(key)
	text, err := read(ctx, s.b, name, maxObject)
	if isMissing(err) {
		return nil, fmt.Errorf("run %s: %w", key, ErrMissing)
	}
	if err != nil {
		return nil, err
	}
	run, why := parseRun(key, text)
	if why != "" {
		return nil, &DamagedError{s.String(), name, why}
	}
	return run, nil
}

// parseRun parses a run's object, or returns the reason why it is invalid.
func parseRun(key string, text []byte) (run *Run, why string) {
	head, rest, whole := strings.Cut(string(text), "\n")
	var gotKey, sum string
	var size int
	if n, _ := fmt.Sscanf(head, runFormat+" %s %s %d", &gotKey, &sum, &size); n != 3 {
		switch {
		case len(text) == 0:
			return nil, "is empty"
		case !whole && (strings.HasPrefix(runFormat, head) || strings.HasPrefix(head, runFormat)):
			return nil, fmt.Sprintf("is truncated to %d bytes", len(text))
		case strings.HasPrefix(head, "p4lb-run "):
			return nil, "was written by another version of p4lb"
		}
		return nil, "is not a run"
	}
	switch {
	case gotKey != key:
		return nil, "is the run " + gotKey
	case len(rest) < size:
		return nil, fmt.Sprintf("is truncated: %d bytes of %d", len(rest), size)
	case len(rest) != size || digest([]byte(rest)) != sum:
		return nil, "does not match its digest"
	}
	run = new(Run)
	if err := json.Unmarshal([]byte(rest), run); err != nil {
		return nil, "is not valid JSON"
	}
	for _, t := range run.Tables {
		if !isHex(t.Digest, 2*sha256.Size) {
			return nil, "names a table without a digest"
		}
	}
	return run, ""
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// errDiffers is wrapped by Put's error about a stored run with a different
// result.
var errDiffers = errors.New("the same run has two different results")

// Put stores a run: its result in JSON and its tables, which are files. Storing
// the same result again changes nothing; with replace an existing run is
// overwritten.
func (s *Store) Put(ctx context.Context, key string, result []byte, tables map[string]string, replace bool) error {
	run := Run{Result: result, Tables: map[string]Table{}}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		b, err := fileBody(tables[name])
		if err != nil {
			return err
		}
		t := Table{b.digest(), b.size}
		if err := s.b.put(ctx, t.name(), b, false); err != nil {
			return err
		}
		run.Tables[name] = t
	}
	text, err := json.Marshal(run)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	head := fmt.Sprintf("%s %s %s %d\n", runFormat, key, digest(text), len(text))
	return s.putRun(ctx, key, append([]byte(head), text...), replace)
}

func (s *Store) putRun(ctx context.Context, key string, object []byte, replace bool) error {
	err := s.b.put(ctx, runName(key), bytesBody(object), !replace)
	if !errors.Is(err, errExists) {
		return err
	}
	have, err := read(ctx, s.b, runName(key), maxObject)
	if err != nil {
		return err
	}
	if string(have) != string(object) {
		if _, why := parseRun(key, have); why != "" {
			return s.putRun(ctx, key, object, true)
		}
		return fmt.Errorf("%w: %s of %s: the binaries differ, or a run depends on something outside its key", errDiffers, runName(key), s)
	}
	return nil
}

// Has returns the keys of all stored runs, with the sizes of their objects,
// without reading them.
func (s *Store) Has(ctx context.Context) (map[string]int64, error) {
	keys := map[string]int64{}
	err := s.b.list(ctx, "runs/", func(o Object) error {
		base := o.Name[strings.LastIndexByte(o.Name, '/')+1:]
		if key, ok := strings.CutSuffix(base, ".run"); ok && IsKey(key) {
			keys[key] = o.Size
		}
		return nil
	})
	return keys, err
}

// OpenTable opens a table of a run. Reading it to the end verifies its digest.
func (s *Store) OpenTable(ctx context.Context, t Table) (io.ReadCloser, error) {
	r, err := s.b.get(ctx, t.name())
	if isMissing(err) {
		return nil, &DamagedError{s.String(), t.name(), "is missing"}
	}
	if err != nil {
		return nil, err
	}
	return &checked{ReadCloser: r, s: s, t: t, sum: sha256.New()}, nil
}

// A checked reader returns an error at the end if the content does not match
// its digest.
type checked struct {
	io.ReadCloser
	s   *Store
	t   Table
	sum interface {
		io.Writer
		Sum([]byte) []byte
	}
	size int64
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.sum.Write(p[:n])
	if c.size += int64(n); c.size > c.t.Size {
		return n, &DamagedError{c.s.String(), c.t.name(), fmt.Sprintf("is longer than its %d bytes", c.t.Size)}
	}
	if err != io.EOF {
		return n, err
	}
	switch {
	case c.size < c.t.Size:
		return n, &DamagedError{c.s.String(), c.t.name(), fmt.Sprintf("is truncated: %d bytes of %d", c.size, c.t.Size)}
	case hex.EncodeToString(c.sum.Sum(nil)) != c.t.Digest:
		return n, &DamagedError{c.s.String(), c.t.name(), "does not match the digest in its name"}
	}
	return n, io.EOF
}

// PutText stores a small text under a name and replaces an existing one.
func (s *Store) PutText(ctx context.Context, name string, text []byte) error {
	return s.b.put(ctx, name, bytesBody(text), false)
}

// Text reads a small text; the error wraps ErrMissing if there is none.
func (s *Store) Text(ctx context.Context, name string) ([]byte, error) {
	text, err := read(ctx, s.b, name, maxObject)
	if isMissing(err) {
		return nil, fmt.Errorf("%s: %w", name, ErrMissing)
	}
	return text, err
}

// List returns the objects with the prefix.
func (s *Store) List(ctx context.Context, prefix string) (list []Object, err error) {
	err = s.b.list(ctx, prefix, func(o Object) error { list = append(list, o); return nil })
	return list, err
}
