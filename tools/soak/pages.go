package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A pageTarget is an attacked page for browsers, with a reader that keeps
// requesting it, each time with a new TLS handshake.
type pageTarget struct {
	context.Context
	near    bool // the reader uses the address of the attackers
	address string
	reader  *http.Client
}

// trusting is a client configuration that accepts any certificate.
var trusting = &tls.Config{InsecureSkipVerify: true}

func (g *pageTarget) build(binary, dir string) (*exec.Cmd, error) {
	record := filepath.Join(dir, "x.csv")
	if err := os.WriteFile(record, []byte(recorded(1000, "s")), 0o644); err != nil {
		return nil, err
	}
	cert, key, err := certificate(dir)
	if err != nil {
		return nil, err
	}
	address, err := freePort()
	if err != nil {
		return nil, err
	}
	return exec.Command(binary, "inspect", "--replay", record, "--listen", address, "--listen-cert", cert, "--listen-key", key), nil
}

func (g *pageTarget) find(_ string, addresses []string) error {
	g.address = addresses[0]
	// Most readers have another address than the attackers. 127.0.0.2 is
	// another address of this machine on some systems.
	var from net.Dialer
	if elsewhere := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}); !g.near {
		if l, err := net.ListenTCP("tcp", elsewhere); err == nil {
			l.Close()
			from.LocalAddr = elsewhere
		}
	}
	g.reader = &http.Client{Transport: &http.Transport{TLSClientConfig: trusting, DisableKeepAlives: true, DialContext: from.DialContext}}
	return nil
}

func (g *pageTarget) open(_ int, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(g, patience)
	defer cancel()
	return g.change(ctx)
}

// change requests the page until it succeeds, like a person would.
func (g *pageTarget) change(ctx context.Context) (err error) {
	for {
		if err = g.ask(ctx); err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (g *pageTarget) ask(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+g.address, nil)
	if err != nil {
		return err
	}
	answer, err := g.reader.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the page: %s", answer.Status)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// pageSieges returns the attacks of a page's readers. A reader at their address
// waits as long as each of them.
func pageSieges() []siege {
	stop := func(g *pageTarget) error { return connections(g, g.address, hello()) }
	bodies := func(g *pageTarget) error {
		return g.crowd("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n", "x")
	}
	return []siege{
		{name: "silent connections", page: func(g *pageTarget) error { return connections(g, g.address, "") }},
		{name: "incomplete TLS handshakes", page: stop},
		{name: "incomplete TLS handshakes from the reader's address", page: stop, near: true},
		{name: "endless headers", page: func(g *pageTarget) error { return g.crowd("GET / HTTP/1.1\r\nHost: localhost\r\n", "X: y\r\n") }},
		{name: "endless bodies", page: bodies},
		{name: "endless bodies from the reader's address", page: bodies, near: true},
		{name: "events without receiver", page: func(g *pageTarget) error { return g.crowd("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n", "\r\n") }},
		{name: "pages without receiver", page: func(g *pageTarget) error {
			return g.crowd(strings.Repeat("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 100), "\r\n")
		}},
	}
}

// crowd runs 600 readers that send first, then rest repeatedly, without reading
// anything. A rejected reader connects again.
func (g *pageTarget) crowd(first, rest string) error {
	var all sync.WaitGroup
	for range 600 {
		all.Go(func() {
			for g.Err() == nil {
				c, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Second}, "tcp", g.address, trusting)
				if err != nil {
					continue
				}
				end := context.AfterFunc(g, func() { c.Close() })
				for _, err = io.WriteString(c, first); err == nil; _, err = io.WriteString(c, rest) {
					time.Sleep(100 * time.Millisecond)
				}
				end()
				c.Close()
			}
		})
	}
	all.Wait()
	return nil
}

// recorded returns a recording of n readings, one per microsecond or second.
func recorded(n int, each string) string {
	zeros := map[string]string{"µs": "", "s": "000000"}[each]
	return "time_us,clock_us,switch,role,scheme,register,quantity,cell,index,port,peer,group,path,raw,value,unit,text,change,rate,minor,wall_us\n" +
		numbered(n, "#"+zeros+",#"+zeros+",l1,leaf,ecmp,,rx packets,1,port 1,1,h1,0,0,0,0,packets,0 packets,0,0,true,0\n")
}

// certificate creates a self-signed certificate with its key.
func certificate(dir string) (cert, key string, err error) {
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), DNSNames: []string{"localhost"}}
	public, err := x509.CreateCertificate(rand.Reader, about, about, secret.Public(), secret)
	if err != nil {
		return "", "", err
	}
	private, err := x509.MarshalECPrivateKey(secret)
	if err != nil {
		return "", "", err
	}
	cert, key = filepath.Join(dir, "x.crt"), filepath.Join(dir, "x.key")
	if err := os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: public}), 0o600); err != nil {
		return "", "", err
	}
	return cert, key, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), 0o600)
}

// hello returns the first message of a TLS handshake.
func hello() string {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go tls.Client(ours, trusting).Handshake()
	b := make([]byte, 1<<14)
	n, err := theirs.Read(b)
	if err != nil {
		panic(err) // it writes into memory
	}
	return string(b[:n])
}
