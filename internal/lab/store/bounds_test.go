package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// An object that is read completely may have 64 MiB, a lease 1 KiB, a worker 1 MiB.
func TestSizesOfObjects(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	w := worker(t, s, time.Now)
	other := "0123456789abcdef"
	tests := []struct {
		name  string
		limit int64
		read  func() error
	}{
		{"large", 64 << 20, func() error { _, err := s.Text(t.Context(), "large"); return err }},
		{leaseName(testKey, 1), 1 << 10, func() error { _, _, err := w.holder(t.Context(), testKey); return err }},
		{"owners/" + other, 1 << 20, func() error { _, err := w.alive(t.Context(), other); return err }},
		{"owners/" + other, 1 << 20, func() error { return s.Notes(t.Context(), func(json.RawMessage) {}) }},
	}
	for _, test := range tests {
		if err := s.PutText(t.Context(), test.name, nil); err != nil {
			t.Fatal(err)
		}
		for size, fits := range map[int64]bool{test.limit: true, test.limit + 1: false} {
			if err := os.Truncate(filepath.Join(dir, test.name), size); err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("%s of %s is larger than %d bytes", test.name, dir, test.limit)
			if err := test.read(); (err == nil) != fits || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s with %d bytes: %v", test.name, size, err)
			}
		}
	}
}

// A page of a listing has up to 16 MiB.
func TestPageLimit(t *testing.T) {
	room := 0
	s := answers(t, func(w http.ResponseWriter, _ *http.Request) {
		const begin, end = "<ListBucketResult>", "</ListBucketResult>"
		io.WriteString(w, begin+strings.Repeat(" ", room-len(begin+end))+end)
	})
	list := func() error { return s.list(t.Context(), "", func(Object) error { return nil }) }
	for size, fits := range map[int]bool{16 << 20: true, 16<<20 + 1: false} {
		room = size
		if err := list(); (err == nil) != fits || err != nil && !strings.Contains(err.Error(), "unexpected EOF") {
			t.Errorf("a page of %d bytes: %v", size, err)
		}
	}
}

// A listing of any store has the limit of TestListingLimit: names that are not text are
// left out.
func TestListingsAreBounded(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	t.Setenv("AZURE_STORAGE_ACCOUNT", "c")
	t.Setenv("AZURE_STORAGE_KEY", "ZA==")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("comp") == "list" {
			io.WriteString(w, "<EnumerationResults><Blobs><Blob><Name>p/a&#10;b</Name></Blob><Blob><Name>p/c</Name></Blob></Blobs></EnumerationResults>")
			return
		}
		io.WriteString(w, "<ListBucketResult><Contents><Key>p/a&#10;b</Key></Contents><Contents><Key>p/c</Key></Contents></ListBucketResult>")
	}))
	defer server.Close()
	for _, scheme := range []string{"s3", "az"} {
		b, err := open(scheme + "://b/p?endpoint=" + server.URL)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		if err := b.list(t.Context(), "", func(o Object) error { names = append(names, o.Name); return nil }); err != nil || fmt.Sprint(names) != "[c]" {
			t.Errorf("%s lists %q, %v", scheme, names, err)
		}
	}
}

