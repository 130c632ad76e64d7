package live

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// serving serves h, and says where.
func serving(t *testing.T, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l, h) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// say opens a connection and says something on it.
func say(t *testing.T, address, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestManyConnections: those that say nothing, or never end what they say, keep
// nobody out; those that are being answered do.
func TestManyConnections(t *testing.T) {
	for _, text := range []string{"", "GET /", "GET / HTTP/1.1\r\nHost: localhost\r\nX: "} {
		address := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "here") }))
		for range maxConnections + 50 {
			say(t, address, text)
		}
		answer, err := http.Get("http://" + address)
		if err != nil {
			t.Fatalf("after %q: %v", text, err)
		}
		got, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || string(got) != "here" {
			t.Errorf("after %q: %q, %v", text, got, err)
		}
	}
	busy, begun := make(chan struct{}), make(chan struct{}, maxConnections)
	address := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-busy
	}))
	for range maxConnections {
		say(t, address, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	for range maxConnections {
		<-begun
	}
	if n, err := say(t, address, "").Read(make([]byte, 1)); err == nil {
		t.Errorf("one more connection: %d bytes", n)
	}
	close(busy)
}

// TestBodiesThatDoNotEnd: a request that announces a body is answered and its
// connection closed, though nothing comes.
func TestBodiesThatDoNotEnd(t *testing.T) {
	address := serving(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it is let in") }))
	for _, head := range []string{"Content-Length: 100000", "Content-Length: 9223372036854775807", "Transfer-Encoding: chunked"} {
		c := say(t, address, "GET / HTTP/1.1\r\nHost: localhost\r\n"+head+"\r\n\r\n")
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || answer.StatusCode != http.StatusRequestEntityTooLarge {
			t.Fatalf("%s: %v, %v", head, answer, err)
		}
		if rest, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(rest), "nothing but a head") {
			t.Errorf("%s: %q, %v", head, rest, err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: %v", head, err)
		}
	}
}
