package live

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// serving serves h and returns its address.
func serving(t *testing.T, secret *tls.Config, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l, secret, h) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// say opens a connection and writes text to it.
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

// TestFault: a request that panics ends only its connection.
func TestFault(t *testing.T) {
	log.SetOutput(io.Discard)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	address := serving(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/fault" {
			panic("a fault")
		}
		fmt.Fprint(w, "here")
	}))
	if answer, err := http.Get("http://" + address + "/fault"); err == nil {
		answer.Body.Close()
		t.Errorf("the fault is answered: %s", answer.Status)
	}
	answer, err := http.Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if got, err := io.ReadAll(answer.Body); string(got) != "here" {
		t.Errorf("after it: %q, %v", got, err)
	}
}

// TestManyConnections: silent clients, and clients with endless requests, do not block
// others; clients with requests in progress do.
func TestManyConnections(t *testing.T) {
	for _, text := range []string{"", "GET /", "GET / HTTP/1.1\r\nHost: localhost\r\nX: "} {
		address := serving(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "here") }))
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
	address := serving(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-busy
	}))
	for range maxConnections {
		say(t, address, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	for range maxConnections {
		<-begun
	}
	if n, err := say(t, address, "GET /").Read(make([]byte, 1)); err == nil {
		t.Errorf("one more connection: %d bytes", n)
	}
	close(busy)
}

// TestManyHandshakes: unfinished handshakes do not block other clients.
func TestManyHandshakes(t *testing.T) {
	secret, trusting := secrets(t)
	address := serving(t, secret, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.TLS != nil) }))
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go tls.Client(ours, trusting).Handshake()
	hello := make([]byte, 1<<14)
	n, err := theirs.Read(hello)
	if err != nil {
		t.Fatal(err)
	}
	for range maxConnections + 50 {
		say(t, address, string(hello[:n]))
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting}}
	answer, err := client.Get("https://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if got, err := io.ReadAll(answer.Body); err != nil || string(got) != "true" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestPlainTextToTLS: an HTTP client on a TLS port gets a helpful answer.
func TestPlainTextToTLS(t *testing.T) {
	secret, _ := secrets(t)
	address := serving(t, secret, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it is let in") }))
	answer, err := http.Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if got, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusBadRequest || !strings.Contains(string(got), "HTTPS") {
		t.Errorf("%s: %q, %v", answer.Status, got, err)
	}
}

// secrets returns the TLS configurations of a server and of its clients.
func secrets(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}
}

// TestBodiesThatDoNotEnd: a request that announces a body is answered and its
// connection closed, though nothing comes.
func TestBodiesThatDoNotEnd(t *testing.T) {
	address := serving(t, nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it is let in") }))
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
