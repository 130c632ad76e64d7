package lab

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
)

// servicesOf returns the services of the topology if there are flows to them.
func servicesOf(topo *fabric.Topology, flows []*outcome, engine string) (list []*sim.Service, err error) {
	i := slices.IndexFunc(flows, func(o *outcome) bool { return o.Service > 0 })
	if i < 0 {
		return nil, nil
	}
	if engine == spec.EngineNative {
		return nil, fmt.Errorf("service %s: models forward to hosts alone: want engine p4, not %s", flows[i].To(topo), spec.EngineNative)
	}
	for _, s := range topo.Services {
		ip := s.Address.As16()
		list = append(list, &sim.Service{Name: s.Name, IP: binary.BigEndian.Uint32(ip[12:]), Port: uint16(s.Port), Servers: s.Servers, Direct: s.Direct})
	}
	return list, nil
}

// unserved returns the alert about a service that received no packet.
func unserved(s *fabric.Service) string {
	return fmt.Sprintf("service %s: no packet to %v has reached one of its servers %s: the tables of the program need its address and servers", s.Name, s.Address, strings.Join(s.Servers, ", "))
}

// unasked returns the alert about a service that no flow uses.
func unasked(s *fabric.Service) string {
	return fmt.Sprintf("service %s: no flow goes to it: want traffic with to: [%s], or a topology without the service", s.Name, s.Name)
}

// serversOf records the servers of the flows. It returns alerts about services without
// flows or packets, and about connections that changed their server.
func serversOf(topo *fabric.Topology, flows []*outcome, sims []*sim.Flow) (alerts []string) {
	type count struct{ flows, served, strays, unchanged int }
	counts := make([]count, len(topo.Services))
	for i, o := range flows {
		if o.Service == 0 {
			continue
		}
		c := &counts[o.Service-1]
		c.flows++
		f := sims[i]
		if f == nil {
			continue
		}
		if server := f.Server(); server != "" {
			c.served++
			o.Dst = slices.IndexFunc(topo.Hosts, func(h fabric.Host) bool { return h.Name == server })
		}
		if f.Strays > 0 {
			c.strays++
		}
		if f.Unchanged > 0 {
			c.unchanged++
		}
	}
	for i, c := range counts {
		s := &topo.Services[i]
		switch {
		case c.flows == 0:
			alerts = append(alerts, unasked(s))
		case c.served == 0 && c.unchanged > 0:
			alerts = append(alerts, fmt.Sprintf("service %s: packets reach its servers with the address %v, which they do not have: want a program that changes it, or return: direct in the topology", s.Name, s.Address))
		case c.served == 0:
			alerts = append(alerts, unserved(s))
		case c.strays > 0:
			alerts = append(alerts, fmt.Sprintf("service %s: %d of %d flows had packets at another server, or answers that do not come from %v", s.Name, c.strays, c.flows, s.Address))
		}
	}
	return alerts
}
