package p4rt

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

// TestGoClient drives a switch with antoninbas's client over a TCP socket, in a
// separate process (see testdata/goclient/go.mod).
func TestGoClient(t *testing.T) {
	if testing.Short() {
		t.Skip("builds another program")
	}
	client := buildGoClient(t)
	r := newRig(t, Options{})
	p := newTestPort()
	if err := r.dev.AddPort(3, p, nil); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go r.server.Serve(l)

	c := testConfig(t)
	program, info := filepath.Join(t.TempDir(), "all.json"), filepath.Join(t.TempDir(), "all.txtpb")
	text, err := prototext.Marshal(olderInfo(c.GetP4Info()))
	for _, err := range []error{err, os.WriteFile(program, c.GetP4DeviceConfig(), 0o600), os.WriteFile(info, text, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(client, l.Addr().String(), program, info)
	var errs strings.Builder
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	packet := frame(9, 8, "to the CPU port")
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch lines.Text() {
		case "digest":
			p.in <- frame(1, 7, "from a new source")
		case "packet":
			p.in <- packet
		case "sent":
			p.wantPacket(t, packet)
			in.Write([]byte("\n"))
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the client: %v\n%s", err, errs.String())
	}
}

// olderInfo removes the fields of P4Info that are newer than the client.
func olderInfo(p *configv1.P4Info) *configv1.P4Info {
	p = proto.Clone(p).(*configv1.P4Info)
	for _, t := range p.GetTables() {
		t.InitialDefaultAction, t.HasInitialEntries = nil, false
	}
	return p
}

// buildGoClient builds testdata/goclient. It skips the test if its modules are
// not available.
func buildGoClient(t *testing.T) string {
	t.Helper()
	tool := func(args ...string) ([]byte, error) {
		cmd := exec.Command("go", args...)
		cmd.Dir = filepath.Join("testdata", "goclient")
		cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOWORK=off")
		return cmd.CombinedOutput()
	}
	if out, err := tool("mod", "download"); err != nil {
		t.Skipf("the modules of the client are not available: %v\n%s", err, out)
	}
	name := filepath.Join(t.TempDir(), "goclient")
	if out, err := tool("build", "-o", name, "."); err != nil {
		t.Fatalf("building the client: %v\n%s", err, out)
	}
	return name
}
