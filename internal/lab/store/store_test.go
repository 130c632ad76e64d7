package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/text/plain"
)

const testKey = "00112233445566778899aabbccddeeff"

func openTest(t *testing.T, addr string) *Store {
	t.Helper()
	s, err := Open(t.Context(), addr, true)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// write creates a file that Put may move.
func write(t *testing.T, s *Store, text string) string {
	t.Helper()
	f, err := s.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.WriteString(f, text); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

func readTable(s *Store, table Table) (string, error) {
	r, err := s.OpenTable(context.Background(), table)
	if err != nil {
		return "", err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	return string(text), err
}

// exercise uses a store like lab does and checks the properties that lab relies
// on.
func exercise(t *testing.T, s *Store) {
	ctx := t.Context()
	if _, err := s.Get(ctx, testKey); !errors.Is(err, ErrMissing) {
		t.Errorf("a run that is missing: %v", err)
	}
	rows := strings.Repeat("1,2,3\n", 5000)
	put := func(result string) error {
		return s.Put(ctx, testKey, []byte(result), map[string]string{"flows.csv": write(t, s, rows), "empty.csv": write(t, s, "")}, false)
	}
	for range 2 { // the second call changes nothing
		if err := put(`{"a":1}`); err != nil {
			t.Fatal(err)
		}
	}
	if err := put(`{"a":2}`); !errors.Is(err, errDiffers) {
		t.Errorf("another result for a run: %v", err)
	}
	run, err := s.Get(ctx, testKey)
	if err != nil || string(run.Result) != `{"a":1}` {
		t.Fatalf("%s, %v", run.Result, err)
	}
	for name, want := range map[string]string{"flows.csv": rows, "empty.csv": ""} {
		if text, err := readTable(s, run.Tables[name]); err != nil || text != want {
			t.Errorf("%s has %d bytes, %v", name, len(text), err)
		}
	}
	if have, err := s.Has(ctx); err != nil || len(have) != 1 || have[testKey] == 0 {
		t.Errorf("has %v, %v", have, err)
	}

	// Names with every permitted kind of character.
	odd := "experiments/a+b c=d&é~(1)/x.json"
	if err := s.PutText(ctx, odd, []byte("odd")); err != nil {
		t.Error(err)
	}
	if text, err := s.Text(ctx, odd); err != nil || string(text) != "odd" {
		t.Errorf("%q, %v", text, err)
	}
	if list, err := s.List(ctx, "experiments/a+b"); err != nil || len(list) != 1 || list[0].Name != odd || list[0].Size != 3 {
		t.Errorf("listed %v, %v", list, err)
	}
	if err := errors.Join(s.b.remove(ctx, odd), s.b.remove(ctx, odd)); err != nil {
		t.Error(err)
	}
	if _, err := s.Text(ctx, odd); !errors.Is(err, ErrMissing) {
		t.Errorf("after removing: %v", err)
	}

	// Of several concurrent writers, exactly one succeeds.
	var won atomic.Int32
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			err := s.b.put(ctx, "leases/race/1", bytesBody(fmt.Append(nil, i)), true)
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, errExists):
				t.Error(err)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 {
		t.Errorf("%d of 8 were the only one", won.Load())
	}

	// A damaged object is reported, and replaced when the run is stored again.
	for _, c := range []struct{ text, want string }{
		{"", "is empty"}, {"p4lb-ru", "truncated to 7 bytes"}, {"p4lb-run 1 0011", "truncated to 15 bytes"}, {"{}", "is not a run"}, {"p4lb-run 9 x\n", "another version"},
	} {
		if err := s.PutText(ctx, runName(testKey), []byte(c.text)); err != nil {
			t.Fatal(err)
		}
		var damaged *DamagedError
		if _, err := s.Get(ctx, testKey); !errors.As(err, &damaged) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", c.text, err)
		}
	}
	if err := put(`{"a":1}`); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(ctx, testKey); err != nil {
		t.Error(err)
	}
	if err := s.PutText(ctx, run.Tables["flows.csv"].name(), []byte("1,2,3\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := readTable(s, run.Tables["flows.csv"]); err == nil || !strings.Contains(err.Error(), "truncated: 6 bytes of 30000") {
		t.Errorf("truncated rows: %v", err)
	}
	if err := errors.Join(s.b.remove(ctx, runName(testKey)), s.b.remove(ctx, "leases/race/1")); err != nil {
		t.Error(err)
	}
}

func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	exercise(t, openTest(t, dir))
	exercise(t, openTest(t, "file://"+dir))
	if left, _ := filepath.Glob(filepath.Join(dir, scratchName, "put-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestParseRun: a truncated or modified object is never accepted as a run.
func TestParseRun(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	if err := s.Put(t.Context(), testKey, []byte(`{"metrics":{"fct-mean":1.5}}`), nil, false); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, runName(testKey)))
	if err != nil {
		t.Fatal(err)
	}
	if _, why := parseRun(testKey, whole); why != "" {
		t.Fatal(why)
	}
	other := strings.Repeat("f", keyLength)
	if _, why := parseRun(other, whole); why != "is the run "+testKey {
		t.Errorf("under another name: %s", why)
	}
	for i := range whole {
		if _, why := parseRun(testKey, whole[:i]); why == "" {
			t.Errorf("cut to %d bytes it is a run", i)
		}
		changed := bytes.Clone(whole)
		changed[i] ^= 1
		if _, why := parseRun(testKey, changed); why == "" {
			t.Errorf("with byte %d changed it is a run", i)
		}
	}
}

// TestOpen: an invalid address is rejected with a line that describes a valid
// one.
func TestOpen(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_ACCOUNT", "GCS_ACCESS_KEY_ID", "GCS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "")
	}
	full, foreign, later := t.TempDir(), t.TempDir(), t.TempDir()
	for file, text := range map[string]string{
		filepath.Join(full, "thesis.tex"): "x", filepath.Join(foreign, markerName): "{}", filepath.Join(later, markerName): `{"format": "p4lb-store 2"}`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ addr, want string }{
		{"", "empty store name"},
		{full, "not empty (it has thesis.tex): choose another location"},
		{filepath.Join(full, "thesis.tex"), "is a file"},
		{foreign, "was not written by p4lb"},
		{later, `has format "p4lb-store 2", but this p4lb uses "p4lb-store 1"`},
		{"ftp://x/y", "want a folder, or an address that begins with one of"},
		{"s3://", "want the name of a bucket"},
		{"file://home/x", "want three slashes"},
		{"s3://b/p", "environment variable not set: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY"},
		{"gs://b/p", "environment variable not set: GCS_ACCESS_KEY_ID"},
		{"az://b/p", "environment variable not set: AZURE_STORAGE_ACCOUNT"},
	} {
		_, err := Open(t.Context(), c.addr, true)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", c.addr, err, c.want)
		}
	}
	if _, err := Open(t.Context(), filepath.Join(full, "none"), false); err == nil || !strings.Contains(err.Error(), "no store at") {
		t.Errorf("opening a missing store for reading: %v", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	if _, err := Open(t.Context(), "s3://b/p?endpoint=nonsense", true); err == nil || !strings.Contains(err.Error(), "want an address such as") {
		t.Errorf("a wrong endpoint: %v", err)
	}
}

// worker creates a worker with its own clock and place, like on another
// machine.
func worker(t *testing.T, s *Store, clock func() time.Time) *Worker {
	t.Helper()
	w, err := s.NewWorker(t.Context(), time.Hour) // the test increments the counter itself
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(context.Background()) })
	w.now, w.owner.Place = clock, t.Name()+w.id
	if err := w.beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestLeases: a lease belongs to its holder while the holder is alive by the
