package target

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInterfaceOf finds a port's interface in the arguments of simple_switch.
func TestInterfaceOf(t *testing.T) {
	args := strings.Fields("simple_switch_grpc --no-p4 --thrift-port 9091 -i 1@veth1 -i2@veth2 --interface 12@veth12 -- --cpu-port 255")
	for port, want := range map[int]string{1: "veth1", 2: "veth2", 12: "veth12", 3: "", 0: ""} {
		if got := interfaceOf(args, port); got != want {
			t.Errorf("port %d is at %q, want %q", port, got, want)
		}
	}
	if got := argument(args, "--thrift-port"); got != "9091" {
		t.Errorf("the Thrift server is at %q", got)
	}
	if got := argument([]string{"x", "--thrift-port=7"}, "--thrift-port"); got != "7" {
		t.Errorf("the Thrift server is at %q", got)
	}
}

// TestInterfaceBytes reads what an interface has sent, not what it received.
func TestInterfaceBytes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dev")
	text := "Inter-|   Receive                            |  Transmit\n" +
		" face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed\n" +
		"  veth1: 10 1 0 0 0 0 0 0 1234 2 0 0 0 0 0 0\n" +
		"veth12:77 1 0 0 0 0 0 0 99 2 0 0 0 0 0 0\n broken: 1 2\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]uint64{"veth1": 1234, "veth12": 99} {
		if got, err := interfaceBytes(file, name); err != nil || got != want {
			t.Errorf("%s has sent %d (error %v), want %d", name, got, err, want)
		}
	}
	for _, name := range []string{"veth", "broken"} {
		if _, err := interfaceBytes(file, name); err == nil {
			t.Errorf("%s has sent something", name)
		}
	}
}

// TestHasAddress tells an address of the machine from one of a neighbour.
func TestHasAddress(t *testing.T) {
	table := "Local:\n  +-- 198.18.0.0/31 1 0 0\n     |-- 198.18.0.0\n        /31 link UNICAST\n     |-- 198.18.0.1\n        /32 host LOCAL\n"
	if hasAddress(table, "198.18.0.0") || !hasAddress(table, "198.18.0.1") || hasAddress(table, "198.18.0.11") {
		t.Error("198.18.0.1 is the address, and no other")
	}
}
