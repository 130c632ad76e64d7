package fabric

import (
	"net/netip"
	"slices"
	"strings"
)

// maxServices and maxServers bound the table entries that services need.
const (
	maxServices = 1024
	maxServers  = 1024
)

// serviceData checks the services.
func (f *finisher) serviceData() {
	hosts := map[netip.Addr]string{}
	for _, h := range f.t.Hosts {
		hosts[h.IP.Addr()] = h.Name
	}
	for i, s := range f.services {
		if i == maxServices {
			f.errorf(s.line, "%d services: want at most %d", len(f.services), maxServices)
			return
		}
		f.checkService(s, hosts)
		f.t.Services = append(f.t.Services, s.Service)
	}
}

func (f *finisher) checkService(s draftService, hosts map[netip.Addr]string) {
	what := "service " + s.Name
	if !namePattern().MatchString(s.Name) {
		f.errorf(s.line, "service %q: want a name of up to 63 letters, digits, '.', '_' and '-' that starts with a letter", s.Name)
	}
	if !s.Address.IsValid() {
		f.errorf(s.line, "%s: address is missing: want one that no host has", what)
		return
	}
	if h := hosts[s.Address]; h != "" {
		f.errorf(s.line, "%s: address %v is the address of host %s: want one that no host has", what, s.Address, h)
	}
	for _, o := range f.t.Services {
		if o.Address == s.Address && (o.Port == s.Port || o.Port == 0 || s.Port == 0) {
			f.errorf(s.line, "%s: address %v is the address of service %s: want another address, or different ports", what, s.Address, o.Name)
		}
	}
	switch n := len(s.Servers); {
	case n == 0:
		f.errorf(s.line, "%s: servers is missing: want the hosts that serve %v, as in servers: [h3, h4]", what, s.Address)
	case n > maxServers:
		f.errorf(s.line, "%s: %d servers: want at most %d", what, n, maxServers)
	}
	for i, name := range s.Drained {
		switch {
		case !slices.Contains(s.Servers, name):
			f.errorf(s.line, "%s: drained: %s is not a server: want some of %s", what, name, strings.Join(s.Servers, ", "))
		case slices.Contains(s.Drained[:i], name):
			f.errorf(s.line, "%s: drained: %s stands there twice", what, name)
		case i == len(s.Servers)-1:
			f.errorf(s.line, "%s: drained: the pool is empty: want at least one of the servers %s in it", what, strings.Join(s.Servers, ", "))
		}
	}
	for i, name := range s.Servers {
		at, there := f.nodes[name]
		switch {
		case !there || at < len(f.switches):
			f.errorf(s.line, "%s: server %s: there is no such host", what, name)
		case slices.Contains(s.Servers[:i], name):
			f.errorf(s.line, "%s: server %s stands there twice", what, name)
		case f.t.Hosts[at-len(f.switches)].IP.Addr().Is6() != s.Address.Is6():
			f.errorf(s.line, "%s: server %s has the address %v: want the version of %v", what, name, f.t.Hosts[at-len(f.switches)].IP.Addr(), s.Address)
		}
	}
}
