package target_test

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/server/thrift"
)

const idleProcess = "P4LB_TEST_IDLE"

// TestMain lets a test start a process that does nothing until its input ends.
func TestMain(m *testing.M) {
	if os.Getenv(idleProcess) != "" {
		os.Stdout.WriteString("runs\n")
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// startSwitch starts a process with the name and the arguments of a simple_switch.
func startSwitch(t *testing.T, args ...string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Args = args
	cmd.Env = append(os.Environ(), idleProcess+"=1")
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
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
}

// A countingSwitch counts its packets itself, as p4lb's does.
type countingSwitch struct{ thriftSwitch }

func (countingSwitch) PortCounts() []bmv2.PortCounts {
	return []bmv2.PortCounts{{Port: 42, InPackets: 5}}
}

// The counters of a BMv2 on this machine are the kernel's, for the process that serves
// Thrift at the port. Other switches count themselves.
func TestPortCounts(t *testing.T) {
	if _, err := os.Stat("/sys/class/net/lo"); err != nil {
		t.Skip("no loopback interface:", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := thrift.NewServer(&countingSwitch{}, 1)
	go server.Serve(l)
	defer server.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	c := target.NewThrift(l.Addr().String())
	defer c.Close()
	isOwn := func(what string) {
		t.Helper()
		if list, err := c.PortCounts(t.Context()); err != nil || len(list) != 1 || list[0].Port != 42 || list[0].InPackets != 5 {
			t.Errorf("%s: %+v, %v; want what the switch counts", what, list, err)
		}
	}
	isOwn("without a process")
	startSwitch(t, "/usr/bin/simple_switch_grpc", "-i", "7@lo", "--thrift-port", "1")
	startSwitch(t, "/usr/bin/other_switch", "-i", "8@lo", "--thrift-port", port)
	c.Forget() // looks for the process again
	isOwn("with processes of other switches")
	startSwitch(t, "/usr/bin/simple_switch_grpc", "-i", "7@lo", "-i", "9@gone0", "-i3@lo", "--thrift-port", port)
	isOwn("on the same connection")
	c.Forget()
	list, err := c.PortCounts(t.Context())
	if err != nil || len(list) != 2 || list[0].Port != 3 || list[1].Port != 7 || list[1].InPackets == 0 || list[1].InBytes == 0 {
		t.Errorf("%+v, %v; want the kernel's counters of ports 3 and 7", list, err)
	}
	foreign := target.NewThrift("192.0.2.1:" + port) // an address of another machine
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if list, err := foreign.PortCounts(ended); err == nil {
		t.Errorf("another machine's switch has the counters %+v", list)
	}
}
