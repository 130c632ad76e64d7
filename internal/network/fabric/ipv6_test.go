package fabric

import (
	"strings"
	"testing"
)

const twoVersions = `name: two
defaults: {switch-links: {rate: 1Gbps}, host-links: {rate: 1Gbps}}
switches: {l1: {role: leaf}, l2: {role: leaf}}
hosts: {h1: {ip: 10.0.1.1/22}, h2: {ip: "2001:db8::2/64"}}
services: {web: {address: 10.0.9.9, port: 80, servers: [h1]}}
links:
- {ends: [h1, l1]}
- {ends: [h2, l2]}
- {ends: [l1, l2]}
`

// TestToIPv6: IPv4 addresses move to fd00::/96, and all else stays.
func TestToIPv6(t *testing.T) {
	before, err := Load("two.yaml", []byte(twoVersions))
	if err != nil {
		t.Fatal(err)
	}
	after, err := before.ToIPv6()
	if err != nil {
		t.Fatal(err)
	}
	h1, h2 := after.Host("h1"), after.Host("h2")
	if h1.IP.String() != "fd00::a00:101/118" || h2.IP != before.Host("h2").IP || h1.MAC != before.Host("h1").MAC {
		t.Errorf("h1 has %v and %v, h2 has %v", h1.IP, h1.MAC, h2.IP)
	}
	if got := after.Services[0].Address.String(); got != "fd00::a00:909" {
		t.Errorf("the service has the address %s", got)
	}
	if before.Host("h1").IP.String() != "10.0.1.1/22" {
		t.Error("the topology itself has changed")
	}
	if len(after.Destinations()) != 2 || !after.HasIPv6() {
		t.Errorf("destinations %v", after.Destinations())
	}
	both, err := Load("two.yaml", []byte(strings.Replace(twoVersions, "2001:db8::2", "fd00::10.0.1.1", 1)))
	if err != nil {
		t.Fatal(err)
	}
	const want = "hosts h1 and h2 would both have the address fd00::a00:101, as IPv4 addresses move to fd00::/96: want another address for one of them"
	if _, err := both.ToIPv6(); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
