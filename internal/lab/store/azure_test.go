package store

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// An azureServer is a container in memory. It verifies signatures as Microsoft's
// "Authorize with Shared Key" describes, and lists objects in pages of two.
type azureServer struct {
	account string
	key     []byte

	mu      sync.Mutex
	objects map[string][]byte
	denied  string // the last text that did not have its signature
}

// signed returns the text to sign for a request.
func (s *azureServer) signed(r *http.Request) string {
	length := r.Header.Get("Content-Length")
	if length == "0" {
		length = ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n\n\n%s\n\n%s\n\n\n%s\n%s\n\n\n", r.Method, length, r.Header.Get("Content-Type"), r.Header.Get("If-Match"), r.Header.Get("If-None-Match"))
	var names []string
	for name := range r.Header {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-ms-") {
			names = append(names, lower)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		text.WriteString(name + ":" + r.Header.Get(name) + "\n")
	}
	text.WriteString("/" + s.account + r.URL.EscapedPath())
	for _, name := range slices.Sorted(maps.Keys(r.URL.Query())) {
		text.WriteString("\n" + name + ":" + r.URL.Query().Get(name))
	}
	return text.String()
}

func (s *azureServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fail := func(code int, name string) {
		w.WriteHeader(code)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", name, name)
	}
	if r.ContentLength > 0 {
		r.Header.Set("Content-Length", fmt.Sprint(r.ContentLength))
	}
	text := s.signed(r)
	m := hmac.New(sha256.New, s.key)
	io.WriteString(m, text)
	sas := r.URL.Query().Get("sig") == "a+b/c="
	if !sas && r.Header.Get("Authorization") != "SharedKey "+s.account+":"+base64.StdEncoding.EncodeToString(m.Sum(nil)) || sas && r.Header.Get("Authorization") != "" {
		s.denied = text
		fail(http.StatusForbidden, "AuthenticationFailed")
		return
	}
	if r.Header.Get("x-ms-version") != "2021-08-06" || r.Header.Get("x-ms-date") == "" {
		fail(http.StatusBadRequest, "InvalidHeaderValue")
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/container")
	if !ok {
		fail(http.StatusNotFound, "ContainerNotFound")
		return
	}
	name = strings.TrimPrefix(name, "/")
	switch {
	case r.Method == http.MethodGet && name == "":
		if r.URL.Query().Get("restype") != "container" || r.URL.Query().Get("comp") != "list" {
			fail(http.StatusBadRequest, "InvalidQueryParameterValue")
			return
		}
		s.list(w, r)
	case r.Method == http.MethodGet:
		data, ok := s.objects[name]
		if !ok {
			fail(http.StatusNotFound, "BlobNotFound")
			return
		}
		w.Write(data)
	case r.Method == http.MethodPut && r.Header.Get("x-ms-blob-type") != "BlockBlob":
		fail(http.StatusBadRequest, "InvalidHeaderValue")
	case r.Method == http.MethodPut:
		if _, ok := s.objects[name]; ok && r.Header.Get("If-None-Match") == "*" {
			fail(http.StatusConflict, "BlobAlreadyExists")
			return
		}
		data, _ := io.ReadAll(r.Body)
		s.objects[name] = data
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodDelete:
		if _, ok := s.objects[name]; !ok {
			fail(http.StatusNotFound, "BlobNotFound")
			return
		}
		delete(s.objects, name)
		w.WriteHeader(http.StatusAccepted)
	}
}

func (s *azureServer) list(w http.ResponseWriter, r *http.Request) {
	type properties struct {
		Size int    `xml:"Content-Length"`
		Time string `xml:"Last-Modified"`
	}
	type blob struct {
		Name       string
		Properties properties
	}
	var page struct {
		XMLName xml.Name `xml:"EnumerationResults"`
		Blobs   struct{ Blob []blob }
		Next    string `xml:"NextMarker"`
	}
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		if !strings.HasPrefix(name, r.URL.Query().Get("prefix")) || name < r.URL.Query().Get("marker") {
			continue
		}
		if len(page.Blobs.Blob) == 2 {
			page.Next = name
			break
		}
		page.Blobs.Blob = append(page.Blobs.Blob, blob{name, properties{len(s.objects[name]), "Mon, 02 Jan 2006 15:04:05 GMT"}})
	}
	xml.NewEncoder(w).Encode(page)
}

// A store in an Azure container has the properties of a folder, with an account key and
// with a shared access signature.
func TestAzureContainer(t *testing.T) {
	const key = "c2VjcmV0"
	server := &azureServer{account: "account", key: []byte("secret"), objects: map[string][]byte{"other/x": nil}}
	front := httptest.NewServer(server)
	defer front.Close()
	t.Setenv("AZURE_STORAGE_ACCOUNT", "account")
	addr := "az://container/a prefix?endpoint=" + front.URL
	for _, env := range [][2]string{{key, ""}, {"", "?sv=2021&sig=a%2Bb%2Fc%3D"}} {
		t.Setenv("AZURE_STORAGE_KEY", env[0])
		t.Setenv("AZURE_STORAGE_SAS_TOKEN", env[1])
		s := openTest(t, addr)
		exercise(t, s)
		for i := range 5 {
			if err := s.PutText(t.Context(), fmt.Sprint("leases/", i, "/1"), []byte("xy")); err != nil {
				t.Fatal(err)
			}
		}
		server.objects["a prefix/leases/\u0085x"] = nil // a name that a terminal would obey is left out
		list, err := s.List(t.Context(), "leases/")
		delete(server.objects, "a prefix/leases/\u0085x")
		if err != nil || len(list) != 5 || list[4].Name != "leases/4/1" || list[4].Size != 2 {
			t.Errorf("listed %v, %v", list, err)
		}
		for name := range server.objects {
			if !strings.HasPrefix(name, "a prefix/") && name != "other/x" {
				t.Errorf("%s is outside of the prefix", name)
			}
		}
	}
	if server.denied != "" {
		t.Errorf("not signed: %q", server.denied)
	}
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "")
	for value, want := range map[string]string{"d3Jvbmc=": "access denied", "%": "not valid base64", "": "environment variable not set: AZURE_STORAGE_KEY"} {
		t.Setenv("AZURE_STORAGE_KEY", value)
		if _, err := Open(t.Context(), addr, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("key %q: %v, want %s", value, err, want)
		}
	}
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "%zz")
	if _, err := open("az://container"); err == nil || !strings.Contains(err.Error(), "AZURE_STORAGE_SAS_TOKEN is not a query string") {
		t.Errorf("a damaged signature: %v", err)
	}
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "sig=x")
	if b, err := open("az://container/p"); err != nil || b.(*azure).base != "https://account.blob.core.windows.net/container" {
		t.Errorf("the default endpoint: %v", err)
	}
}
