package web

import (
	"bufio"
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
	"regexp"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/testbuild"
	"github.com/p4lb/p4lb/internal/ui/browser"
)

// labServer starts p4lb lab with its page, with flags for the server, and
// returns the page's address.
func labServer(t *testing.T, flags ...string) string {
	t.Helper()
	return serveLab(t, append([]string{"--scheme", "qall-poly3", "--load", "0.6", "--duration", "1m", "--seeds", "1"}, flags...)...)
}

// serveLab starts p4lb lab with some arguments and its page, and returns the page's
// address.
func serveLab(t *testing.T, args ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("a separate process serves the page, without the race detector")
	}
	browser.Path(t)
	binary, err := testbuild.P4lb("../../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, append(append([]string{"lab"}, args...), "--listen", "127.0.0.1:0")...)
	cmd.Dir = t.TempDir()
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	lines := bufio.NewScanner(said)
	at := regexp.MustCompile(`address=(https?://\S+/)`)
	var all string
	for lines.Scan() {
		all += lines.Text() + "\n"
		if m := at.FindStringSubmatch(lines.Text()); m != nil {
			go io.Copy(io.Discard, said)
			return m[1]
		}
	}
	t.Fatalf("there is no page: %s", all)
	return ""
}

// certificate writes a certificate for this machine, and its key.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, bytes []byte) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	pool = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "EC PRIVATE KEY", secret), pool
}

// TestLabPage opens the page of an experiment in virtual time, on a desktop and
// a phone screen, light and dark.
func TestLabPage(t *testing.T) {
	url := labServer(t)
	b := browser.New(t)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{390, 1280} {
			b.Show(url, width, scheme)
			b.Until(`document.querySelector("#state")?.textContent.startsWith("live,")`)
			b.Until(`document.querySelectorAll("#ports tbody tr").length > 0`)
			b.Until(`+document.querySelector("#history").max > 10`)
			if got := b.Eval(`document.documentElement.scrollWidth`); got != float64(width) {
				t.Errorf("at %d the page is %v wide", width, got)
			}
			b.Shoot(fmt.Sprintf("lab-%d-%s", width, scheme))
		}
	}
	for expression, want := range map[string]any{
		`document.title.startsWith("qall-poly3 on ")`:                                                                            true,
		`document.querySelectorAll("#drawing .node").length > 3`:                                                                 true,
		`document.querySelectorAll("#paths .bar").length > 0`:                                                                    true,
		`document.querySelector("#hint").textContent`:                                                                            "",
		`[...document.querySelectorAll("#registers h3")].length > 0`:                                                             true,
		`[...document.querySelectorAll("#ports td")].some(e => /bit.s$/.test(e.textContent) && !e.textContent.startsWith("0 "))`: true,
	} {
		if got := b.Eval(expression); got != want {
			t.Errorf("%s is %v, want %v", expression, got, want)
		}
	}
	b.Quiet()
}

// TestGuardedLabPage requires TLS and a token.
func TestGuardedLabPage(t *testing.T) {
	cert, key, pool := certificate(t)
	url := labServer(t, "--listen-token", "s3cret", "--listen-cert", cert, "--listen-key", key)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for path, want := range map[string]int{"": 401, "metrics": 401, "events": 401, "?token=wrong": 401, "?token=s3cret": 303} {
		r, err := client.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != want {
			t.Errorf("/%s: %s, want %d", path, r.Status, want)
		}
	}
	if r, err := http.Get(url + "?token=s3cret"); err == nil {
		r.Body.Close()
		t.Error("a client that does not know the certificate gets through")
	}
	b := browser.New(t)
	b.Call("Security.setIgnoreCertificateErrors", map[string]any{"ignore": true})
	b.Show(url+"?token=s3cret", 1280, "light")
	b.Until(`document.querySelector("#state")?.textContent.startsWith("live,")`)
	if got := b.Eval(`location.href`); got != url {
		t.Errorf("the page is at %v: the token stays in sight", got)
	}
	b.Quiet()
}

// TestCollectivePage opens the page of collectives. The figures appear while the first
// one is under way, and show all messages in the end.
func TestCollectivePage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "training.yaml")
	experiment := `name: training
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 100G, host-rate: 100G, host-delay: 500ns, delay: 500ns, queue: 200}}
schemes: [ecmp]
traffic: [{collective: all-reduce, size: 2MB, groups: 2, order: strided, repeat: 2, compute: 50us}]
transport: {kind: uec}
mtu: 4160
engine: native
seeds: 1
`
	if err := os.WriteFile(file, []byte(experiment), 0o600); err != nil {
		t.Fatal(err)
	}
	url := serveLab(t, "run", file, "--listen-wait")
	b := browser.New(t)
	b.Show(url, 1400, "light")
	b.Until(`document.querySelector("#figures-box")?.hidden === false`)
	// Two groups of four ranks send 4 * 6 messages in each of two executions.
	const progress = `document.querySelector("#progress").textContent`
	b.Until(`/ of 2 collectives and [1-9][0-9]? of 96 messages have ended/.test(` + progress + `) && !` + progress + `.includes(" 96 of 96")`)
	b.Until(`document.querySelectorAll("#figures figure").length === 4`)
	for expression, want := range map[string]any{
		`[...document.querySelectorAll("#figures h3")].map(e => e.textContent).join("; ")`:      "Collective completion time so far and its ideal; Tail of the completion times; Messages of the collective with ecmp; Links over time with ecmp",
		`[...document.querySelectorAll("#figures .keys")][0].textContent.includes("under way")`: true,
		`/h1, step 0: /.test(document.querySelector("#figures").innerHTML)`:                     true,
	} {
		if got := b.Eval(expression); got != want {
			t.Errorf("%s is %v, want %v", expression, got, want)
		}
	}
	b.Until(progress + ` === "2 of 2 collectives and 96 of 96 messages have ended"`)
	b.Until(`[...document.querySelectorAll("#figures title")].filter(e => /^h[0-9], step/.test(e.textContent)).length === 96`)
	b.Until(`document.querySelector("#state").textContent.startsWith("ended,")`)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{390, 1400} {
			b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500})
			b.Eval(`theme("` + scheme + `")`)
			if got := b.Eval(`document.documentElement.scrollWidth`); got != float64(width) {
				t.Errorf("at %d the page is %v wide", width, got)
			}
			b.Shoot(fmt.Sprintf("collective-%d-%s", width, scheme))
		}
	}
	b.Quiet()
}
