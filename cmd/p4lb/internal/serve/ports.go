package serve

import (
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"

	"github.com/p4lb/p4lb/internal/device/ports"
	"github.com/p4lb/p4lb/internal/server/p4rt"
	"github.com/p4lb/p4lb/internal/server/thrift"
)

// switchPorts lets Thrift clients list, connect and remove the ports of a device.
type switchPorts struct {
	*p4rt.Device
	log   *slog.Logger
	given []string // ports from the command line

	mu    sync.Mutex
	names map[uint32]string // names of interfaces connected by clients
}

// Ports lists the ports by number.
func (s *switchPorts) Ports() (list []thrift.PortInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[uint32]string{}
	for _, text := range s.given {
		number, where, _ := parsePort(text) // checked before
		names[number] = where
	}
	maps.Copy(names, s.names)
	for _, number := range s.PortNumbers() {
		list = append(list, thrift.PortInfo{Number: number, Name: names[number], Up: s.PortUp(number)})
	}
	return list
}

// Connect adds a network interface as a port.
func (s *switchPorts) Connect(number uint32, iface string) error {
	if strings.Contains(iface, ":") {
		return errors.New("not a network interface: want a name such as veth1")
	}
	p, err := ports.Open(iface)
	if err != nil {
		return err
	}
	failed := func(err error) { s.log.Error("port", "number", number, "error", err) }
	if err := s.AddPort(number, p, failed); err != nil {
		p.Close()
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[number] = iface
	return nil
}

// Disconnect removes a port.
func (s *switchPorts) Disconnect(number uint32) error { return s.RemovePort(number) }
