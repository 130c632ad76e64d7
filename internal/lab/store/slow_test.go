package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestHostileStores: misbehaving stores result in an error that describes the
// problem.
func TestHostileStores(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	forever := func(pause time.Duration, before, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, err := io.WriteString(w, before)
			for err == nil && r.Context().Err() == nil {
				_, err = io.WriteString(w, text)
				http.NewResponseController(w).Flush()
				time.Sleep(pause)
			}
		}
	}
	page := func(token func() string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>%s</NextContinuationToken></ListBucketResult>", token())
		}
	}
	over := make(chan struct{})
	silent := func(http.ResponseWriter, *http.Request) { <-over }
	n := 0
	list := func(s *Store) error { _, err := s.List(t.Context(), "runs/"); return err }
	has := func(s *Store) error { _, err := s.Has(t.Context()); return err }
	text := func(s *Store) error { _, err := s.Text(t.Context(), "x"); return err }
	put := func(s *Store) error { return s.PutText(t.Context(), "x", make([]byte, 15<<10)) }
	for name, x := range map[string]struct {
		serve http.HandlerFunc
		do    func(*Store) error
		says  string
	}{
		"says nothing":  {silent, text, errSlow.Error()},
		"takes nothing": {silent, put, errSlow.Error()},
		"trickles":      {forever(time.Millisecond, "", "x"), text, errSlow.Error()},
		"trickles an error": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(418)
			forever(time.Millisecond, "", "x")(w, r)
		}, text, "418"},
		"trickles a listing":        {forever(time.Millisecond, "<ListBucketResult>", " "), list, errSlow.Error()},
		"a page without end":        {forever(0, "<ListBucketResult>", strings.Repeat("<Contents><Key>runs/x</Key></Contents>", 1000)), list, "unexpected EOF"},
		"a key without end":         {forever(0, "<ListBucketResult><Contents><Key>", strings.Repeat("x", 1<<16)), has, "unexpected EOF"},
		"an object without end":     {forever(0, "", strings.Repeat("x", 1<<16)), text, "is larger than"},
		"the same page":             {page(func() string { return "again" }), has, "the same page"},
		"an answer after an upload": {forever(0, "", strings.Repeat("x", 1<<16)), put, ""},
		"terminal control characters": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, "<Error><Code>\u009b31mRed</Code><Message>\u009b2J\u202eword</Message></Error>")
		}, text, "403 31mRed 2Jword"},
		"an object cut short": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "ten bytes.")
		}, text, "unexpected EOF"},
		"an answer that is a choice": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusMultipleChoices)
			io.WriteString(w, "several")
		}, text, "300"},
		"pages without end": {page(func() string { n++; return fmt.Sprint(n) }), has, "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name == "a page without end" {
				t.Skip("one goroutine reads it: the race detector has nothing to see")
			}
			server := httptest.NewServer(x.serve)
			over = make(chan struct{})
			defer server.Close()
			defer close(over)
			b, err := open("s3://b/p?endpoint=" + server.URL)
			if err != nil {
				t.Fatal(err)
			}
			c := clientOf(b)
			c.wait = func(context.Context, time.Duration) error { return nil }
			if c.patience = time.Minute; strings.HasSuffix(x.says, errSlow.Error()) || x.says == "418" {
				c.patience = 100 * time.Millisecond
			}
			err = x.do(&Store{b})
			if name == "pages without end" && n != 4096 {
				t.Errorf("%d pages are read, want 4096", n)
			}
			if (err == nil) != (x.says == "") || err != nil && !strings.Contains(err.Error(), x.says) {
				t.Errorf("got %v, want something with %q", err, x.says)
			}
		})
	}
}

// TestTablesThatAreTooLong: reading the rows of a run stops at their size.
func TestTablesThatAreTooLong(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	table := Table{digest([]byte("rows")), 4}
	if err := s.PutText(t.Context(), table.name(), []byte("rows and more")); err != nil {
		t.Fatal(err)
	}
	r, err := s.OpenTable(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var damaged *DamagedError
	if _, err := io.ReadAll(r); !errors.As(err, &damaged) || !strings.Contains(err.Error(), "is longer than its 4 bytes") {
		t.Errorf("got %v", err)
	}
}
