package store

import (
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// An objectServer is a bucket in memory with the part of the protocol of S3, and of the
// XML interface of Google Cloud Storage, that a store uses: objects, listings in pages
// of two, and uploads that must not replace an object. It takes any signature of the
// right algorithm.
type objectServer struct {
	algorithm string
	onlyNew   [2]string // the header of such an upload

	mu      sync.Mutex
	objects map[string][]byte
	pages   int
	exclude int // uploads that must not replace an object
}

func (s *objectServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fail := func(code int, name string) {
		w.WriteHeader(code)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", name, name)
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/bucket")
	if !ok {
		fail(http.StatusNotFound, "NoSuchBucket")
		return
	}
	if !strings.HasPrefix(r.Header.Get("Authorization"), s.algorithm+" ") {
		fail(http.StatusForbidden, "AccessDenied")
		return
	}
	name = strings.TrimPrefix(name, "/")
	switch {
	case r.Method == http.MethodGet && name == "":
		s.list(w, r)
	case r.Method == http.MethodGet:
		data, ok := s.objects[name]
		if !ok {
			fail(http.StatusNotFound, "NoSuchKey")
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		w.Write(data)
	case r.Method == http.MethodPut:
		if r.Header.Get(s.onlyNew[0]) == s.onlyNew[1] {
			s.exclude++
			if _, ok := s.objects[name]; ok {
				fail(http.StatusPreconditionFailed, "PreconditionFailed")
				return
			}
		}
		data, err := io.ReadAll(r.Body)
		if err != nil {
			fail(http.StatusBadRequest, "IncompleteBody")
			return
		}
		s.objects[name] = data
	case r.Method == http.MethodDelete:
		delete(s.objects, name)
		w.WriteHeader(http.StatusNoContent)
	default:
		fail(http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
}

// list returns two objects after the one that the continuation token names.
func (s *objectServer) list(w http.ResponseWriter, r *http.Request) {
	type object struct {
		Key          string
		Size         int
		LastModified time.Time
	}
	var page struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		Contents              []object
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
	}
	s.pages++
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		if !strings.HasPrefix(name, r.URL.Query().Get("prefix")) || name <= r.URL.Query().Get("continuation-token") {
			continue
		}
		if len(page.Contents) == 2 {
			page.IsTruncated, page.NextContinuationToken = true, page.Contents[1].Key
			break
		}
		page.Contents = append(page.Contents, object{name, len(s.objects[name]), time.Unix(1e9, 0).UTC()})
	}
	xml.NewEncoder(w).Encode(page)
}

// A store in a bucket has the properties of a folder: one of several writers succeeds,
// listings continue over pages, damage is found. MinIO and Azurite, where they are
// installed, test the signatures.
func TestObjectStores(t *testing.T) {
	for _, test := range []struct {
		scheme, key, secret, algorithm string
		onlyNew                        [2]string
	}{
		{"s3", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS4-HMAC-SHA256", [2]string{"If-None-Match", "*"}},
		{"gs", "GCS_ACCESS_KEY_ID", "GCS_SECRET_ACCESS_KEY", "GOOG4-HMAC-SHA256", [2]string{"X-Goog-If-Generation-Match", "0"}},
	} {
		t.Run(test.scheme, func(t *testing.T) {
			t.Setenv(test.key, "key")
			t.Setenv(test.secret, "secret")
			server := &objectServer{algorithm: test.algorithm, onlyNew: test.onlyNew, objects: map[string][]byte{"other/x": nil}}
			front := httptest.NewServer(server)
			defer front.Close()
			s := openTest(t, test.scheme+"://bucket/a prefix?endpoint="+front.URL)
			exercise(t, s)
			for i := range 5 {
				if err := s.PutText(t.Context(), fmt.Sprint("leases/", i, "/1"), []byte("x")); err != nil {
					t.Fatal(err)
				}
			}
			pages := server.pages
			list, err := s.List(t.Context(), "leases/")
			if err != nil || len(list) != 5 || list[4].Name != "leases/4/1" || list[4].Size != 1 || server.pages != pages+3 {
				t.Errorf("listed %v in %d pages, %v", list, server.pages-pages, err)
			}
			if server.exclude == 0 {
				t.Error("no upload was exclusive")
			}
			for name := range server.objects {
				if !strings.HasPrefix(name, "a prefix/") && name != "other/x" {
					t.Errorf("%s is outside of the prefix", name)
				}
			}
		})
	}
}
