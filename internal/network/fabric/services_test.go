package fabric

import (
	"reflect"
	"strings"
	"testing"
)

const served = `
switches: {l1: , l2: }
hosts: {h1: {ip: 10.0.1.1/24}, h2: {ip: 10.0.2.1/24}, h3: {ip: 10.0.2.2/24}, h6: {ip: "2001:db8::6/64"}}
services:
  web: {address: 10.0.2.100, port: 80, servers: [h2, h3], drained: [h3]}
  all: {address: "2001:db8::100", servers: [h6]}
links:
- {ends: [h1, l1], rate: 1Gbps}
- {ends: [h2, l2], rate: 1Gbps}
- {ends: [h3, l2], rate: 1Gbps}
- {ends: [h6, l2], rate: 1Gbps}
- {ends: [l1, l2], rate: 1Gbps}
`

// TestServices: services have addresses and servers, and survive writing and renumbering.
func TestServices(t *testing.T) {
	made, err := Load("s.yaml", []byte(served))
	if err != nil {
		t.Fatal(err)
	}
	s := made.Services
	if len(s) != 2 || s[0].Name != "web" || s[0].Address.String() != "10.0.2.100" || s[0].Port != 80 || strings.Join(s[0].Servers, " ") != "h2 h3" || strings.Join(s[0].Drained, " ") != "h3" || s[1].Port != 0 {
		t.Errorf("%+v", s)
	}
	again, err := Load("again.yaml", made.YAML())
	if err != nil || !reflect.DeepEqual(again.Services, s) {
		t.Errorf("%v\n%s", err, made.YAML())
	}
	if u := made.Renumber(func(port int) int { return port + 4 }); len(u.Services) != 2 {
		t.Error(u.Services)
	}
}

// TestServicesRefused: mistakes in services, such as a service without servers, are
// reported in one line.
func TestServicesRefused(t *testing.T) {
	const web = "{address: 10.0.2.100, port: 80, servers: [h2, h3], drained: [h3]}"
	for to, want := range map[string]string{
		"{address: 10.0.2.100, port: 80}":                             "s.yaml:5: service web: servers is missing: want the hosts that serve 10.0.2.100, as in servers: [h3, h4]",
		"{address: 10.0.2.100, port: 80, servers: []}":                "s.yaml:5: service web: servers is missing: want the hosts that serve 10.0.2.100, as in servers: [h3, h4]",
		"{port: 80, servers: [h2]}":                                   "s.yaml:5: service web: address is missing: want one that no host has",
		"{address: 10.0.2.1, servers: [h2]}":                          "s.yaml:5: service web: address 10.0.2.1 is the address of host h2: want one that no host has",
		"{address: 10.0.2.100, servers: [h9]}":                        "s.yaml:5: service web: server h9: there is no such host",
		"{address: 10.0.2.100, servers: [l1]}":                        "s.yaml:5: service web: server l1: there is no such host",
		"{address: 10.0.2.100, servers: [h2, h2]}":                    "s.yaml:5: service web: server h2 stands there twice",
		"{address: 10.0.2.100, servers: [h6]}":                        "s.yaml:5: service web: server h6 has the address 2001:db8::6: want the version of 10.0.2.100",
		"{address: 10.0.2, servers: [h2]}":                            `s.yaml:5: service web: address "10.0.2": want an IP address, as in 10.0.2.100`,
		"{address: 10.0.2.100, port: 70000, servers: [h2]}":           `s.yaml:5: service web: port "70000": want a number from 1 to 65535`,
		"{address: 10.0.2.100, servers: [h2], drained: [h3]}":         "s.yaml:5: service web: drained: h3 is not a server: want some of h2",
		"{address: 10.0.2.100, servers: [h2, h3], drained: [h3, h3]}": "s.yaml:5: service web: drained: h3 stands there twice",
		"{address: 10.0.2.100, servers: [h2, h3], drained: [h3, h2]}": "s.yaml:5: service web: drained: the pool is empty: want at least one of the servers h2, h3 in it",
		"{address: 10.0.2.100, server: [h2]}":                         `s.yaml:5: service web: there is no key "server"; did you mean servers?`,
		web + "\n  too: {address: 10.0.2.100, servers: [h2]}":         "s.yaml:6: service too: address 10.0.2.100 is the address of service web: want another address, or different ports",
		web + "\n  9x: {address: 10.0.2.101, servers: [h2]}":          `s.yaml:6: service "9x": want a name of up to 63 letters, digits, '.', '_' and '-' that starts with a letter`,
		web + "\n  v: {address: 10.0.2.100, servers: {h2: h3}}":       "s.yaml:6: service v: servers: want a list, not ",
	} {
		_, err := Load("s.yaml", []byte(strings.Replace(served, web, to, 1)))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant %s", to, err, want)
		}
	}
}

// TestDrain: servers leave the pools of some services, and the topology itself keeps its pools.
func TestDrain(t *testing.T) {
	made, err := Load("s.yaml", []byte(strings.Replace(served, ", drained: [h3]", "", 1)))
	if err != nil {
		t.Fatal(err)
	}
	u := made.Drain(Member{"web", "h3"}, Member{"all", "h6"}, Member{"web", "h3"})
	if got := [][]string{made.Services[0].Drained, u.Services[0].Drained, u.Services[1].Drained}; !reflect.DeepEqual(got, [][]string{nil, {"h3"}, {"h6"}}) {
		t.Errorf("drained before and after: %q", got)
	}
}
