// Package store keeps what runs came to, each under the digest of all that
// decides it, where several processes on several machines find it: in a folder,
// which they may share, or in an object store. Whoever looks for a run that
// somebody has made already takes it; so resuming, sharing and caching are one.
//
// Nothing coordinates the processes. What makes that safe is one operation, to
// put an object only where there is none (bucket.put), and digests:
//
//	p4lb-store.json         which form the store has
//	runs/ab/abcd….run       a result, with its digest, and the digests of its tables
//	tables/ef/ef01….csv     rows of a run, under their own digest
//	leases/abcd…/1          who makes a run now (lease.go)
//	owners/…                that he is still there, by a counter
//	experiments/NAME-1a2b/… what an experiment consists of
//
// A run is written once, whole, after its tables. What is truncated, or is
// something else, is said in one line and never used.
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

// A Store keeps runs. All methods may be called at once.
type Store struct{ b bucket }

const (
	markerName = "p4lb-store.json"
	format     = "p4lb-store 1"
	runFormat  = "p4lb-run 1"
	maxObject  = 64 << 20 // of what is read as a whole
)

// schemes lists how addresses of stores begin; all else is a folder.
var schemes = []string{"file", "s3", "gs", "az"}

// Open opens a store: a folder, or s3://BUCKET/PREFIX, gs://… or az://…. Where
// there is nothing yet, it makes one if it may, and says so otherwise.
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
		return nil, fmt.Errorf("%s of %s is none of p4lb's", markerName, b)
	}
	if m.Format != format {
		return nil, fmt.Errorf("the store %s has the form %q, this p4lb knows %q: want the p4lb that made it, or another store", b, m.Format, format)
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
		return nil, errors.New("the store has no name: want a folder, or an address such as s3://bucket/prefix")
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("store %s: is a file: want a folder", dir)
	}
	return &folder{filepath.Clean(dir)}, nil
}

// ErrNone is wrapped by the error of opening what is not there and is not to be
// made; the store that comes with it is empty.
var ErrNone = errors.New("there is no store")

var errSomething = errors.New("something is there")

// begin makes a store where nothing is.
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
		return fmt.Errorf("%s is no store of p4lb's, and not empty (%s): want another place", s.b, first)
	}
	if err != nil {
		return err
	}
	err = s.b.put(ctx, markerName, bytesBody([]byte(`{"format": "`+format+`"}`+"\n")), true)
	if errors.Is(err, errExists) {
		return nil // another one began it
	}
	return err
}

// String is the store's address.
func (s *Store) String() string { return s.b.String() }

// Scratch makes a file to be given to Put, which may move it away.
func (s *Store) Scratch() (*os.File, error) {
	dir, err := s.b.scratch()
	if err != nil {
		return nil, err
	}
	return os.CreateTemp(dir, "p4lb-run-")
}

// A Run is what the store has of a run.
type Run struct {
	Result json.RawMessage  `json:"result"`
	Tables map[string]Table `json:"tables"` // by name, such as flows.csv
}

// A Table is rows of a run, kept under their digest.
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

// isHex reports whether text is lower-case hexadecimal of a length.
func isHex(text string, n int) bool {
	return len(text) == n && strings.Trim(text, "0123456789abcdef") == ""
}

// ErrMissing is wrapped by Get's error about a run that the store does not have.
var ErrMissing = errors.New("the store does not have it")

// A DamagedError is about an object that is not what its name says.
type DamagedError struct{ Store, Name, Why string }

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s of the store %s %s: it is not used", e.Name, e.Store, e.Why)
}

// Get reads a run, and checks that it is the one, and whole.
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

// parseRun takes a run's object apart, or says what is wrong with it.
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
			return nil, "is of another version of p4lb"
		}
		return nil, "is something else than a run"
	}
	switch {
	case gotKey != key:
		return nil, "is the run " + gotKey
	case len(rest) < size:
		return nil, fmt.Sprintf("is truncated: %d bytes of %d", len(rest), size)
	case len(rest) != size || digest([]byte(rest)) != sum:
		return nil, "has another digest than it says"
	}
	run = new(Run)
	if err := json.Unmarshal([]byte(rest), run); err != nil {
		return nil, "is no JSON behind its digest"
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

// errDiffers is wrapped by Put's error about a run that is there with another
// result.
var errDiffers = errors.New("the same run came to two results")

// Put keeps a run: its result in JSON, and its tables, which are files. Where
// another one has kept it meanwhile, with the same result, nothing changes; with
// replace what is there goes.
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
		return fmt.Errorf("%w: %s of %s: the binaries differ, or a run depends on what is not in its key", errDiffers, runName(key), s)
	}
	return nil
}

// Has reports which runs there are, by key, without reading them, and how large
// what is read of them first is.
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

// OpenTable reads the rows of a run. Whoever reads them to the end hears whether
// they are what was kept.
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

// A checked reader ends with an error where what it has read has another digest.
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
		return n, &DamagedError{c.s.String(), c.t.name(), "has another digest than its name"}
	}
	return n, io.EOF
}

// PutText keeps a small text under a name, and replaces what is there.
func (s *Store) PutText(ctx context.Context, name string, text []byte) error {
	return s.b.put(ctx, name, bytesBody(text), false)
}

// Text reads a small text; an error that wraps ErrMissing says that there is none.
func (s *Store) Text(ctx context.Context, name string) ([]byte, error) {
	text, err := read(ctx, s.b, name, maxObject)
	if isMissing(err) {
		return nil, fmt.Errorf("%s: %w", name, ErrMissing)
	}
	return text, err
}

// List lists the objects whose names begin with prefix.
func (s *Store) List(ctx context.Context, prefix string) (list []Object, err error) {
	err = s.b.list(ctx, prefix, func(o Object) error { list = append(list, o); return nil })
	return list, err
}

// Remove removes an object.
func (s *Store) Remove(ctx context.Context, name string) error { return s.b.remove(ctx, name) }
