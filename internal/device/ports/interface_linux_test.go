package ports

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// vethPair creates a pair of connected interfaces. It needs root.
func vethPair(t testing.TB) (a, b string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("creating network interfaces needs root")
	}
	a, b = fmt.Sprintf("p4lb%da", os.Getpid()%100000), fmt.Sprintf("p4lb%db", os.Getpid()%100000)
	link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: a}, PeerName: b}
	if err := netlink.LinkAdd(link); err != nil {
		t.Skipf("cannot create veth pairs: %v", err)
	}
	t.Cleanup(func() { netlink.LinkDel(link) })
	for _, name := range []string{a, b} {
		l, err := netlink.LinkByName(name)
		if err == nil {
			// Without addresses the kernel sends nothing of its own.
			os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0)
			err = netlink.LinkSetUp(l)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

func open(t testing.TB, name string) Port {
	t.Helper()
	p, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// eachWay runs a test with each exchange.
func eachWay(t *testing.T, test func(t *testing.T, nameA, nameB, way string)) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			a, b := vethPair(t)
			p, err := Open(w.name + ":" + a)
			if err != nil {
				t.Skipf("exchange not supported on this machine: %v", err)
			}
			p.Close()
			test(t, a, b, w.name+":")
		})
	}
}

func ethernet(payload string) string {
	return "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x88\xb5" + payload
}

