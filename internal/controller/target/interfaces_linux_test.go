package target

import (
	"maps"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/bmv2"
)

// TestInterfacesOf finds ports' interfaces in the arguments of simple_switch.
func TestInterfacesOf(t *testing.T) {
	args := strings.Fields("simple_switch_grpc --no-p4 --thrift-port 9091 -i 1@veth1 -i2@veth2 --interface 12@veth12 -i -- --cpu-port 255")
	if got, want := interfacesOf(args), (map[int]string{1: "veth1", 2: "veth2", 12: "veth12"}); !maps.Equal(got, want) {
		t.Errorf("the ports are at %v, want %v", got, want)
	}
	if got := argument(args, "--thrift-port"); got != "9091" {
		t.Errorf("the Thrift server is at %q", got)
	}
	if got := argument([]string{"x", "--thrift-port=7"}, "--thrift-port"); got != "7" {
		t.Errorf("the Thrift server is at %q", got)
	}
}

// TestInterfaceCounts: receive and transmit counters are not mixed up.
func TestInterfaceCounts(t *testing.T) {
	const head = "Inter-|   Receive                            |  Transmit\n" +
		" face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed\n"
	got, err := interfaceCounts(head + "  veth1: 10 1 0 3 0 0 0 0 1234 2 0 4 0 0 0 0\nveth12:77 5 0 0 0 0 0 0 99 6 0 0 0 0 0 0\n")
	if err != nil {
		t.Fatal(err)
	}
	one := bmv2.PortCounts{InBytes: 10, InPackets: 1, OutBytes: 1234, OutPackets: 2}
	one.Drops[bmv2.DropUnread], one.Drops[bmv2.DropLink] = 3, 4
	want := map[string]bmv2.PortCounts{"veth1": one, "veth12": {InBytes: 77, InPackets: 5, OutBytes: 99, OutPackets: 6}}
	if !maps.Equal(got, want) {
		t.Errorf("the counts are %+v, want %+v", got, want)
	}
	for _, broken := range []string{" veth: 1 2\n", "veth: 10 1 0 0 0 0 0 0 x 2 0 0 0 0 0 0\n"} {
		if got, err := interfaceCounts(head + broken); err == nil {
			t.Errorf("%q counts %v", broken, got)
		}
	}
}

// TestHasAddress distinguishes an address of the machine from a neighbour's address.
func TestHasAddress(t *testing.T) {
	table := "Local:\n  +-- 198.18.0.0/31 1 0 0\n     |-- 198.18.0.0\n        /31 link UNICAST\n     |-- 198.18.0.1\n        /32 host LOCAL\n"
	if hasAddress(table, "198.18.0.0") || !hasAddress(table, "198.18.0.1") || hasAddress(table, "198.18.0.11") {
		t.Error("198.18.0.1 is the address, and no other")
	}
}
