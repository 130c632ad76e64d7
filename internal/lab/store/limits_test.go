package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Objects are stored under the names that the package comment documents, and keys are
// 32 lower-case hexadecimal digits.
func TestNames(t *testing.T) {
	key := "0123456789abcdef0123456789abcdef"
	sum := strings.Repeat("ef01", 16)
	for got, want := range map[string]string{
		runName(key):               "runs/01/" + key + ".run",
		Table{Digest: sum}.name():  "tables/ef/" + sum,
		leaseName(key, 12):         "leases/" + key + "/12",
		(&folder{"/a"}).path("b/"): "/a/b",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for text, want := range map[string]bool{
		key: true, key[1:]: false, key + "0": false, strings.ToUpper(key): false, "g" + key[1:]: false, "": false,
	} {
		if IsKey(text) != want {
			t.Errorf("%q is a key: %v, want %v", text, !want, want)
		}
	}
}

// An object is read up to its limit and no further.
func TestObjectLimit(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	for size, fits := range map[int]bool{9: true, 10: true, 11: false} {
		if err := s.PutText(t.Context(), "x", make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if data, err := read(t.Context(), s.b, "x", 10); (err == nil) != fits || fits && len(data) != size {
			t.Errorf("%d of at most 10 bytes: %d, %v", size, len(data), err)
		}
	}
	// The description of a store may have 64 KiB.
	for size, fits := range map[int]bool{64 << 10: true, 64<<10 + 1: false} {
		text := `{"format": "` + format + `"}`
		if err := os.WriteFile(filepath.Join(dir, markerName), []byte(text+strings.Repeat(" ", size-len(text))), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), dir, false); (err == nil) != fits {
			t.Errorf("a description of %d bytes: %v", size, err)
		}
	}
}

// A listing may take 128 MiB, of which an object takes its name and 64 bytes. Names that
// are not text are left out.
func TestListingLimit(t *testing.T) {
	for name, fit := range map[string]int{strings.Repeat("x", 64): 1 << 20, strings.Repeat("x", 960): 1 << 17} {
		passed := 0
		each := bounded(func(Object) error { passed++; return nil })
		for range fit {
			if err := each(Object{Name: name}); err != nil {
				t.Fatalf("object %d with %d bytes: %v", passed, len(name), err)
			}
		}
		if err := each(Object{Name: name}); err == nil || !strings.Contains(err.Error(), "larger than 128 MiB") || passed != fit {
			t.Errorf("after %d objects with %d bytes: %v", passed, len(name), err)
		}
	}
	var names []string
	each := bounded(func(o Object) error { names = append(names, o.Name); return nil })
	for _, name := range []string{"a", "a\nb", "\xff", "é"} {
		if err := each(Object{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(names, []string{"a", "é"}) {
		t.Errorf("listed %q", names)
	}
}

// A process exists while it runs. The question does not disturb it.
func TestProcessExists(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Skip("no sleep: ", err)
	}
	exited := make(chan struct{})
	go func() { cmd.Wait(); close(exited) }()
	if !processExists(cmd.Process.Pid) || !processExists(os.Getpid()) {
		t.Error("a process that runs does not exist")
	}
	select {
	case <-exited:
		t.Error("the question ended the process")
	case <-time.After(50 * time.Millisecond):
	}
	cmd.Process.Kill()
	<-exited
	if processExists(cmd.Process.Pid) {
		t.Error("a process that ended exists")
	}
}

// A worker is dead if its counter has not changed for more than three of its own
// intervals. Its description names its host, process and interval.
func TestDeath(t *testing.T) {
	s := openTest(t, t.TempDir())
	now := time.Now()
	w := worker(t, s, func() time.Time { return now })
	other := "0123456789abcdef"
	say := func(beat int, every time.Duration) {
		t.Helper()
		text := fmt.Sprintf(`{"beat":%d,"every":%d,"place":"elsewhere","host":"far","pid":7}`, beat, every)
		if err := s.PutText(t.Context(), "owners/"+other, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	alive := func(want *HeldError) {
		t.Helper()
		got, err := w.alive(t.Context(), other)
		if err != nil || (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
	alive(nil) // no such worker
	say(5, time.Minute)
	alive(&HeldError{"far", 7, false})
	now = now.Add(3 * time.Minute)
	alive(&HeldError{"far", 7, false})
	now = now.Add(1)
	alive(nil)
	say(6, time.Minute)
	alive(&HeldError{"far", 7, true})
	now = now.Add(3*time.Minute + 1)
	alive(nil)
	say(7, 0) // the shortest interval is a millisecond
	alive(&HeldError{"far", 7, true})
	now = now.Add(3 * time.Millisecond)
	alive(&HeldError{"far", 7, true})
	now = now.Add(1)
	alive(nil)
	if got, err := w.alive(t.Context(), other+"0"); got != nil || err != nil {
		t.Errorf("a text that is no worker: %v, %v", got, err)
	}
	if text := (&HeldError{Host: "far", PID: 7}).Error(); text != "process 7 on far executes it" {
		t.Error(text)
	}
}

// A lease that is taken over gets the next number. Its release removes all of them, but
// not the lease of a worker that took over in turn.
func TestLeaseNumbers(t *testing.T) {
	ctx := t.Context()
	s := openTest(t, t.TempDir())
	now := time.Now()
	w := worker(t, s, func() time.Time { return now })
	numbers := func() (names []string) {
		list, err := s.List(ctx, "leases/")
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list {
			names = append(names, strings.TrimPrefix(o.Name, "leases/"+testKey+"/"))
		}
		return names
	}
	for _, n := range []int{1, 2, 10} { // of dead workers; 10 is the last, 2 the last by name
		if err := s.PutText(ctx, leaseName(testKey, n), []byte("ffffffffffffffff")); err != nil {
			t.Fatal(err)
		}
	}
	if n, id, err := w.holder(ctx, testKey); n != 10 || id != "ffffffffffffffff" || err != nil {
		t.Errorf("the holder is %d %s, %v", n, id, err)
	}
	lease, err := w.Take(ctx, testKey)
	if err != nil || lease.number != 11 {
		t.Fatalf("%+v, %v", lease, err)
	}
	// Within three intervals of an hour the holder cannot be considered dead.
	if err := s.PutText(ctx, leaseName(testKey, 12), []byte("eeeeeeeeeeeeeeee")); err != nil {
		t.Fatal(err)
	}
	now = now.Add(3*time.Hour + 1)
	if err := lease.Release(ctx); err != nil || len(numbers()) != 5 {
		t.Errorf("another worker took over: %v left, %v", numbers(), err)
	}
	if err := s.b.remove(ctx, leaseName(testKey, 12)); err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(ctx); err != nil || len(numbers()) != 0 {
		t.Errorf("the last holder releases: %v left, %v", numbers(), err)
	}
	if n, id, err := w.holder(ctx, testKey); n != 0 || id != "" || err != nil {
		t.Errorf("without leases: %d %q, %v", n, id, err)
	}
}

// A broken bucket fails for the objects with a prefix.
type broken struct {
	bucket
	prefix string
	err    error
}

func (b *broken) get(ctx context.Context, name string) (io.ReadCloser, error) {
	if strings.HasPrefix(name, b.prefix) {
		return nil, b.err
	}
	return b.bucket.get(ctx, name)
}

// Prune ends at an object that cannot be read. It does not take it for one that no
// experiment needs.
func TestPruneStopsAtErrors(t *testing.T) {
	for _, prefix := range []string{"runs/", "leases/", "owners/"} {
		s := openTest(t, t.TempDir())
		keys := pruneStore(t, s)
		if err := errors.Join(s.PutText(t.Context(), leaseName(testKey, 1), []byte("x")), s.PutText(t.Context(), "owners/0123456789abcdef", []byte(`{"ended":true}`))); err != nil {
			t.Fatal(err)
		}
		before := len(objects(t, s))
		needed, places := map[string]bool{}, map[string]bool{"first": true, "second": true, "third": true}
		for _, k := range keys {
			needed[k] = true
		}
		whole := s.b
		s.b = &broken{whole, prefix, ErrDenied}
		err := s.Prune(t.Context(), needed, places, false, false, func(name string) {
			if strings.HasPrefix(name, prefix) {
				t.Errorf("%s: removes %s", prefix, name)
			}
		})
		s.b = whole
		if !errors.Is(err, ErrDenied) {
			t.Errorf("%s cannot be read: %v", prefix, err)
		}
		if prefix != "leases/" && len(objects(t, s)) != before {
			t.Errorf("%s cannot be read: %d of %d objects left", prefix, len(objects(t, s)), before)
		}
	}
}

// Prune removes a damaged run although an experiment needs it, and keeps the others: a damaged
// run has to be executed again.
func TestPruneDamaged(t *testing.T) {
	s := openTest(t, t.TempDir())
	keys := pruneStore(t, s)
	needed := map[string]bool{}
	for _, k := range keys {
		needed[k] = true
	}
	if err := s.PutText(t.Context(), runName(keys[0]), []byte("p4lb-ru")); err != nil {
		t.Fatal(err)
	}
	if err := s.Prune(t.Context(), needed, map[string]bool{"first": true, "second": true, "third": true}, false, false, func(string) {}); err != nil {
		t.Fatal(err)
	}
	left := objects(t, s)
	for i, k := range keys {
		if left[runName(k)] != (i > 0) {
			t.Errorf("run %d is left: %v", i, left[runName(k)])
		}
	}
}

// Prune with keep names each candidate and removes nothing. Objects in runs that
// have no key are removed, other names of the store stay.
func TestPruneNames(t *testing.T) {
	s := openTest(t, t.TempDir())
	pruneStore(t, s)
	for _, name := range []string{"runs/xx/nothing.run", "runs/xx/note", "notes/1"} {
		if err := s.PutText(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
	}
	before := objects(t, s)
	var would, did []string
	for _, x := range []struct {
		keep  bool
		names *[]string
	}{{true, &would}, {false, &did}} {
		if err := s.Prune(t.Context(), nil, nil, x.keep, false, func(name string) { *x.names = append(*x.names, name) }); err != nil {
			t.Fatal(err)
		}
		if x.keep && len(objects(t, s)) != len(before) {
			t.Errorf("%d of %d objects left", len(objects(t, s)), len(before))
		}
	}
	if !slices.Equal(would, did) {
		t.Errorf("would remove %q, removed %q", would, did)
	}
	after := objects(t, s)
	if len(after) != 3 || !after[markerName] || !after["runs/xx/note"] || !after["notes/1"] {
		t.Errorf("left: %v", after)
	}
}

// Paths are escaped as RFC 3986 specifies: all characters except letters, digits, - . _ ~
// and the slash.
func TestEscape(t *testing.T) {
	const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/"
	for c := range 256 {
		want := fmt.Sprintf("%%%02X", c)
		if strings.IndexByte(unreserved, byte(c)) >= 0 {
			want = string(rune(c))
		}
		if got := escapePath(string([]byte{byte(c)})); got != want {
			t.Errorf("byte %d is escaped as %s, want %s", c, got, want)
		}
	}
	if got := escapeQuery(url.Values{"b": {"x y+z"}, "a": {"/"}}); got != "a=%2F&b=x%20y%2Bz" {
		t.Error(got)
	}
}

// answers returns a client of a server that answers with a status and a code.
func answers(t *testing.T, handle http.HandlerFunc) *s3 {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	b, err := open("s3://b/p?endpoint=" + server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return b.(*s3)
}

// Transient errors are retried five times with pauses that double, until the store has
// had its time. Other errors are final.
func TestRetries(t *testing.T) {
	status, code, asked := 0, "", 0
	c := answers(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
	})
	var waits []time.Duration
	c.wait = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
	for _, x := range []struct {
		status int
		code   string
		again  bool
	}{
		{400, "", false}, {401, "", false}, {403, "", false}, {404, "NoSuchKey", false}, {408, "RequestTimeout", true}, {409, "", false},
		{409, "ConditionalRequestConflict", true}, {412, "", false}, {429, "", true}, {499, "", false}, {500, "", true}, {501, "", false},
		{502, "", true}, {503, "", true}, {504, "", true}, {507, "", false}, {400, "ConditionalRequestConflict", false},
	} {
		status, code, asked, waits = x.status, x.code, 0, nil
		if _, err := c.get(t.Context(), "x"); err == nil {
			t.Errorf("%d %s: no error", x.status, x.code)
		}
		want, pauses := 1, []time.Duration(nil)
		if x.again {
			want, pauses = 5, []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond}
		}
		if asked != want || !slices.Equal(waits, pauses) {
			t.Errorf("%d %s: asked %d times with pauses %v, want %d and %v", x.status, x.code, asked, waits, want, pauses)
		}
	}
	status, asked = 503, 0
	c.patience = 50 * time.Millisecond
	c.wait = func(context.Context, time.Duration) error { time.Sleep(60 * time.Millisecond); return nil }
	if _, err := c.get(t.Context(), "x"); err == nil || asked != 2 {
		t.Errorf("asked %d times after the store had its time: %v", asked, err)
	}
	c.patience, asked = time.Minute, 0
	gone := errors.New("interrupted")
	c.wait = func(context.Context, time.Duration) error { return gone }
	if _, err := c.get(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), gone.Error()) || asked != 1 {
		t.Errorf("interrupted after %d requests: %v", asked, err)
	}
}

// A signature with the wrong time is refused. The client then uses the store's clock
// from its Date header, if that differs by more than five minutes, and asks once more.
func TestSkew(t *testing.T) {
	for _, x := range []struct {
		late  time.Duration
		asked int
	}{{time.Hour, 2}, {-time.Hour, 2}, {5*time.Minute + time.Second, 2}, {5 * time.Minute, 1}, {0, 1}} {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		var dates []string
		c := answers(t, func(w http.ResponseWriter, r *http.Request) {
			dates = append(dates, r.Header.Get("x-amz-date"))
			w.Header().Set("Date", now.Add(x.late).Format(http.TimeFormat))
			w.WriteHeader(http.StatusForbidden)
		})
		c.now = func() time.Time { return now }
		c.wait = func(context.Context, time.Duration) error { return nil }
		if _, err := c.get(t.Context(), "x"); !errors.Is(err, ErrDenied) {
			t.Errorf("%v late: %v", x.late, err)
		}
		want := []string{"20260102T030405Z", now.Add(x.late).Format("20060102T150405Z")}[:x.asked]
		if !slices.Equal(dates, want) {
			t.Errorf("%v late: signed for %v, want %v", x.late, dates, want)
		}
	}
}

// Each kind of answer has its error, which names the store and the operation.
func TestExplain(t *testing.T) {
	c := &rest{addr: "s3://b/p"}
	for _, x := range []struct {
		err  error
		is   error
		text string
	}{
		{&answer{Status: 507}, ErrFull, "listing the store s3://b/p: the store is full (507 )"},
		{&answer{Status: 400, Code: "QuotaExceeded"}, ErrFull, "listing the store s3://b/p: the store is full (400 QuotaExceeded)"},
		{&answer{Status: 400, Code: "XMinioStorageFull"}, ErrFull, "listing the store s3://b/p: the store is full (400 XMinioStorageFull)"},
		{&answer{Status: 400, Code: "MyStorageFullNow"}, ErrFull, "listing the store s3://b/p: the store is full (400 MyStorageFullNow)"},
		{&answer{Status: 401, Code: "X", Message: "no \n way"}, ErrDenied, "listing the store s3://b/p: access denied: 401 X no way"},
		{&answer{Status: 403}, ErrDenied, "listing the store s3://b/p: access denied: 403 "},
		{&answer{Status: 404, Code: "NoSuchBucket"}, nil, "listing the store s3://b/p: no such bucket (404 NoSuchBucket)"},
		{&answer{Status: 404, Code: "ContainerNotFound"}, nil, "listing the store s3://b/p: no such bucket (404 ContainerNotFound)"},
		{&answer{Status: 404, Code: "NoSuchKey"}, fs.ErrNotExist, "listing the store s3://b/p: file does not exist (404 NoSuchKey)"},
		{&answer{Status: 400}, ErrUnreachable, "listing the store s3://b/p: the store cannot be reached: not an object store (400 )"},
		{&answer{Status: 400, Code: "InvalidArgument"}, nil, "listing the store s3://b/p: 400 InvalidArgument"},
		{&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("refused")}, ErrUnreachable, "listing the store s3://b/p: the store cannot be reached: dial tcp: refused"},
		{&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}, fs.ErrNotExist, "open x: file does not exist"},
	} {
		err := c.explain(t.Context(), "listing", x.err)
		if err.Error() != x.text || x.is != nil && !errors.Is(err, x.is) {
			t.Errorf("%v: %v, want %s", x.err, err, x.text)
		}
		for _, class := range []error{ErrFull, ErrDenied, ErrUnreachable, fs.ErrNotExist} {
			if class != x.is && errors.Is(err, class) {
				t.Errorf("%v: is also %v", x.err, class)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.explain(ctx, "listing", &answer{Status: 403}); err != context.Canceled {
		t.Errorf("interrupted: %v", err)
	}
	for n, want := range map[int]string{196: strings.Repeat("x", 196), 200: strings.Repeat("x", 200), 201: strings.Repeat("x", 200) + "…"} {
		if got := (&answer{Status: 400, Message: strings.Repeat("x", n)}).Error(); got != "400 "+want {
			t.Errorf("a message of %d bytes: %d", n, len(got))
		}
	}
}

// An upload that must not replace an object fails with errExists for both answers that
// stores give. For other uploads they are errors.
func TestExists(t *testing.T) {
	status := 0
	c := answers(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, "<Error><Code>X</Code></Error>")
	})
	for s, want := range map[int]bool{409: true, 412: true, 400: false, 413: false} {
		status = s
		if err := c.put(t.Context(), "x", bytesBody(nil), true); errors.Is(err, errExists) != want || err == nil {
			t.Errorf("%d: %v", s, err)
		}
		if err := c.put(t.Context(), "x", bytesBody(nil), false); err == nil || errors.Is(err, errExists) {
			t.Errorf("%d for an upload that may replace: %v", s, err)
		}
	}
}

// Removing an object that does not exist succeeds, but not in a bucket that does not.
func TestRemoveMissing(t *testing.T) {
	status, code := 0, ""
	c := answers(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
	})
	for _, x := range []struct {
		status int
		code   string
		fine   bool
	}{{404, "NoSuchKey", true}, {404, "NoSuchBucket", false}, {403, "NoSuchKey", false}, {204, "", true}} {
		status, code = x.status, x.code
		if err := c.remove(t.Context(), "x"); (err == nil) != x.fine {
			t.Errorf("%d %s: %v", x.status, x.code, err)
		}
	}
}

// A store's address has parts with defaults: the region, the endpoint and the prefix.
// Regions and endpoints of the address precede the environment's.
func TestAddresses(t *testing.T) {
	for _, x := range []struct {
		addr         string
		env          map[string]string
		base, prefix string
		region       string
	}{
		{"s3://b", nil, "https://b.s3.us-east-1.amazonaws.com", "", "us-east-1"},
		{"s3://b/", nil, "https://b.s3.us-east-1.amazonaws.com", "", "us-east-1"},
		{"s3://b/p/q/", nil, "https://b.s3.us-east-1.amazonaws.com", "p/q/", "us-east-1"},
		{"s3://b/p?region=eu-west-1", map[string]string{"AWS_REGION": "x"}, "https://b.s3.eu-west-1.amazonaws.com", "p/", "eu-west-1"},
		{"s3://b/p", map[string]string{"AWS_REGION": "x", "AWS_DEFAULT_REGION": "y"}, "https://b.s3.x.amazonaws.com", "p/", "x"},
		{"s3://b/p", map[string]string{"AWS_DEFAULT_REGION": "y"}, "https://b.s3.y.amazonaws.com", "p/", "y"},
		{"s3://b/p", map[string]string{"AWS_ENDPOINT_URL": "http://h:1/"}, "http://h:1/b", "p/", "us-east-1"},
		{"s3://b/p", map[string]string{"AWS_ENDPOINT_URL": "http://h:1", "AWS_ENDPOINT_URL_S3": "https://i"}, "https://i/b", "p/", "us-east-1"},
		{"s3://b/p?endpoint=http://j", map[string]string{"AWS_ENDPOINT_URL_S3": "https://i"}, "http://j/b", "p/", "us-east-1"},
		{"gs://b/p", nil, "https://storage.googleapis.com/b", "p/", "auto"},
	} {
		t.Run("", func(t *testing.T) {
			for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_SESSION_TOKEN"} {
				t.Setenv(name, "")
			}
			for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "GCS_ACCESS_KEY_ID", "GCS_SECRET_ACCESS_KEY"} {
				t.Setenv(name, "x")
			}
			for name, value := range x.env {
				t.Setenv(name, value)
			}
			b, err := open(x.addr)
			if err != nil {
				t.Fatal(err)
			}
			if s := b.(*s3); s.base != x.base || s.prefix != x.prefix || s.region != x.region || s.String() != x.addr {
				t.Errorf("%s: %s, %s, %s; want %s, %s, %s", x.addr, s.base, s.prefix, s.region, x.base, x.prefix, x.region)
			}
		})
	}
	for _, endpoint := range []string{"", "h:1", "ftp://h", "http://", "://"} {
		if base, err := withBucket(endpoint, "b"); err == nil {
			t.Errorf("endpoint %q: %s", endpoint, base)
		}
	}
	if got := shown(&url.URL{Scheme: "s3", User: url.UserPassword("a", "secret"), Host: "b", Path: "/p"}); got != "s3://b/p" {
		t.Error(got)
	}
}

// A request may take 20 seconds and one second for each 16 KiB. The time between two
// reads of a response does not count.
func TestPatience(t *testing.T) {
	if patience != 20*time.Second || slowest != 16384 {
		t.Errorf("%v, %d", patience, slowest)
	}
	ctx, end := context.WithCancelCause(t.Context())
	timer := time.AfterFunc(time.Hour, func() { end(errSlow) })
	defer timer.Stop()
	r := &reply{io.NopCloser(strings.NewReader(strings.Repeat("x", 48<<10))), ctx, timer, end, time.Second}
	p := make([]byte, 32<<10)
	if n, err := r.Read(p); n != len(p) || err != nil {
		t.Fatal(n, err)
	}
	if r.left <= 2*time.Second || r.left > 3*time.Second {
		t.Errorf("after 32 KiB %v are left, want a second and two more", r.left)
	}
}

// TestMarkNew places a file under a free name on file systems without hard links.
func TestMarkNew(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	put := func(name string) {
		t.Helper()
		if err := os.WriteFile(in(name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("a")
	if err := markNew(in("a"), in("x")); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(in("x")); err != nil || string(text) != "a" {
		t.Errorf("x holds %q, %v", text, err)
	}
	put("b")
	if err := markNew(in("b"), in("x")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a name that is taken: %v", err)
	}
	if text, _ := os.ReadFile(in("x")); string(text) != "a" {
		t.Errorf("x holds %q", text)
	}
	put("y.new") // another process places y
	if err := markNew(in("b"), in("y")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a name that another process places: %v", err)
	}
	os.Remove(in("y.new"))
	if err := markNew(in("b"), in("y")); err != nil {
		t.Error(err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 2 {
		t.Errorf("%v are left, %v: want x and y", list, err)
	}
	if err := markNew(in("none"), in("folder/z")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that does not exist: %v", err)
	}
}

// TestFolderErrors classifies errors of file systems.
func TestFolderErrors(t *testing.T) {
	d := &folder{root: t.TempDir()}
	for err, want := range map[error]error{
		syscall.ENOSPC: ErrFull, syscall.EDQUOT: ErrFull, syscall.EACCES: ErrDenied, syscall.EROFS: ErrDenied, syscall.EIO: syscall.EIO,
	} {
		got := d.explain("writing x into", &fs.PathError{Op: "open", Path: "/x", Err: err})
		if !errors.Is(got, want) || !strings.HasPrefix(got.Error(), "writing x into the store "+d.root+": ") || strings.Contains(got.Error(), "/x:") {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
		for _, other := range []error{ErrFull, ErrDenied} {
			if other != want && errors.Is(got, other) {
				t.Errorf("%v: %v is %v", err, got, other)
			}
		}
	}
	s := &Store{d}
	if err := s.PutText(t.Context(), "runs/x", nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if list, err := s.List(ctx, ""); !errors.Is(err, context.Canceled) || len(list) > 0 {
		t.Errorf("a cancelled listing: %v, %v", list, err)
	}
}

// TestSessionToken signs the token of temporary credentials.
func TestSessionToken(t *testing.T) {
	sign := func(token string) http.Header {
		v := v4{maker: "aws4", algorithm: "AWS4-HMAC-SHA256", headers: "x-amz-", key: "k", secret: "s", token: token, region: "r", service: "s3"}
		r, err := http.NewRequest(http.MethodGet, "http://b.example/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.sign(r, nil, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)); err != nil {
			t.Fatal(err)
		}
		return r.Header
	}
	with, without := sign("the token"), sign("")
	if with.Get("x-amz-security-token") != "the token" || without.Get("x-amz-security-token") != "" {
		t.Errorf("tokens %q and %q", with.Get("x-amz-security-token"), without.Get("x-amz-security-token"))
	}
	if a, b := with.Get("Authorization"), without.Get("Authorization"); !strings.Contains(a, "x-amz-security-token") || strings.Contains(b, "security-token") || a == b {
		t.Errorf("signed as %s and %s", a, b)
	}
	if got := with.Get("x-amz-date"); got != "20260102T030405Z" {
		t.Errorf("date %s", got)
	}
}

// TestAnswersWithoutText: errors name the status, and not the address of the request.
func TestAnswersWithoutText(t *testing.T) {
	s := answers(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	if _, err := (&Store{s}).Text(t.Context(), "x"); err == nil || !strings.HasSuffix(err.Error(), ": not an object store (418 I'm a teapot)") {
		t.Errorf("got %v", err)
	}
	s = answers(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	s.wait = func(context.Context, time.Duration) error { return nil }
	if _, err := (&Store{s}).Text(t.Context(), "x"); err == nil || !errors.Is(err, ErrUnreachable) || strings.Contains(err.Error(), "Get") {
		t.Errorf("got %v", err)
	}
}
