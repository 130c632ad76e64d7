package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/cmd/p4lb/internal/serve"
	"github.com/p4lb/p4lb/examples"
	"github.com/p4lb/p4lb/internal/server/thrift"
)

const switchPatience = 3 * time.Minute

// writeExample writes an example into a temporary folder.
func writeExample(t *testing.T, name string) string {
	t.Helper()
	text, err := examples.FS.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A switchProcess is a running switch verb with its addresses.
type switchProcess struct {
	grpc, thrift string
	stop         func() int // interrupts the switch and returns the exit code
}

var serving = regexp.MustCompile(`msg="serving (\w+)" address=(\S+)`)

func startSwitch(t *testing.T, args ...string) *switchProcess {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	read, write := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"switch", "--grpc", "127.0.0.1:0", "--thrift", "127.0.0.1:0"}, args...), strings.NewReader(""), io.Discard, write)
		write.Close()
	}()
	p := &switchProcess{stop: func() int {
		cancel()
		select {
		case c := <-code:
			return c
		case <-time.After(switchPatience):
			t.Fatal("the switch does not stop")
			return 0
		}
	}}
	lines := bufio.NewScanner(read)
	for p.grpc == "" || p.thrift == "" {
		if !lines.Scan() {
			t.Fatal("the switch does not start")
		}
		if m := serving.FindStringSubmatch(lines.Text()); m != nil && m[1] == "Thrift" {
			p.thrift = m[2]
		} else if m != nil {
			p.grpc = m[2]
		} else {
			t.Errorf("the switch says %s", lines.Text())
		}
	}
	go io.Copy(io.Discard, read)
	return p
}

// TestSwitchVerb runs a switch between two UDP sockets, and controls it over
// P4Runtime and Thrift.
func TestSwitchVerb(t *testing.T) {
	host, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	local := freeUDP(t)
	trace := filepath.Join(t.TempDir(), "trace.json")
	p := startSwitch(t, "--load", writeExample(t, "reflector.p4"), "--device-id", "9", "--trace", trace,
		"-i", "5@udp:"+local+","+host.LocalAddr().String())

	ctx, cancel := context.WithTimeout(context.Background(), switchPatience)
	defer cancel()
	conn, err := grpc.NewClient(p.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c, err := p4v1.NewP4RuntimeClient(conn).GetForwardingPipelineConfig(ctx, &p4v1.GetForwardingPipelineConfigRequest{DeviceId: 9})
	if err != nil || c.GetConfig().GetCookie() != nil || c.GetConfig().GetP4Info().GetPkgInfo().GetArch() != "v1model" {
		t.Errorf("the config has P4Info %v, %v", c.GetConfig().GetP4Info(), err)
	}
	tool, err := thrift.Dial(ctx, p.thrift)
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Close()
	if id, _, err := tool.Info(ctx); err != nil || id != 9 {
		t.Errorf("Thrift says device %d, %v", id, err)
	}

	addr, err := net.ResolveUDPAddr("udp", local)
	if err != nil {
		t.Fatal(err)
	}
	frame := append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5}, "hello"...)
	host.WriteToUDP(frame, addr)
	host.SetReadDeadline(time.Now().Add(switchPatience))
	buf := make([]byte, 100)
	n, err := host.Read(buf)
	want := append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5}, "hello"...)
	if err != nil || !bytes.Equal(buf[:n], want) {
		t.Errorf("got %x, %v, want %x", buf[:n], err, want)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	checkTrace(t, trace)
}

// freeUDP returns an address that is currently free.
func freeUDP(t *testing.T) string {
	t.Helper()
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().String()
}

// checkTrace checks the events of a packet: parsed, queued, sent.
func checkTrace(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range bytes.Lines(text) {
		var e serve.TraceLine
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		seen[e.Event] = true
		if e.Event == "transmit" && (e.Value == nil || *e.Value != 5) {
			t.Errorf("%s", line)
		}
	}
	for _, event := range []string{"parse state", "action", "enqueue", "transmit"} {
		if !seen[event] {
			t.Errorf("the trace has no %q:\n%s", event, text)
		}
	}
}

