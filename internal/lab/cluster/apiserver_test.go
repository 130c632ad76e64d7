package cluster

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAPIServer: a real API server accepts the manifest and knows each of its
// fields. A test in cmd/p4lb with the Job controller checks that the pods run.
func TestAPIServer(t *testing.T) {
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
	if testing.Short() {
		t.Skip("starts an API server: not with -short")
	}
	dir := t.TempDir()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	block := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	for name, text := range map[string][]byte{"key": block, "tokens": []byte("token,tester,tester,system:masters\n")} {
		if err := os.WriteFile(in(name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	etcd, peers, server := freeAddress(t), freeAddress(t), freeAddress(t)
	_, port, _ := net.SplitHostPort(server)
	goOn(t, "etcd", "--data-dir", in("etcd"), "--listen-client-urls", "http://"+etcd, "--advertise-client-urls", "http://"+etcd, "--listen-peer-urls", "http://"+peers)
	goOn(t, "kube-apiserver", "--etcd-servers=http://"+etcd, "--service-account-issuer=https://test", "--service-account-key-file="+in("key"), "--service-account-signing-key-file="+in("key"),
		"--token-auth-file="+in("tokens"), "--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+in("certs"), "--service-cluster-ip-range=10.0.0.0/24")

	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // self-signed
	ask := func(method, path, text string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "https://"+server+path, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer token")
		r.Header.Set("Content-Type", "application/yaml")
		resp, err := client.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(2 * time.Minute)
	for code := 0; code != http.StatusOK; code, _ = ask(http.MethodGet, "/api/v1/namespaces/default", "") {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the API server does not answer within two minutes")
		}
	}

	const jobs = "/apis/batch/v1/namespaces/default/jobs?fieldValidation=Strict"
	j := small()
	j.Image, j.Secret, j.Volume, j.Mount = "registry/p4lb:1", "keys", "claim", "/shared"
	text := kubernetes{}.Text(j)
	if code, body := ask(http.MethodPost, jobs, text); code != http.StatusCreated {
		t.Fatalf("%d: %s", code, body)
	}
	if code, body := ask(http.MethodPost, jobs, strings.Replace(strings.Replace(text, "completionMode", "completeMode", 1), j.Name, "other", 1)); code != http.StatusBadRequest {
		t.Errorf("a field that there is not: %d: %s", code, body)
	}
	_, body := ask(http.MethodGet, "/apis/batch/v1/namespaces/default/jobs/"+j.Name, "")
	if s, err := kubernetesState(body); err != nil || s != (State{Pending: 3}) {
		t.Errorf("%+v, %v", s, err)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// goOn runs a server until the test ends.
func goOn(t *testing.T, name string, args ...string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, name, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); cmd.Wait() })
}
