package store

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// silent is a store that never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestTimeOfUploads: a request without an answer ends after the patience, and a second later for each
// 16 KiB that it sends.
func TestTimeOfUploads(t *testing.T) {
	for size, want := range map[int]time.Duration{-1: 0, 0: 0, 1: 0, 16<<10 - 1: 0, 16 << 10: time.Second, 5*16<<10 + 1: 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c := newRest("s3://b", "http://x", "")
			c.client, c.patience = &http.Client{Transport: silent{}}, 2*time.Second
			c.sign = func(*http.Request, *body, time.Time) error { return nil }
			var b *body
			if size >= 0 {
				b = bytesBody(make([]byte, size))
			}
			began := time.Now()
			_, err := c.once(t.Context(), http.MethodPut, "http://x/y", b, nil)
			if took := time.Since(began); err != errSlow || took != 2*time.Second+want {
				t.Errorf("%d bytes: %v after %v, want %v", size, err, took, 2*time.Second+want)
			}
		})
	}
}

// TestPruneForeignLeases: a lease names a worker in at most 1 KiB. A longer object was not written by
// p4lb, so Prune stops.
func TestPruneForeignLeases(t *testing.T) {
	for size, want := range map[int]string{1 << 10: "", 1<<10 + 1: " is larger than 1024 bytes: it was not written by p4lb"} {
		s := openTest(t, t.TempDir())
		name := leaseName(strings.Repeat("0", keyLength), 1)
		if err := s.PutText(t.Context(), name, []byte(strings.Repeat("x", size))); err != nil {
			t.Fatal(err)
		}
		err := s.Prune(t.Context(), nil, nil, false, false, func(string) {})
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != name+" of "+s.String()+want) {
			t.Errorf("a lease of %d bytes: %v", size, err)
		}
		if there := objects(t, s)[name]; there != (want != "") {
			t.Errorf("a lease of %d bytes is there: %v", size, there)
		}
	}
}

// TestTimesOfWorkers: a worker is dead after three of its own intervals without a change, by the
// observer's clock, and after 3 ms if it states none. A worker that ended, or whose note is no
// worker's, is dead at once.
func TestTimesOfWorkers(t *testing.T) {
	ctx := t.Context()
	s := openTest(t, t.TempDir())
	id := strings.Repeat("ab", 8)
	for _, c := range []struct {
		note string
		dies time.Duration // last time of life
	}{
		{`{"every": 1000000000}`, 3 * time.Second}, {`{"every": 10}`, 3 * time.Millisecond}, {`{}`, 3 * time.Millisecond}, {`{"every": 1000000000, "ended": true}`, -1}, {`x`, -1},
	} {
		if err := s.PutText(ctx, "owners/"+id, []byte(c.note)); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		now := start
		w := &Worker{s: s, now: func() time.Time { return now }, seen: map[string]sighting{}}
		for _, after := range []time.Duration{0, c.dies, c.dies + 1} {
			now = start.Add(max(after, 0))
			held, err := w.alive(ctx, id)
			if err != nil || (held != nil) != (c.dies >= 0 && after <= c.dies) || held != nil && held.Alive {
				t.Errorf("%s after %v: %+v, %v", c.note, after, held, err)
			}
		}
	}
	if held, err := (&Worker{s: s, seen: map[string]sighting{}}).alive(ctx, "../x"); held != nil || err != nil {
		t.Errorf("a name that is no worker's: %v, %v", held, err)
	}
	var none *HeldError
	if err := asError(none); err != nil {
		t.Errorf("no holder is the error %v", err)
	}
	if err := asError(&HeldError{Host: "h", PID: 7}); err == nil || err.Error() != "process 7 on h executes it" {
		t.Errorf("%v", err)
	}
}

// TestRefusedAnswers: an error response has its code and its message in a line, without control
// characters and with at most 200 bytes of text.
func TestRefusedAnswers(t *testing.T) {
	for want, a := range map[string]*answer{
		"403 AccessDenied no access":      {Status: 403, Code: "AccessDenied", Message: " no \n access"},
		"500 down":                        {Status: 500, Message: "do\x1bwn"},
		"500 x":                           {Status: 500, Code: "x"},
		"500 " + strings.Repeat("y", 200): {Status: 500, Message: strings.Repeat("y", 200)},
		"500 " + strings.Repeat("y", 200) + "…": {Status: 500, Message: strings.Repeat("y", 201)},
	} {
		if a.Error() != want {
			t.Errorf("%q, want %q", a.Error(), want)
		}
	}
}

// TestListingBounds: a listing has at most 128 MiB with 64 bytes for each object, and names that no
// store has are skipped.
func TestListingBounds(t *testing.T) {
	var got []string
	each := bounded(func(o Object) error { got = append(got, o.Name); return nil })
	for _, name := range []string{"a/b", "a\nb", "\xff", "é", ""} {
		if err := each(Object{Name: name}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if strings.Join(got, ",") != "a/b,é," {
		t.Errorf("listed %q", got)
	}
	long := strings.Repeat("x", maxListing/2-64)
	each = bounded(func(Object) error { return nil })
	for i, want := range []string{"", "", "the listing is larger than 128 MiB: not a store of p4lb"} {
		err := each(Object{Name: long})
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("object %d: %v", i, err)
		}
	}
	stop := errors.New("stop")
	if err := bounded(func(Object) error { return stop })(Object{Name: "x"}); err != stop {
		t.Errorf("%v", err)
	}
}