// TestSwitchPlaysCaptures runs a switch with only captures as ports. It must
// end by itself.
func TestSwitchPlaysCaptures(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.pcap"), filepath.Join(dir, "out.pcap")
	head := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	head = append(append(head, make([]byte, 16)...), 1, 0, 0, 0)
	record := func(data []byte) []byte {
		b := make([]byte, 8) // time
		b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
		return append(b, data...)
	}
	sent := append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5}, "hello"...)
	back := append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5}, "hello"...)
	if err := os.WriteFile(in, append(head, record(sent)...), 0o600); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	code := run(t.Context(), []string{
		"switch", "--load", writeExample(t, "reflector.p4"), "--grpc", "off", "-i", "0@pcap:" + in + "," + out,
	}, strings.NewReader(""), io.Discard, &errs)
	if code != cli.ExitDone || errs.Len() > 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(got, record(back)[8:]) {
		t.Errorf("the capture is %x", got)
	}
}

// TestCutCapture plays a capture that ends inside a packet. The switch plays
// the packets before and returns an error.
func TestCutCapture(t *testing.T) {
	program := writeExample(t, "reflector.p4")
	capture := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	capture = append(capture, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0) // version, zone, accuracy, length, Ethernet
	packet := func(size, there uint32) []byte {
		var b []byte
		for _, v := range []uint32{0, 0, size, size} {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		return append(b, make([]byte, there)...)
	}
	capture = append(append(capture, packet(60, 60)...), packet(60, 20)...)
	in := filepath.Join(t.TempDir(), "cut.pcap")
	if err := os.WriteFile(in, capture, 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"switch", "--load", program, "--grpc", "off", "-i", "0@pcap:" + in + ","}, strings.NewReader(""), &stdout, &stderr)
	if code != 1 || !strings.Contains(stderr.String(), "error: port 0: "+in+": packet 2: ") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}

// TestSwitchEntries loads table entries from a file, with only captures as
// ports. An error in line 7 is reported in one line before anything else
// happens.
func TestSwitchEntries(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	head := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	head = append(append(head, make([]byte, 16)...), 1, 0, 0, 0)
	packet := append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5}, "hello"...)
	record := append(make([]byte, 8), byte(len(packet)), 0, 0, 0, byte(len(packet)), 0, 0, 0)
	in := put("in.pcap", string(head)+string(record)+string(packet))
	out := filepath.Join(dir, "out.pcap")
	try := func(entries string) (int, string) {
		var stderr bytes.Buffer
		code := run(t.Context(), []string{
			"switch", "--load", "../../internal/server/thrift/testdata/session.p4", "--entries", entries, "--grpc", "off", "-i", "0@pcap:" + in + ",", "-i", "6@pcap:," + out,
		}, strings.NewReader(""), io.Discard, &stderr)
		return code, stderr.String()
	}
	wrong := put("wrong.txt", strings.Repeat("mc_node_create 1 2\n", 6)+"table_set_default keyles_one to 6\n")
	code, said := try(wrong)
	if code != cli.ExitInput || said != "error: "+wrong+":7: there is no table keyles_one; did you mean SessionIngress.keyless_one?\n" {
		t.Errorf("exit code %d: %s", code, said)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("the capture is there, though nothing began")
	}
	for name, text := range map[string]string{
		"right.txt":  "table_set_default keyless_one to 6\n",
		"right.json": `{"table_entries": [{"table": "keyless_one", "default_action": true, "action_name": "to", "action_params": {"port": 6}}]}`,
	} {
		if code, said := try(put(name, text)); code != cli.ExitDone || said != "" {
			t.Errorf("%s: exit code %d: %s", name, code, said)
		}
		if got, err := os.ReadFile(out); err != nil || !bytes.HasSuffix(got, packet) {
			t.Errorf("%s: the capture is %x, %v", name, got, err)
		}
		os.Remove(out)
	}
}