func TestInterface(t *testing.T) {
	eachWay(t, func(t *testing.T, nameA, nameB, way string) {
		a, b := open(t, way+nameA), open(t, way+nameB)
		fromA, endB := collect(b)
		fromB, endA := collect(a)
		// More than one burst, with sizes from the minimum to the MTU.
		var sent []string
		for i := range 3 * maxBurst {
			sent = append(sent, ethernet(string(bytes.Repeat([]byte{byte(i)}, 1+i*7))))
			a.Send([]byte(sent[i]))
		}
		if err := a.Flush(); err != nil {
			t.Error(err)
		}
		for _, text := range sent {
			want(t, fromA, text)
		}
		b.Send([]byte(ethernet("back")))
		if err := b.Flush(); err != nil {
			t.Error(err)
		}
		// A port does not receive the packets it sends.
		want(t, fromB, ethernet("back"))
		for _, p := range []Port{a, b} {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
		wantEnd(t, endA)
		wantEnd(t, endB)
		a.Send([]byte("late"))
		if err := a.Flush(); err != nil {
			t.Errorf("sending on a closed port: %v", err)
		}
	})
}

// TestInterfaceVLAN: the kernel removes the VLAN tag, and the port inserts it
// again.
func TestInterfaceVLAN(t *testing.T) {
	eachWay(t, func(t *testing.T, nameA, nameB, way string) {
		a, b := open(t, way+nameA), open(t, way+nameB)
		defer a.Close()
		defer b.Close()
		packets, _ := collect(b)
		for i := range byte(3) {
			tagged := "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x81\x00\x20" + string(rune('0'+i)) + "\x88\xb5payload"
			a.Send([]byte(tagged))
			a.Flush()
			want(t, packets, tagged)
		}
	})
}

// TestInterfaceDown: packets to an interface that is down are lost, and the
// interface can come up again.
func TestInterfaceDown(t *testing.T) {
	eachWay(t, func(t *testing.T, nameA, nameB, way string) {
		a, b := open(t, way+nameA), open(t, way+nameB)
		defer a.Close()
		defer b.Close()
		packets, end := collect(b)
		set := func(up bool) {
			t.Helper()
			l, err := netlink.LinkByName(nameA)
			if err == nil && up {
				err = netlink.LinkSetUp(l)
			} else if err == nil {
				err = netlink.LinkSetDown(l)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		set(false)
		a.Send([]byte(ethernet("lost")))
		if err := a.Flush(); err != nil {
			t.Error(err)
		}
		set(true)
		// The kernel sends again only after a while.
		again := time.NewTicker(20 * time.Millisecond)
		defer again.Stop()
		for deadline := time.After(patience); ; {
			a.Send([]byte(ethernet("there")))
			if err := a.Flush(); err != nil {
				t.Error(err)
			}
			select {
			case b := <-packets:
				if string(b) != ethernet("there") {
					t.Errorf("got %q", b)
				}
				return
			case err := <-end:
				t.Fatalf("receiving has ended: %v", err)
			case <-deadline:
				t.Fatal("no packet comes")
			case <-again.C:
			}
		}
	})
}

// TestLinkState: a port reports when the other end of its cable goes down and up.
func TestLinkState(t *testing.T) {
	eachWay(t, func(t *testing.T, nameA, nameB, way string) {
		a := open(t, way+nameA)
		defer a.Close()
		states := make(chan bool, 100)
		a.(*interfacePort).OnLink(func(up bool) { states <- up })
		collect(a)
		for _, up := range []bool{false, true} {
			l, err := netlink.LinkByName(nameB)
			if err == nil && up {
				err = netlink.LinkSetUp(l)
			} else if err == nil {
				err = netlink.LinkSetDown(l)
			}
			if err != nil {
				t.Fatal(err)
			}
			for deadline := time.After(patience); ; {
				select {
				case got := <-states:
					if got == up {
						break
					}
					continue // it was not up yet when it was opened
				case <-deadline:
					t.Fatalf("the link is not reported as up: %v", up)
				}
				break
			}
		}
	})
}

// TestUnattached: a port that never receives releases all its resources.
func TestUnattached(t *testing.T) {
	eachWay(t, func(t *testing.T, nameA, _, way string) {
		p := open(t, way+nameA).(*interfacePort)
		fds := []int{p.fd, p.pollFd()}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		for _, fd := range fds {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
				t.Error("a socket is still open")
			}
		}
		if err := p.Receive(func([][]byte) { t.Error("something comes in") }); err != nil {
			t.Error(err)
		}
	})
}

// TestDeletedInterface: Receive returns an error when the interface is deleted.
func TestDeletedInterface(t *testing.T) {
	eachWay(t, func(t *testing.T, nameA, _, way string) {
		a := open(t, way+nameA)
		defer a.Close()
		_, end := collect(a)
		l, err := netlink.LinkByName(nameA)
		if err == nil {
			err = netlink.LinkDel(l)
		}
		if err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-end:
			if err == nil || !strings.Contains(err.Error(), "the interface has been deleted") {
				t.Errorf("receiving ends with %v", err)
			}
		case <-time.After(patience):
			t.Fatal("Receive did not return")
		}
	})
}

// TestManyPackets sends more packets than there are frames, in both directions.
func TestManyPackets(t *testing.T) {
	eachWay(t, func(t *testing.T, nameA, nameB, way string) {
		a, b := open(t, way+nameA), open(t, way+nameB)
		defer a.Close()
		defer b.Close()
		came := make(chan int, 1)
		next := uint32(0)
		go b.Receive(func(packets [][]byte) {
			for _, p := range packets {
				if got := binary.BigEndian.Uint32(p[14:]); got != next || len(p) != 64 {
					t.Errorf("packet %d of %d bytes comes, want %d", got, len(p), next)
				}
				next++
			}
			came <- len(packets)
		})
		packet := make([]byte, 64)
		copy(packet, ethernet(""))
		const burst = 48
		for i := range uint32(4 * rxFrames / burst) {
			for j := range uint32(burst) {
				binary.BigEndian.PutUint32(packet[14:], i*burst+j)
				a.Send(packet)
			}
			if err := a.Flush(); err != nil {
				t.Fatal(err)
			}
			for left := burst; left > 0; {
				select {
				case n := <-came:
					left -= n
				case <-time.After(patience):
					t.Fatalf("of burst %d %d packets do not come", i, left)
				}
			}
		}
	})
}

// TestStackSeesNothing: packets received through XDP do not reach the host's
// network stack; after the port is closed they do.
func TestStackSeesNothing(t *testing.T) {
	nameA, nameB := vethPair(t)
	port, err := Open("xdp:" + nameB)
	if err != nil {
		t.Skipf("XDP is not supported on this machine: %v", err)
	}
	a, beside := open(t, "packet:"+nameA), open(t, "packet:"+nameB)
	defer a.Close()
	defer beside.Close()
	atPort, _ := collect(port)
	atStack, _ := collect(beside)
	send := func(text string) {
		a.Send([]byte(ethernet(text)))
		if err := a.Flush(); err != nil {
			t.Error(err)
		}
	}
	send("first")
	want(t, atPort, ethernet("first"))
	port.Close()
	for deadline := time.Now().Add(patience); ; {
		send("second")
		select {
		case got := <-atStack:
			if string(got) != ethernet("second") {
				t.Errorf("got %q", got)
			}
			return
		case <-time.After(time.Millisecond):
			if time.Now().After(deadline) {
				t.Fatal("nothing comes any more")
			}
		}
	}
}

// TestXDPRejected: an unsupported interface is an error for xdp:, and uses the
// packet ring without a prefix.
func TestXDPRejected(t *testing.T) {
	name, _ := vethPair(t)
	l, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkSetMTU(l, 9000)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open("xdp:" + name); err == nil || !strings.Contains(err.Error(), "the MTU is 9000") {
		t.Errorf("got %v", err)
	}
	p := open(t, name).(*interfacePort)
	defer p.Close()
	if _, ok := p.exchange.(*packetRing); !ok {
		t.Errorf("got %T", p.exchange)
	}
}

func TestNetworkOrder(t *testing.T) {
	b := binary.NativeEndian.AppendUint16(nil, networkOrder(0x0003))
	if !bytes.Equal(b, []byte{0, 3}) {
		t.Errorf("got %x", b)
	}
}
