package hosts_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/p4lb/p4lb/internal/device/ports"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/hosts"
	"github.com/p4lb/p4lb/internal/network/netspace"
)

// helper makes this test the command that runs on a host.
const helper = "HOSTS_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv("P4LB_FIRST_OF_NETWORK") != "" {
		os.Exit(1) // it is not to come here; all that is on the hosts ends with it
	}
	switch os.Getenv(helper) {
	case "":
		os.Exit(m.Run())
	case "addresses":
		list, err := net.InterfaceAddrs()
		fmt.Println(list, err)
	case "neighbour": // of an address that the host does not know yet
		fmt.Println(neighbour("10.0.1.200"), neighbour("10.0.1.201"))
	case "daemon": // one that has left its session, and holds the pipe open
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.Stdout = []string{helper + "=sleep"}, os.Stdout
		if err := cmd.Start(); err != nil {
			fmt.Println(err)
		}
	case "sleep":
		time.Sleep(time.Minute)
	}
}

// neighbour forgets an address and sends to it. It returns the MAC that the kernel
// then finds.
func neighbour(address string) string {
	ip := net.ParseIP(address)
	find := func() *netlink.Neigh {
		list, _ := netlink.NeighList(0, netlink.FAMILY_V4)
		for _, n := range list {
			if n.IP.Equal(ip) && n.HardwareAddr != nil {
				return &n
			}
		}
		return nil
	}
	if n := find(); n != nil {
		if err := netlink.NeighDel(n); err != nil {
			return err.Error()
		}
	}
	for began := time.Now(); time.Since(began) < 3*time.Second; time.Sleep(time.Millisecond) {
		if c, err := net.Dial("udp", address+":9"); err == nil {
			c.Write([]byte{0})
			c.Close()
		}
		if n := find(); n != nil {
			return n.HardwareAddr.String()
		}
	}
	return "nobody"
}

const patience = 3 * time.Minute

func open(t *testing.T, o hosts.Options) (*hosts.Network, *fabric.Topology) {
	t.Helper()
	if !hosts.Capable() {
		t.Skip("network namespaces want root, or a user namespace around the test")
	}
	topology, err := fabric.Load("net.yaml", []byte(`name: small
switches:
  l1: {role: leaf, id: 1}
hosts:
  h1: {ip: 10.0.1.1/24}
  h2: {ip: 10.0.1.2/24}
  h3: {ip: 10.0.2.1/24}
links:
- {ends: [h1, l1:1], rate: 100Mbps}
- {ends: [h2, l1:2], rate: 100Mbps}
- {ends: [h3, l1:3], rate: 100Mbps}
`))
	if err != nil {
		t.Fatal(err)
	}
	n, err := hosts.Open(topology, o)
	if errors.Is(err, hosts.ErrNotHere) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n, topology
}

func command(what string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{helper + "=" + what}
	return cmd
}

// TestHost: a command on a host only has the host's address, and its packets arrive at
// the switch's end of the link with both MAC addresses.
func TestHost(t *testing.T) {
	n, topology := open(t, hosts.Options{Rates: true})
	var out bytes.Buffer
	cmd := command("addresses")
	cmd.Stdout = &out
	ended := make(chan error, 1)
	if err := n.Run("h1", cmd, func(err error) { ended <- err }); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || !strings.Contains(out.String(), "10.0.1.1/24") || strings.Contains(out.String(), "10.0.1.2") {
		t.Errorf("addresses of h1: %s (%v)", out.String(), err)
	}
	got := received(t, n)
	if data := ping(t, n, "10.0.1.2", got); data != nil {
		h := topology.Host("h1")
		if !bytes.Equal(data[6:12], h.MAC[:]) || data[12] != 8 || data[23] != 1 {
			t.Errorf("h1 sends %x", data)
		}
	}
}

// received returns the packets from h1 that arrive at the switch.
func received(t *testing.T, n *hosts.Network) chan []byte {
	t.Helper()
	p, err := n.Port("h1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	got := make(chan []byte, 16)
	go p.Receive(func(list [][]byte) {
		for _, data := range list {
			got <- bytes.Clone(data)
		}
	})
	return got
}

// ping pings an address from h1 and returns the packet that arrives at the switch.
func ping(t *testing.T, n *hosts.Network, address string, got chan []byte) []byte {
	t.Helper()
	cmd := exec.Command("ping", "-c", "1", "-W", "1", address)
	if err := n.Run("h1", cmd, func(error) {}); err != nil {
		t.Skip("there is no program called ping:", err)
	}
	select {
	case data := <-got:
		return data
	case <-time.After(patience):
		t.Error("nothing arrives at the switch")
		return nil
	}
}

// TestByMAC: where switches forward by the MACs of hosts, hosts send to these, also
// beyond their subnet.
func TestByMAC(t *testing.T) {
	n, topology := open(t, hosts.Options{ByMAC: true})
	got := received(t, n)
	for _, name := range []string{"h2", "h3"} {
		to := topology.Host(name)
		if data := ping(t, n, to.IP.Addr().String(), got); !bytes.HasPrefix(data, to.MAC[:]) {
			t.Errorf("to %s of %v h1 sends %x", name, to.MAC, data)
		}
	}
}

// TestCloseEndsDaemons: processes on a host end with the network, including daemons.
func TestCloseEndsDaemons(t *testing.T) {
	n, _ := open(t, hosts.Options{Rates: true})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := command("daemon")
	cmd.Stdout = w
	ended := make(chan error, 1)
	if err := n.Run("h2", cmd, func(err error) { ended <- err }); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	r.SetReadDeadline(time.Now().Add(patience))
	if _, err := r.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a daemon on a host has outlived the network")
	}
	if err := n.Run("h2", command("addresses"), func(error) {}); err == nil {
		t.Error("a command runs on a host that is gone")
	}
}