// observer's clock, even if the machines' clocks differ by an hour. Afterwards
// exactly one other worker gets it.
func TestLeases(t *testing.T) {
	ctx := t.Context()
	s := openTest(t, t.TempDir())
	start := time.Now()
	var passed time.Duration
	late := func() time.Time { return start.Add(passed) }
	early := func() time.Time { return start.Add(passed - time.Hour) }
	a, b, c := worker(t, s, early), worker(t, s, late), worker(t, s, early)

	lease, err := a.Take(ctx, testKey)
	if err != nil {
		t.Fatal(err)
	}
	held := func(w *Worker, want bool) {
		t.Helper()
		var h *HeldError
		if _, err := w.Take(ctx, testKey); !errors.As(err, &h) || h.Alive != want {
			t.Fatalf("%v, want held, seen to live: %v", err, want)
		}
	}
	held(b, false)
	held(a, true) // held by another goroutine of the same process
	passed += 2 * time.Hour
	held(b, false)
	if err := a.beat(ctx); err != nil {
		t.Fatal(err)
	}
	held(b, true)
	passed += beatsToDie*time.Hour - time.Minute
	held(b, true)
	held(c, false) // c observes a for the first time
	passed += 2 * time.Minute
	taken, err := b.Take(ctx, testKey) // b considers a dead
	if err != nil {
		t.Fatal(err)
	}
	held(c, false)
	if err := lease.Release(ctx); err != nil { // a was alive after all
		t.Fatal(err)
	}
	held(c, false)
	if err := taken.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err = c.Take(ctx, testKey); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(ctx); err != nil { // without releasing the lease
		t.Fatal(err)
	}
	if _, err := b.Take(ctx, testKey); err != nil {
		t.Fatalf("the lease of one that has ended: %v", err)
	}

	// Of several workers that find a dead holder, exactly one takes over.
	other := strings.Repeat("e", keyLength)
	if err := s.PutText(ctx, leaseName(other, 1), []byte("garbage")); err != nil {
		t.Fatal(err)
	}
	if err := a.beat(ctx); err != nil {
		t.Fatal(err)
	}
	won := 0
	for _, w := range []*Worker{a, b} {
		if _, err := w.Take(ctx, other); err == nil {
			won++
		}
	}
	if won != 1 {
		t.Errorf("%d took over", won)
	}
}

