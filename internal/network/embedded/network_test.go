package embedded_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// A network moves packets between the data planes of a target, hop by hop, in
// virtual time.
type network struct {
	topology *fabric.Topology
	engines  map[string]*dataplane.Engine
	now      time.Duration
}

// newNetwork returns a network with the programs that the switches run now.
func newNetwork(t testing.TB, topology *fabric.Topology, target *embedded.Target) *network {
	t.Helper()
	n := &network{topology: topology, engines: map[string]*dataplane.Engine{}}
	for _, s := range topology.Switches {
		sw := target.Switch(s.Name)
		if sw == nil {
			t.Fatalf("%s has no program", s.Name)
		}
		n.engines[s.Name] = dataplane.NewEngine(sw)
	}
	return n
}

// An arrival is a packet that a host received.
type arrival struct {
	host  string
	frame []byte
	via   []string // switches
}

// hop is a packet on its way into a switch.
type hop struct {
	at    string
	port  int
	frame []byte
	via   []string
}

// send sends a frame of a host and follows all resulting packets.
func (n *network) send(from string, frame []byte) ([]arrival, error) {
	h := n.topology.Host(from)
	return n.follow(hop{at: h.Switch, port: h.Port, frame: frame})
}

func (n *network) follow(first hop) (list []arrival, err error) {
	under := []hop{first}
	for steps := 0; len(under) > 0; steps++ {
		if steps > 1000 {
			return nil, fmt.Errorf("a packet from %s goes round in circles", first.at)
		}
		p := under[0]
		under = under[1:]
		n.now += 10 * time.Microsecond
		via := append(append([]string(nil), p.via...), p.at)
		for _, o := range n.engines[p.at].Process(uint32(p.port), p.frame, n.now) {
			port, ok := n.port(p.at, int(o.Port))
			switch {
			case !ok: // a virtual port, or the controller's
			case port.Down:
				return nil, fmt.Errorf("%s sends to port %d, which is down", p.at, o.Port)
			case port.PeerTier == 0:
				list = append(list, arrival{port.Peer, bytes.Clone(o.Data), via})
			default:
				under = append(under, hop{port.Peer, port.PeerPort, bytes.Clone(o.Data), via})
			}
		}
	}
	return list, nil
}

func (n *network) port(name string, number int) (fabric.Port, bool) {
	for _, p := range n.topology.Ports(name) {
		if p.Number == number {
			return p, true
		}
	}
	return fabric.Port{}, false
}

// pairs returns all pairs of hosts, or a random sample of the given size if there are
// more.
func (n *network) pairs(most int) [][2]*fabric.Host {
	hosts := n.topology.Hosts
	var list [][2]*fabric.Host
	for i := range hosts {
		for k := range hosts {
			if i != k {
				list = append(list, [2]*fabric.Host{&hosts[i], &hosts[k]})
			}
		}
	}
	if len(list) > most {
		rng := rand.New(rand.NewPCG(1, 1))
		rng.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
		list = list[:most]
	}
	return list
}

// ping sends packets between all pairs of hosts and checks the received ones: payload
// and addresses at the right host, and the TTL reduced by one per switch.
func (n *network) ping(t testing.TB, most int) {
	t.Helper()
	failed := 0
	for i, pair := range n.pairs(most) {
		for flow := range 2 {
			if err := n.pingOne(pair[0], pair[1], uint16(1000+31*i+flow)); err != nil {
				t.Errorf("%s to %s: %v", pair[0].Name, pair[1].Name, err)
				if failed++; failed > 5 {
					t.FailNow()
				}
			}
		}
	}
}

func (n *network) pingOne(from, to *fabric.Host, port uint16) error {
	frame := tcpFrame(from, to, port)
	list, err := n.send(from.Name, frame)
	if err != nil {
		return err
	}
	if len(list) != 1 {
		return fmt.Errorf("%d packets arrive", len(list))
	}
	a := list[0]
	want := bytes.Clone(frame)
	copy(want[0:6], to.MAC[:])
	copy(want[6:12], a.frame[6:12]) // of the last switch
	if to.IP.Addr().Is6() {
		want[21] -= byte(len(a.via))
	} else {
		want[22] -= byte(len(a.via))
		setChecksum(want[14:34])
	}
	switch {
	case a.host != to.Name:
		return fmt.Errorf("the packet arrives at %s", a.host)
	case !bytes.Equal(a.frame, want):
		return fmt.Errorf("through %v arrives\n%x, want\n%x", a.via, a.frame, want)
	}
	return nil
}

// tcpFrame is a TCP segment without data, with only the flag ACK.
func tcpFrame(from, to *fabric.Host, port uint16) []byte {
	f := make([]byte, 14+20+20, 80)
	copy(f[6:12], from.MAC[:])
	copy(f[0:6], []byte{2, 0, 0, 0, 0, 1}) // the gateway
	if from.IP.Addr().Is6() {
		return tcpIPv6(f[:14], from, to, port)
	}
	binary.BigEndian.PutUint16(f[12:], 0x0800)
	ip := f[14:34]
	ip[0], ip[8], ip[9] = 0x45, 64, 6
	binary.BigEndian.PutUint16(ip[2:], 40+26)
	put := func(at []byte, a netip.Addr) { b := a.As4(); copy(at, b[:]) }
	put(ip[12:], from.IP.Addr())
	put(ip[16:], to.IP.Addr())
	setChecksum(ip)
	binary.BigEndian.PutUint16(f[34:], port)
	binary.BigEndian.PutUint16(f[36:], 80)
	f[46], f[47] = 0x50, 0x10
	return append(f, "what hosts say to each other"[:26]...)
}

// tcpIPv6 is the same segment in IPv6 behind an Ethernet header.
func tcpIPv6(f []byte, from, to *fabric.Host, port uint16) []byte {
	binary.BigEndian.PutUint16(f[12:], 0x86dd)
	f = append(f, 0x60, 0, 0, 1, 0, 20+26, 6, 64)
	f = append(append(f, from.IP.Addr().AsSlice()...), to.IP.Addr().AsSlice()...)
	f = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(f, port), 80)
	f = append(f, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0)
	return append(f, "what hosts say to each other"[:26]...)
}

func setChecksum(ip []byte) {
	ip[10], ip[11] = 0, 0
	var sum uint32
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum))
}