var _ ports.Port // what Port returns

// TestFirstEndsAlone: the first process of a network ends with the process that
// has it, also where the kernel has not been asked to see to that yet.
func TestFirstEndsAlone(t *testing.T) {
	life, alive, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env, cmd.ExtraFiles = []string{"P4LB_FIRST_OF_NETWORK=1"}, []*os.File{life}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	life.Close()
	alive.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("it has not ended by itself: %v", err)
	}
}

// TestVirtualAddress checks that a host which has forgotten a virtual address learns
// its MAC by ARP, and that others stay unknown.
func TestVirtualAddress(t *testing.T) {
	n, _ := open(t, hosts.Options{Virtual: map[netip.Addr]fabric.MAC{netip.MustParseAddr("10.0.1.200"): {2, 0, 0, 0, 1, 0}}})
	cmd := command("neighbour")
	var out bytes.Buffer
	cmd.Stdout = &out
	ended := make(chan error, 1)
	if err := n.Run("h1", cmd, func(err error) { ended <- err }); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got, want := strings.TrimSpace(out.String()), "02:00:00:00:01:00 nobody"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Hosts leave segmentation and checksums to the switch's port, which cuts their packets: a program
// sees only packets of the MTU with correct checksums, and the other host gets the same stream.
func TestOffload(t *testing.T) {
	n, topology := open(t, hosts.Options{Known: netspace.KnowsAll})
	stop := bridge(t, n, "h1", "h2")
	far := topology.Host("h2").IP.Addr().String()
	var listener net.Listener
	var datagrams net.PacketConn
	in := func(host string, f func() error) {
		t.Helper()
		if err := n.In(host, f); err != nil {
			t.Fatal(err)
		}
	}
	in("h2", func() (err error) {
		if listener, err = net.Listen("tcp", far+":0"); err == nil {
			datagrams, err = net.ListenPacket("udp", far+":0")
		}
		return err
	})
	defer listener.Close()
	defer datagrams.Close()
	sent := make([]byte, 4<<20)
	rand.NewChaCha8([32]byte{}).Read(sent)
	var conn, udp net.Conn
	in("h1", func() (err error) {
		if conn, err = net.Dial("tcp", listener.Addr().String()); err == nil {
			udp, err = net.Dial("udp", datagrams.LocalAddr().String())
		}
		return err
	})
	defer conn.Close()
	defer udp.Close()
	go func() {
		conn.Write(sent)
		conn.(*net.TCPConn).CloseWrite()
	}()
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	accepted.SetDeadline(time.Now().Add(patience))
	if got, err := io.ReadAll(accepted); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("received %d bytes, %v; want the %d bytes that were sent", len(got), err, len(sent))
	}
	udp.Write([]byte("datagram"))
	datagrams.SetDeadline(time.Now().Add(patience))
	got := make([]byte, 100)
	if k, _, err := datagrams.ReadFrom(got); err != nil || string(got[:k]) != "datagram" {
		t.Errorf("received the datagram %q, %v", got[:k], err)
	}
	if largest, wrong := stop(); largest != 1514 || wrong > 0 {
		t.Errorf("the largest packet has %d bytes, %d have a wrong checksum; want 1514 and none", largest, wrong)
	}
	in("h1", func() error {
		dev, err := netlink.LinkByName(netspace.HostPort)
		if err == nil && dev.Attrs().GSOMaxSize != 32<<10 {
			err = fmt.Errorf("the host passes packets of up to %d bytes in one piece, want 32768", dev.Attrs().GSOMaxSize)
		}
		return err
	})
}

// bridge connects two hosts. stop returns the length of the largest packet, and how many had a wrong
// checksum.
func bridge(t *testing.T, n *hosts.Network, a, b string) (stop func() (largest, wrong int)) {
	t.Helper()
	var ends []ports.Port
	for _, host := range []string{a, b} {
		p, err := n.Port(host)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, p)
	}
	var mu sync.Mutex
	var largest, wrong int
	var running sync.WaitGroup
	for i, from := range ends {
		to := ends[1-i]
		running.Go(func() {
			from.Receive(func(packets [][]byte) {
				mu.Lock()
				defer mu.Unlock()
				for _, p := range packets {
					largest = max(largest, len(p))
					if !summed(p) {
						wrong++
					}
					to.Send(p)
				}
				to.Flush()
			})
		})
	}
	return func() (int, int) {
		for _, p := range ends {
			p.Close()
		}
		running.Wait()
		return largest, wrong
	}
}

// summed reports whether an IPv4 packet with TCP or UDP has the checksum of RFC 1071. Other packets
// count as correct.
func summed(p []byte) bool {
	if len(p) < 34 || p[12] != 8 || p[13] != 0 || p[23] != 6 && p[23] != 17 {
		return true
	}
	ip := p[14:]
	ip = ip[:int(ip[2])<<8|int(ip[3])]
	body := ip[int(ip[0]&15)*4:]
	sum := int(p[23]) + len(body)
	for i, b := range slices.Concat(ip[12:20], body) {
		sum += int(b) << (8 * (1 - i%2))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return sum == 0xffff
}
