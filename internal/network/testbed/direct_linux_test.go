package testbed

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/netspace"
)

// TestDirectReturn: with BMv2 too, hosts that serve a service directly have its address on
// their loopback, with IPv4 and with IPv6, and other hosts do not.
func TestDirectReturn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces want root")
	}
	for name, c := range map[string]struct{ hosts, address, loopback string }{
		"direct4": {"h1: {ip: 10.0.1.1/24}, h2: {ip: 10.0.1.2/24}", "10.0.1.100", "10.0.1.100/32"},
		"direct6": {"h1: {ip: \"2001:db8::1/64\"}, h2: {ip: \"2001:db8::2/64\"}", "2001:db8::64", "2001:db8::64/128"},
	} {
		topology, err := fabric.Load("t.yaml", fmt.Appendf(nil, "name: %s\ndefaults: {switch-links: {rate: 1G}, host-links: {rate: 1G}}\nswitches: {l1: {}}\nhosts: {%s}\nlinks: [{ends: [h1, l1]}, {ends: [h2, l1]}]\n"+
			"services: {web: {address: \"%s\", port: 80, servers: [h2], return: direct}}\n", name, c.hosts, c.address))
		if err != nil {
			t.Fatal(err)
		}
		b, err := openBed(Options{Name: name}, &plan.Plan{Topology: topology, Switches: []*plan.Switch{{Name: "l1", Pipeline: &plan.Pipeline{}}}})
		if err != nil {
			t.Fatal(err)
		}
		for host, want := range map[string]int{"h1": 0, "h2": 1} {
			s, err := netspace.Open(namespace(b.name, host))
			if err != nil {
				t.Fatal(err)
			}
			var list []net.Addr
			if err := s.Do(func() (err error) {
				list, err = net.InterfaceAddrs()
				return err
			}); err != nil {
				t.Error(err)
			}
			s.Close()
			if n := strings.Count(fmt.Sprint(list), c.loopback); n != want {
				t.Errorf("%s of %s has %v, which contains %s %d times, want %d", host, name, list, c.loopback, n, want)
			}
		}
		if err := b.close(false); err != nil {
			t.Error(err)
		}
	}
}