// A folder store reports a put that fails, also if the folder of the object is created
// first or cannot be created.
func TestPutFails(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	if err := os.Symlink(filepath.Join(dir, "missing"), filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	if err := s.PutText(t.Context(), "file", nil); err != nil {
		t.Fatal(err)
	}
	for _, fresh := range []bool{false, true} {
		for name, want := range map[string]error{
			fmt.Sprintf("new%v/%s", fresh, strings.Repeat("x", 300)): syscall.ENAMETOOLONG,
			"dangling/x": os.ErrNotExist,
			"file/x":     syscall.ENOTDIR,
		} {
			err := s.b.put(t.Context(), name, bytesBody([]byte("text")), fresh)
			if !errors.Is(err, want) || !strings.HasPrefix(err.Error(), "writing "+name+" into the store "+dir+": ") {
				t.Errorf("%s, fresh %v: %v, want %v", name, fresh, err, want)
			}
		}
	}
	if list, err := os.ReadDir(filepath.Join(dir, scratchName)); err != nil || len(list) > 0 {
		t.Errorf("temporary files %v are left, %v", list, err)
	}
	// A folder that cannot be listed is an error. A missing one is empty.
	if list, err := s.List(t.Context(), "file/x/"); !errors.Is(err, syscall.ENOTDIR) || !strings.HasPrefix(err.Error(), "listing the store "+dir+": ") {
		t.Errorf("below a file: %v, %v", list, err)
	}
	if list, err := s.List(t.Context(), "none/x/"); err != nil || len(list) > 0 {
		t.Errorf("below a missing folder: %v, %v", list, err)
	}
}

// An unlisted bucket fails to list objects with a prefix.
type unlisted struct {
	bucket
	prefix string
}

func (b *unlisted) list(ctx context.Context, prefix string, each func(Object) error) error {
	if strings.HasPrefix(prefix, b.prefix) {
		return ErrDenied
	}
	return b.bucket.list(ctx, prefix, each)
}

// A contested bucket stores another worker's object just before an object with a name.
type contested struct {
	bucket
	name string
}

func (b *contested) put(ctx context.Context, name string, x *body, fresh bool) error {
	if name == b.name {
		b.name = ""
		if err := b.bucket.put(ctx, name, bytesBody([]byte("ffffffffffffffff")), true); err != nil {
			return err
		}
	}
	return b.bucket.put(ctx, name, x, fresh)
}

// Of two workers that find the same lease free, the slower one does not get it.
func TestContestedLease(t *testing.T) {
	ctx := t.Context()
	s := openTest(t, t.TempDir())
	w := worker(t, s, time.Now)
	if err := s.PutText(ctx, leaseName(testKey, 1), []byte("garbage")); err != nil { // of no worker
		t.Fatal(err)
	}
	s.b = &contested{s.b, leaseName(testKey, 2)}
	var held *HeldError
	if l, err := w.Take(ctx, testKey); l != nil || !errors.As(err, &held) {
		t.Errorf("%+v, %v, want held by another worker", l, err)
	}
	if n, id, err := w.holder(ctx, testKey); n != 2 || id != "ffffffffffffffff" || err != nil {
		t.Errorf("the holder is %d %s, %v", n, id, err)
	}
}

// A lease is neither taken nor released if the leases cannot be listed: another worker may
// hold it.
func TestLeasesThatCannotBeListed(t *testing.T) {
	ctx := t.Context()
	s := openTest(t, t.TempDir())
	now := time.Now()
	w := worker(t, s, func() time.Time { return now })
	lease, err := w.Take(ctx, testKey)
	if err != nil {
		t.Fatal(err)
	}
	whole := s.b
	s.b = &unlisted{whole, "leases/"}
	if l, err := w.Take(ctx, testKey); l != nil || !errors.Is(err, ErrDenied) {
		t.Errorf("took %v, %v", l, err)
	}
	s.b = &broken{whole, "leases/", ErrDenied}
	if l, err := w.Take(ctx, testKey); l != nil || !errors.Is(err, ErrDenied) {
		t.Errorf("took a lease that cannot be read: %v, %v", l, err)
	}
	s.b = &unlisted{whole, "leases/"}
	// Until three intervals of an hour have passed, no other worker can have taken over.
	now = now.Add(3*time.Hour + 1)
	if err := lease.Release(ctx); !errors.Is(err, ErrDenied) {
		t.Errorf("released after three intervals: %v", err)
	}
	now = now.Add(-1)
	if err := lease.Release(ctx); err != nil {
		t.Errorf("released within three intervals: %v", err)
	}
	s.b = &unlisted{whole, "owners/"}
	if err := s.Notes(ctx, func(json.RawMessage) {}); !errors.Is(err, ErrDenied) {
		t.Errorf("notes: %v", err)
	}
}

// Requests to Google Cloud Storage are signed with the key of the environment, and do not
// replace objects if they must be new.
func TestGoogleSignature(t *testing.T) {
	t.Setenv("GCS_ACCESS_KEY_ID", "GOOGTEST")
	t.Setenv("GCS_SECRET_ACCESS_KEY", "a secret")
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		if why := googleDenies(r, text, "GOOGTEST", "a secret"); why != "" {
			t.Errorf("%s %s: wrong %s", r.Method, r.URL, why)
		}
		asked = append(asked, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("x-goog-if-generation-match")))
	}))
	defer server.Close()
	b, err := open("gs://bucket/a prefix?endpoint=" + server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, fresh := range []bool{false, true} {
		if err := b.put(t.Context(), "runs/x", bytesBody([]byte("text")), fresh); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := b.get(t.Context(), "runs/x"); err != nil {
		t.Error(err)
	} else {
		r.Close()
	}
	if err := b.remove(t.Context(), "runs/x"); err != nil {
		t.Error(err)
	}
	want := "PUT /bucket/a prefix/runs/x, PUT /bucket/a prefix/runs/x 0, GET /bucket/a prefix/runs/x, DELETE /bucket/a prefix/runs/x"
	if got := strings.Join(asked, ", "); got != want {
		t.Errorf("asked %s\nwant %s", got, want)
	}
}

// A transport answers each request with a body.
type transport func() io.ReadCloser

func (t transport) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: t()}, nil
}

// A slowBody returns a byte after each pause.
type slowBody struct{ pause time.Duration }

func (b slowBody) Read(p []byte) (int, error) {
	time.Sleep(b.pause)
	return copy(p, "x"), nil
}

func (b slowBody) Close() error { return nil }

// A store may take 20 seconds, and then needs a rate of 16 KiB per second. The time in which
// p4lb does not read does not count: before the first read, and between reads.
func TestTimesOfReplies(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	synctest.Test(t, func(t *testing.T) {
		b, err := open("s3://b/p?endpoint=http://127.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		for pause, fails := range map[time.Duration]int{0: 0, 3 * time.Second: 7, 9 * time.Second: 3} {
			clientOf(b).client = &http.Client{Transport: transport(func() io.ReadCloser { return slowBody{pause} })}
			r, err := b.get(t.Context(), "x")
			if err != nil {
				t.Fatal(err)
			}
			ctx := r.(*reply).ctx
			for n := 1; n <= 8; n++ {
				time.Sleep(time.Hour)
				if ctx.Err() != nil && (fails == 0 || n <= fails) {
					t.Fatalf("a byte in %v: the request ends before read %d: %v", pause, n, context.Cause(ctx))
				}
				if _, err := r.Read(make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
				if ended := context.Cause(ctx) == errSlow; ended != (fails > 0 && n >= fails) {
					t.Errorf("a byte in %v: read %d ends the request: %v", pause, n, ended)
				}
			}
			r.Close()
		}
	})
}

// A countedBody has endless content.
type countedBody struct {
	read   int
	closed bool
}

func (b *countedBody) Read(p []byte) (int, error) { b.read += len(p); return len(p), nil }
func (b *countedBody) Close() error               { b.closed = true; return nil }

// The rest of a response is read to use the connection again, up to 1 MiB.
func TestDrained(t *testing.T) {
	b := &countedBody{}
	if err := drained(&http.Response{Body: b}); err != nil || b.read != 1<<20 || !b.closed {
		t.Errorf("%d bytes are read, closed %v, %v", b.read, b.closed, err)
	}
}
