package play

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestGuards: the page is open, the engine needs the token and the page's origin.
func TestGuards(t *testing.T) {
	s, err := New("s3cret")
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(s)
	defer ts.Close()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, c := range []struct {
		name, method, path, host, origin, cookie, kind string
		want                                           int
	}{
		{"page", "GET", "/", "", "", "", "", 200},
		{"script", "GET", "/app.js", "", "", "", "", 200},
		{"worker page of the site", "GET", "/index.html", "", "", "", "", 404},
		{"folder above", "GET", "/../page.go", "", "", "", "", 404},
		{"other name", "GET", "/", "example.org", "", "", "", 421},
		{"token", "GET", "/?token=s3cret", "", "", "", "", 303},
		{"wrong token", "GET", "/?token=guess", "", "", "", "", 401},
		{"call", "POST", "/api/list", "", ts.URL, "s3cret", "application/json", 200},
		{"call by GET", "GET", "/api/list", "", ts.URL, "s3cret", "application/json", 405},
		{"call without cookie", "POST", "/api/list", "", ts.URL, "", "application/json", 401},
		{"call with another token", "POST", "/api/list", "", ts.URL, "guess", "application/json", 401},
		{"call from another page", "POST", "/api/list", "", "http://example.org", "s3cret", "application/json", 403},
		{"call without origin", "POST", "/api/list", "", "", "s3cret", "application/json", 403},
		{"call as a form", "POST", "/api/list", "", ts.URL, "s3cret", "text/plain", 415},
	} {
		r, err := http.NewRequest(c.method, ts.URL+c.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if c.host != "" {
			r.Host = c.host
		}
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if c.cookie != "" {
			r.AddCookie(&http.Cookie{Name: cookie, Value: c.cookie})
		}
		r.Header.Set("Content-Type", c.kind)
		got, err := client.Do(r)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		text, _ := io.ReadAll(got.Body)
		got.Body.Close()
		if got.StatusCode != c.want {
			t.Errorf("%s: %d %.80s, want %d", c.name, got.StatusCode, text, c.want)
		}
		if c.name == "call" && !strings.HasPrefix(string(text), `{"answer":{"version":`) {
			t.Errorf("answer %.80s", text)
		}
	}
}
