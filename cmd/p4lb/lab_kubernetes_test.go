package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startKubernetes starts an API server with the controller of Jobs, and
// configures kubectl. There are no nodes; see kubelet.
func startKubernetes(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	etcd, peers, server := freeAddress(t), freeAddress(t), freeAddress(t)
	_, port, _ := net.SplitHostPort(server)
	files := map[string]string{
		"key":    string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
		"tokens": "token,tester,tester,system:masters\n",
		"config": fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://%s", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: token}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, server),
	}
	for name, text := range files {
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBECONFIG", in("config"))
	background(t, dir, nil, "etcd", "--data-dir", in("etcd"), "--listen-client-urls", "http://"+etcd, "--advertise-client-urls", "http://"+etcd, "--listen-peer-urls", "http://"+peers)
	background(t, dir, nil, "kube-apiserver", "--etcd-servers=http://"+etcd, "--service-account-issuer=https://test", "--service-account-key-file="+in("key"), "--service-account-signing-key-file="+in("key"),
		"--token-auth-file="+in("tokens"), "--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+in("certs"), "--service-cluster-ip-range=10.0.0.0/24",
		"--disable-admission-plugins=ServiceAccount") // the controller of service accounts is missing
	eventually(t, "the API server does not answer", func() bool {
		return exec.Command("kubectl", "get", "namespace", "default").Run() == nil
	})
	background(t, dir, nil, "kube-controller-manager", "--kubeconfig="+in("config"), "--controllers=job")
}

// pod contains the fields of a pod that kubelet reads.
type pod struct {
	Metadata struct {
		Name              string
		DeletionTimestamp string
		Annotations       map[string]string
	}
	Spec struct {
		Containers []struct {
			Command []string
			Env     []struct {
				Name      string
				ValueFrom struct{ FieldRef struct{ FieldPath string } }
			}
		}
	}
	Status struct{ Phase string }
}

// kubelet runs the command of each pod in a folder on this machine and reports
// the result. It kills the first pod of index 1, as if its node had failed.
func kubelet(t *testing.T, dir string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- runPods(ctx, dir) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func runPods(ctx context.Context, dir string) error {
	seen, failed := map[string]bool{}, false
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		out, err := exec.CommandContext(ctx, "kubectl", "get", "pods", "-o", "json").Output()
		var list struct{ Items []pod }
		if err == nil {
			err = json.Unmarshal(out, &list)
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("listing pods: %w", err)
		}
		for i := range list.Items {
			p := &list.Items[i]
			if seen[p.Metadata.Name] || p.Status.Phase != "Pending" || p.Metadata.DeletionTimestamp != "" {
				continue
			}
			seen[p.Metadata.Name] = true
			index := p.Metadata.Annotations["batch.kubernetes.io/job-completion-index"]
			first := index == "1" && !failed
			failed = failed || first
			if err := runPod(ctx, dir, p, first); err != nil && ctx.Err() == nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return nil
}

// runPod runs a pod to completion, or lets it fail, and writes its status.
func runPod(ctx context.Context, dir string, p *pod, fail bool) error {
	c := p.Spec.Containers[0]
	cmd := exec.CommandContext(ctx, c.Command[0], c.Command[1:]...)
	cmd.Dir, cmd.Env = dir, os.Environ()
	for _, e := range c.Env {
		path := e.ValueFrom.FieldRef.FieldPath
		for name, value := range p.Metadata.Annotations {
			if path == "metadata.annotations['"+name+"']" || path == "metadata.labels['"+name+"']" {
				cmd.Env = append(cmd.Env, e.Name+"="+value)
			}
		}
	}
	phase := "Succeeded"
	out, err := []byte("the node has failed"), error(nil)
	if !fail {
		out, err = cmd.CombinedOutput()
	}
	if fail || err != nil {
		phase = "Failed"
	}
	if err := os.WriteFile(filepath.Join(dir, p.Metadata.Name+".log"), out, 0o666); err != nil {
		return err
	}
	status := fmt.Sprintf(`{"status":{"phase":%q}}`, phase)
	if out, err := exec.CommandContext(ctx, "kubectl", "patch", "pod", p.Metadata.Name, "--subresource=status", "--type=merge", "-p", status).CombinedOutput(); err != nil {
		return fmt.Errorf("pod %s: %w: %s", p.Metadata.Name, err, out)
	}
	return nil
}

// TestKubernetes runs an Indexed Job with a real API server and the real
// controller of Jobs, and replaces only the nodes. One pod fails and is
// replaced. One process must give the same results, byte for byte.
func TestKubernetes(t *testing.T) {
	wantPrograms(t, "etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
	startKubernetes(t)
	s := newSweep(t)
	p4lb, err := exec.LookPath("p4lb")
	if err != nil {
		t.Fatal(err)
	}
	submit := []string{
		"lab", "submit", "sweep.yaml", "--on", "kubernetes", "--store", filepath.Join(s.dir, "shared"), "--volume", "claim:" + s.dir,
		"--image", "registry/p4lb", "--binary", p4lb, "--shards", "3",
	}
	if out := s.run(submit...); !strings.Contains(out, ": 16 of 16 runs in 3 tasks, job p4lb-sweep-") {
		t.Error(out)
	}
	if out := s.run("lab", "status", "sweep.yaml", "--store", "shared"); !strings.Contains(out, "3 pending") {
		t.Error(out)
	}
	kubelet(t, s.dir)
	out, err := s.command("lab", "wait", "sweep.yaml", "--store", "shared", "--every", "200ms").CombinedOutput()
	if err != nil {
		logs, _ := filepath.Glob(filepath.Join(s.dir, "*.log"))
		for _, l := range logs {
			text, _ := os.ReadFile(l)
			out = append(out, text...)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	s.run("lab", "run", "sweep.yaml", "--store", "one", "-o", "r1")
	s.run("lab", "report", "sweep.yaml", "--store", "shared", "-o", "r2")
	s.same("one", "shared")
	if s.file("r1/table.csv") != s.file("r2/table.csv") {
		t.Error("table.csv of Kubernetes is another one")
	}
	eventually(t, "the Job has not ended", func() bool {
		return strings.Contains(s.run("lab", "status", "sweep.yaml", "--store", "shared"), "3 done")
	})
	if logs, _ := filepath.Glob(filepath.Join(s.dir, "p4lb-sweep-*.log")); len(logs) != 4 {
		t.Errorf("%d pods, want three and the one that took the failed one's place", len(logs))
	}
	if out := s.run(submit...); !strings.Contains(out, "the store has all 16 runs") {
		t.Error(out)
	}
}
