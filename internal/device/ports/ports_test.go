package ports

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const patience = 3 * time.Minute

// collect receives from a port and returns channels for its packets and its
// result.
func collect(p Port) (packets chan []byte, end chan error) {
	packets, end = make(chan []byte, 1<<12), make(chan error, 1)
	go func() {
		end <- p.Receive(func(burst [][]byte) {
			for _, b := range burst {
				packets <- bytes.Clone(b)
			}
		})
	}()
	return packets, end
}

func want(t *testing.T, packets chan []byte, text string) {
	t.Helper()
	select {
	case b := <-packets:
		if string(b) != text {
			t.Errorf("got packet %q, want %q", b, text)
		}
	case <-time.After(patience):
		t.Fatalf("no packet comes, want %q", text)
	}
}

func wantEnd(t *testing.T, end chan error) {
	t.Helper()
	select {
	case err := <-end:
		if err != nil {
			t.Errorf("receiving ends with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("receiving does not end")
	}
}

func TestBadDescriptions(t *testing.T) {
	for description, msg := range map[string]string{
		"no-such-interface":         "no such network interface",
		"pcap:in":                   "want INTERFACE",
		"udp:127.0.0.1:1":           "want INTERFACE",
		"udp:x,127.0.0.1:1":         "local address",
		"udp:127.0.0.1:0,127.0.0.1": "remote address",
		"tcp:a,b":                   "want INTERFACE",
		"":                          "want INTERFACE",
		"xdp:":                      "want INTERFACE",
		"udp:127.0.0.1:1,":          "want INTERFACE",
		"pcap:/no/such/file,":       "no such file",
		"pcap:,/no/such/folder/f":   "no such file",
	} {
		if p, err := Open(description); err == nil {
			p.Close()
			t.Errorf("%s: no error", description)
		} else if !strings.Contains(err.Error(), msg) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %q, want it to say %q", description, err, msg)
		}
	}
}

func TestUDP(t *testing.T) {
	peer, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	p, err := Open("udp:127.0.0.1:0," + peer.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	packets, end := collect(p)
	p.Send([]byte("out"))
	if err := p.Flush(); err != nil {
		t.Error(err)
	}
	buf := make([]byte, 100)
	peer.SetReadDeadline(time.Now().Add(patience))
	n, from, err := peer.ReadFromUDP(buf)
	if err != nil || string(buf[:n]) != "out" {
		t.Fatalf("got %q, %v", buf[:n], err)
	}
	peer.WriteToUDP([]byte("in"), from)
	want(t, packets, "in")
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	wantEnd(t, end)
}

// TestUDPWithoutPeer: a port keeps running while nothing listens at the remote
// address.
func TestUDPWithoutPeer(t *testing.T) {
	peer, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	addr := peer.LocalAddr().(*net.UDPAddr)
	peer.Close()
	p, err := Open("udp:127.0.0.1:0," + addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	packets, _ := collect(p)
	p.Send([]byte("lost"))
	if peer, err = net.ListenUDP("udp", addr); err != nil {
		t.Skipf("the port has been taken by another process: %v", err)
	}
	defer peer.Close()
	peer.WriteToUDP([]byte("in"), p.(*udpPort).conn.LocalAddr().(*net.UDPAddr))
	want(t, packets, "in")
}

// capture writes a capture with nanoseconds in big-endian byte order.
func capture(t *testing.T, packets ...string) string {
	t.Helper()
	b := binary.BigEndian.AppendUint32(nil, magicNano)
	b = append(b, make([]byte, pcapHeader-8)...)
	b = binary.BigEndian.AppendUint32(b, linkEthernet)
	for i, p := range packets {
		b = binary.BigEndian.AppendUint32(b, 1)
		b = binary.BigEndian.AppendUint32(b, uint32(i)*1000)
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	name := filepath.Join(t.TempDir(), "in.pcap")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestPcap(t *testing.T) {
	in, out := capture(t, "one", "two", ""), filepath.Join(t.TempDir(), "out.pcap")
	p, err := Open("pcap:" + in + "," + out)
	if err != nil {
		t.Fatal(err)
	}
	packets, end := collect(p)
	wantEnd(t, end)
	for _, text := range []string{"one", "two", ""} {
		want(t, packets, text)
	}
	p.Send([]byte("three"))
	p.Send([]byte("four"))
	if err := errors.Join(p.Flush(), p.Close(), p.Close()); err != nil {
		t.Error(err)
	}
	again, err := Open("pcap:" + out + ",")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	packets, end = collect(again)
	want(t, packets, "three")
	want(t, packets, "four")
	wantEnd(t, end)
}

// TestPcapUnused: a port closed before use leaves an existing file unchanged
// and creates none. Using the port truncates the file, even if it sends
// nothing.
func TestPcapUnused(t *testing.T) {
	old, fresh := capture(t, "one"), filepath.Join(t.TempDir(), "fresh.pcap")
	before, err := os.ReadFile(old)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{old, fresh} {
		p, err := Open("pcap:," + file)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if after, err := os.ReadFile(old); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file has %d bytes, had %d: %v", len(after), len(before), err)
	}
	if _, err := os.Stat(fresh); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}
	p, err := Open("pcap:," + old)
	if err != nil {
		t.Fatal(err)
	}
	_, end := collect(p)
	wantEnd(t, end)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if after, err := os.ReadFile(old); err != nil || len(after) != pcapHeader {
		t.Errorf("a capture of nothing has %d bytes, want %d: %v", len(after), pcapHeader, err)
	}
}

func TestBrokenPcap(t *testing.T) {
	good, err := os.ReadFile(capture(t, "one", "two"))
	if err != nil {
		t.Fatal(err)
	}
	huge := bytes.Clone(good)
	binary.BigEndian.PutUint32(huge[pcapHeader+8:], 1<<31)
	late := bytes.Clone(good)
	binary.BigEndian.PutUint32(late[pcapHeader+recordHeader+len("one"):], 1<<32-1)
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"cut packet":      {good[:len(good)-1], "packet 2: the capture is truncated within this packet"},
		"cut record":      {good[:len(good)-10], "packet 2: the capture is truncated within this packet"},
		"huge packet":     {huge, "packet 1: the packet has 2147483648 bytes, want at most 65536"},
		"after a century": {late, "packet 2: its time is 1193046h28m14.000001s after the first packet's, want at most 1000h0m0s"},
	} {
		file := filepath.Join(t.TempDir(), "in.pcap")
		if err := os.WriteFile(file, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := Open("pcap:" + file + ",")
		if err != nil {
			t.Fatal(err)
		}
		_, end := collect(p)
		if err := <-end; err == nil || err.Error() != file+": "+c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
		p.Close()
	}
	for name, data := range map[string]string{"text": "this is not a capture at all", "short": "\xd4\xc3\xb2\xa1"} {
		file := filepath.Join(t.TempDir(), "in.pcap")
		if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open("pcap:" + file + ","); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for link, want := range map[uint32]string{
		101:       "the capture has link type 101 (raw IP): want 1 (Ethernet)",
		1<<32 - 1: "the capture has link type 4294967295 (unknown): want 1 (Ethernet)",
	} {
		data := bytes.Clone(good)
		binary.BigEndian.PutUint32(data[20:], link)
		file := filepath.Join(t.TempDir(), "in.pcap")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open("pcap:" + file + ","); err == nil || err.Error() != file+": "+want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	checked := bytes.Clone(good)
	binary.BigEndian.PutUint32(checked[20:], 0x24000000|linkEthernet) // frames end with a checksum of two 16-bit words
	file := filepath.Join(t.TempDir(), "in.pcap")
	if err := os.WriteFile(file, checked, 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := Open("pcap:" + file + ","); err != nil {
		t.Errorf("Ethernet with checksums: %v", err)
	} else {
		p.Close()
	}
	same := capture(t, "one")
	if _, err := Open("pcap:" + same + "," + same); err == nil || !strings.Contains(err.Error(), "want two files") {
		t.Errorf("a capture that is played and written: %v", err)
	}
	if text, err := os.ReadFile(same); err != nil || len(text) <= pcapHeader {
		t.Errorf("the capture is emptied: %d bytes, %v", len(text), err)
	}
	if _, err := Open("pcap:" + os.DevNull + ","); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a device: %v", err)
	}
}
