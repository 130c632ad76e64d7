package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// serve starts an object store on loopback with its data in a folder of the
// test, and waits until it answers.
func serve(t *testing.T, name string, args func(addr, dir string) []string, env ...string) (endpoint string) {
	t.Helper()
	program, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed: %v", name, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Minute)
	cmd := exec.CommandContext(ctx, program, args(addr, t.TempDir())...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Env = append(cmd.Env, "HOME="+t.TempDir())
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); cmd.Wait() })
	ready, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		r, err := http.NewRequestWithContext(ready, http.MethodGet, "http://"+addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
			return "http://" + addr
		}
		if plain.Pause(ready, 20*time.Millisecond) != nil {
			stop()
			cmd.Wait()
			t.Fatalf("%s does not answer: %s", name, said.String())
		}
	}
}

// inBucket creates a bucket and opens a store in it.
func inBucket(t *testing.T, addr string, query url.Values) *Store {
	t.Helper()
	b, err := open(addr)
	if err != nil {
		t.Fatal(err)
	}
	c := clientOf(b)
	address := c.base
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	for try := 0; ; try++ { // a listening server may not be ready 101 minio starts MinIO and opens a store in it.
		resp, err := c.do(t.Context(), http.MethodPut, address, nil, nil)
		if err == nil {
			drained(resp)
			break
		}
		if try == 50 || plain.Pause(t.Context(), 100*time.Millisecond) != nil {
			t.Fatal(err)
		}
	}
	return openTest(t, addr)
}

func clientOf(b bucket) *rest {
	switch b := b.(type) {
	case *s3:
		return &b.rest
	case *azure:
		return &b.rest
	}
	return nil
}

// minio starts MinIO, and opens a store in it.
func minio(t *testing.T) *Store {
	t.Setenv("AWS_ACCESS_KEY_ID", "p4lbtest")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "p4lb-test-secret")
	endpoint := serve(t, "minio", func(addr, dir string) []string { return []string{"server", "--quiet", "--address", addr, dir} },
		"MINIO_ROOT_USER=p4lbtest", "MINIO_ROOT_PASSWORD=p4lb-test-secret", "MINIO_BROWSER=off")
	return inBucket(t, "s3://bucket/a prefix/?endpoint="+endpoint, nil)
}

// TestS3 tests a real server, MinIO.
func TestS3(t *testing.T) {
	s := minio(t)
	exercise(t, s)
	for i := range 1001 { // more than one page
		if err := s.PutText(t.Context(), fmt.Sprintf("leases/%04d/1", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := s.List(t.Context(), "leases/"); err != nil || len(list) != 1001 || list[1000].Name != "leases/1000/1" {
		t.Errorf("%d objects are listed, %v", len(list), err)
	}

	// The client's clock is an hour off: it learns the server's time and signs
	// with it.
	c := clientOf(s.b)
	real := c.now
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		c.now = func() time.Time { return real().Add(by) }
		if _, err := s.Text(t.Context(), markerName); err != nil {
			t.Errorf("with a clock that is %v off: %v", by, err)
		}
	}
	c.now = real

	// An unknown key, and a missing bucket.
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	if _, err := Open(t.Context(), s.String(), true); !errors.Is(err, ErrDenied) {
		t.Errorf("with a wrong key: %v", err)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "p4lb-test-secret")
	_, query, _ := strings.Cut(s.String(), "?")
	if _, err := Open(t.Context(), "s3://other?"+query, true); err == nil || !strings.Contains(err.Error(), "there is no such bucket") {
		t.Errorf("a bucket that is not there: %v", err)
	}
}

// TestAzure tests a real server, Azurite.
func TestAzure(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "p4lb")
	t.Setenv("AZURE_STORAGE_KEY", "cDRsYi10ZXN0LXNlY3JldA==")
	endpoint := serve(t, "azurite-blob", func(addr, dir string) []string {
		host, port, _ := net.SplitHostPort(addr)
		return []string{"--silent", "--blobHost", host, "--blobPort", port, "--location", dir, "--disableTelemetry"}
	}, "AZURITE_ACCOUNTS=p4lb:cDRsYi10ZXN0LXNlY3JldA==")
	exercise(t, inBucket(t, "az://container/a prefix?endpoint="+endpoint+"/p4lb", url.Values{"restype": {"container"}}))
	t.Setenv("AZURE_STORAGE_KEY", "d3Jvbmc=")
	if _, err := Open(t.Context(), "az://container/a prefix?endpoint="+endpoint+"/p4lb", true); !errors.Is(err, ErrDenied) {
		t.Errorf("with a wrong key: %v", err)
	}
}

// TestAnswers: unexpected responses of a server result in one-line errors.
func TestAnswers(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	var asked atomic.Int32
	var answer func(w http.ResponseWriter, n int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		answer(w, asked.Add(1))
	}))
	defer server.Close()
	b, err := open("s3://b/p?endpoint=" + server.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := clientOf(b)
	c.wait = func(context.Context, time.Duration) error { return nil }
	always := func(status int, text string) func(http.ResponseWriter, int32) {
		return func(w http.ResponseWriter, _ int32) { w.WriteHeader(status); io.WriteString(w, text) }
	}
	for _, k := range []struct {
		answer func(http.ResponseWriter, int32)
		is     error
		says   string
		asked  int32
	}{
		{always(507, "<Error><Code>XMinioStorageFull</Code><Message>no\nroom</Message></Error>"), ErrFull, "507 XMinioStorageFull no room", 1},
		{always(403, "<Error><Code>AccessDenied</Code><Message>Access Denied.</Message></Error>"), ErrDenied, "AccessDenied", 1},
		{always(404, "<html>nothing"), os.ErrNotExist, "404", 1},
		{always(418, "<html>a teapot"), ErrUnreachable, "not an object store", 1},
		{always(503, "<Error><Code>SlowDown</Code></Error>"), nil, "503 SlowDown", tries},
		{func(w http.ResponseWriter, n int32) { always(map[bool]int{true: 500, false: 200}[n < 3], "")(w, n) }, nil, "", 3},
	} {
		asked.Store(0)
		answer = k.answer
		err := b.put(t.Context(), "x", bytesBody([]byte("y")), false)
		if k.says == "" && err != nil || k.says != "" && (err == nil || !strings.Contains(err.Error(), k.says) || strings.Contains(err.Error(), "\n")) || k.is != nil && !errors.Is(err, k.is) || asked.Load() != k.asked {
			t.Errorf("after %d requests: %v; want %q after %d", asked.Load(), err, k.says, k.asked)
		}
	}
	server.Close()
	if err := b.put(t.Context(), "x", bytesBody(nil), false); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("connection refused: %v", err)
	}
}

// TestSignature uses the published example of an AWS signature.
func TestSignature(t *testing.T) {
	v := v4{maker: "aws", algorithm: "AWS4-HMAC-SHA256", headers: "x-amz-", key: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", region: "us-east-1", service: "s3"}
	r, _ := http.NewRequest(http.MethodGet, "https://examplebucket.s3.amazonaws.com/test.txt", nil)
	r.Header.Set("Range", "bytes=0-9")
	if err := v.sign(r, nil, time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	const want = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
	if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+want) {
		t.Errorf("%s, want signature %s", got, want)
	}
}