// TestDeadProcess: a worker on the same machine counts as dead as soon as its process has
// ended.
func TestDeadProcess(t *testing.T) {
	s := openTest(t, t.TempDir())
	a, err := s.NewWorker(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close(context.Background())
	if a.owner.Place == "" {
		t.Skip("place does not identify processes on this system")
	}
	b := worker(t, s, time.Now)
	b.owner.Place = a.owner.Place
	if _, err := a.Take(t.Context(), testKey); err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	a.owner.PID = 1 << 30 // no such process
	a.mu.Unlock()
	if err := a.beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Take(t.Context(), testKey); err != nil {
		t.Error(err)
	}
}

// TestPipe: reading a pipe does not block.
func TestPipe(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	if err := os.Symlink(os.DevNull, filepath.Join(dir, "x")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.b.get(t.Context(), "x"); !errors.Is(err, plain.ErrNotRegular) {
		t.Errorf("got %v", err)
	}
	if _, err := s.b.get(t.Context(), "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestReadOnly: writing into a read-only folder is an error.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	d := s.b.(*folder)
	for err, want := range map[error]error{
		&os.PathError{Op: "open", Path: "x", Err: os.ErrPermission}: ErrDenied,
	} {
		if got := d.explain("writing into", err); !errors.Is(got, want) || !strings.Contains(got.Error(), dir) {
			t.Errorf("%v becomes %v", err, got)
		}
	}
	if os.Getuid() == 0 {
		return // root can write anyway
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	if _, err := s.NewWorker(t.Context(), 0); !errors.Is(err, ErrDenied) {
		t.Error(err)
	}
}

// TestConcurrentRemove: an object is stored even if others remove the last
// objects of its folders, with their folders, at any moment.
func TestConcurrentRemove(t *testing.T) {
	b, err := openFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for n := range 500 {
				name := fmt.Sprintf("leases/%d/1", i)
				if err := b.put(t.Context(), name, bytesBody([]byte("x")), n%2 == 0); err != nil {
					t.Error(err)
					return
				}
				if err := b.remove(t.Context(), name); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}
