package store

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// googleFront stands in for Google Cloud Storage. It accepts requests as
// documented for the XML API (signatures GOOG4-HMAC-SHA256,
// x-goog-if-generation-match), checks each of them, and stores the objects in
// MinIO. Existing stand-ins use Google's JSON API and accept no signed uploads
// (fake-gcs-server 1.52.2: "invalid uploadType").
func googleFront(t *testing.T, key, secret string, behind *rest) *httptest.Server {
	t.Helper()
	at, err := url.Parse(behind.base)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if why := googleDenies(r, text, key, secret); why != "" {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, "<Error><Code>SignatureDoesNotMatch</Code><Message>%s</Message></Error>", why)
			return
		}
		var b *body
		if r.Method == http.MethodPut {
			b = bytesBody(text)
		}
		address := "http://" + at.Host + r.URL.EscapedPath()
		if r.URL.RawQuery != "" {
			address += "?" + r.URL.RawQuery
		}
		resp, err := behind.once(r.Context(), r.Method, address, b, func(h http.Header) {
			if r.Header.Get("x-goog-if-generation-match") == "0" {
				h.Set("If-None-Match", "*")
			}
		})
		if a := behind.said(err); a != nil {
			w.WriteHeader(a.Status)
			fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", a.Code)
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		io.Copy(w, resp.Body)
	}))
	t.Cleanup(server.Close)
	return server
}

// googleDenies checks a signature according to Google's documentation and
// returns the problem.
func googleDenies(r *http.Request, text []byte, key, secret string) string {
	var credential, names, signature string
	fields := strings.NewReplacer(",", " ", "Credential=", "", "SignedHeaders=", "", "Signature=", "").Replace(r.Header.Get("Authorization"))
	if n, err := fmt.Sscanf(fields, "GOOG4-HMAC-SHA256 %s %s %s", &credential, &names, &signature); n != 3 {
		return fmt.Sprint("the header Authorization: ", err)
	}
	scope := strings.Split(credential, "/")
	stamp := r.Header.Get("x-goog-date")
	if len(scope) != 5 || scope[0] != key || scope[3] != "storage" || scope[4] != "goog4_request" || !strings.HasPrefix(stamp, scope[1]+"T") {
		return "the scope " + credential
	}
	if at, err := time.Parse("20060102T150405Z", stamp); err != nil || time.Since(at).Abs() > 15*time.Minute {
		return "the time " + stamp
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(text))
	if r.Header.Get("x-goog-content-sha256") != sum {
		return "the digest of the content"
	}
	list := strings.Split(names, ";")
	for name := range r.Header {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-goog-") && !slices.Contains(list, lower) {
			return "the header " + lower + " is not signed"
		}
	}
	if !slices.IsSorted(list) || !slices.Contains(list, "host") {
		return "the headers " + names
	}
	lines := []string{r.Method, r.URL.EscapedPath(), r.URL.Query().Encode()}
	lines[2] = strings.ReplaceAll(lines[2], "+", "%20")
	for _, name := range list {
		value := r.Header.Get(name)
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		lines = append(lines, name+":"+value)
	}
	lines = append(lines, "", names, sum)
	request := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	sign := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	k := []byte("GOOG4" + secret)
	for _, part := range scope[1:] {
		k = sign(k, part)
	}
	want := sign(k, strings.Join([]string{"GOOG4-HMAC-SHA256", stamp, strings.Join(scope[1:], "/"), hex.EncodeToString(request[:])}, "\n"))
	if got, err := hex.DecodeString(signature); err != nil || !bytes.Equal(got, want) {
		return "the signature"
	}
	return ""
}

// TestGCS tests the requests to Google Cloud Storage.
func TestGCS(t *testing.T) {
	s := minio(t)
	t.Setenv("GCS_ACCESS_KEY_ID", "GOOGTEST")
	t.Setenv("GCS_SECRET_ACCESS_KEY", "a secret")
	front := googleFront(t, "GOOGTEST", "a secret", clientOf(s.b))
	addr := "gs://bucket/another prefix?endpoint=" + front.URL
	exercise(t, openTest(t, addr))
	t.Setenv("GCS_SECRET_ACCESS_KEY", "wrong")
	if _, err := Open(t.Context(), addr, true); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "the signature") {
		t.Errorf("with a wrong key: %v", err)
	}
}
