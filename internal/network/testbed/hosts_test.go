//go:build linux

package testbed_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/testbed"
)

// A host is a host of the testbed. The kernel answers pings, and a server returns
// hashes of received data.
type host struct {
	fabric.Host
	target *testbed.Target
	icmp   net.PacketConn
	server net.Listener
	seq    uint16
}

const serverPort = 7000

func openHosts(t *testing.T, target *testbed.Target, topology *fabric.Topology) []*host {
	t.Helper()
	var list []*host
	for _, h := range topology.Hosts {
		x := &host{Host: h, target: target}
		err := target.In(h.Name, func() (err error) {
			if x.icmp, err = net.ListenPacket("ip4:icmp", h.IP.Addr().String()); err != nil {
				return err
			}
			x.server, err = net.Listen("tcp4", fmt.Sprintf("%v:%d", h.IP.Addr(), serverPort))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			x.icmp.Close()
			x.server.Close()
		})
		go x.serve()
		list = append(list, x)
	}
	return list
}

func (h *host) serve() {
	for {
		c, err := h.server.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			sum := sha256.New()
			io.Copy(sum, c)
			c.Write(sum.Sum(nil))
		}()
	}
}

// tries is the number of attempts of a ping; wait is the time limit of each.
const (
	tries = 4
	wait  = 500 * time.Millisecond
)

// ping reports whether the other host answers.
func (h *host) ping(to *host) bool {
	for range tries {
		h.seq++
		request := echoRequest(h.seq)
		if _, err := h.icmp.WriteTo(request, &net.IPAddr{IP: to.IP.Addr().AsSlice()}); err != nil {
			return false
		}
		if h.answered(to, request) {
			return true
		}
	}
	return false
}

// answered waits for the answer to a request, which differs from the request only in its
// type and checksum.
func (h *host) answered(to *host, request []byte) bool {
	h.icmp.SetReadDeadline(time.Now().Add(wait))
	buf := make([]byte, 2048)
	for {
		n, from, err := h.icmp.ReadFrom(buf)
		if err != nil {
			return false
		}
		if buf[0] == 0 && from.String() == to.IP.Addr().String() && bytes.Equal(buf[4:n], request[4:]) {
			return true
		}
	}
}

// echoRequest is an ICMP message of type 8, of half the largest packet's size.
func echoRequest(seq uint16) []byte {
	m := make([]byte, 700)
	m[0] = 8
	binary.BigEndian.PutUint16(m[4:], 4711)
	binary.BigEndian.PutUint16(m[6:], seq)
	for i := 8; i < len(m); i++ {
		m[i] = byte(i)
	}
	sum := uint32(0)
	for i := 0; i < len(m); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(m[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(m[2:], ^uint16(sum))
	return m
}

// transfer sends size bytes by TCP and reports whether they arrived unchanged.
func (h *host) transfer(ctx context.Context, to *host, size int) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var conn net.Conn
	err := h.target.In(h.Name, func() (err error) {
		var d net.Dialer
		conn, err = d.DialContext(ctx, "tcp4", fmt.Sprintf("%v:%d", to.IP.Addr(), serverPort))
		return err
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline)
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i * i >> 8)
	}
	if _, err := conn.Write(data); err != nil {
		return err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	got, err := io.ReadAll(conn)
	if want := sha256.Sum256(data); err == nil && !bytes.Equal(got, want[:]) {
		err = fmt.Errorf("%d bytes have not arrived as they were", size)
	}
	return err
}
