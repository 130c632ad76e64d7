package p4rt

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/examples"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/stf"
	"github.com/p4lb/p4lb/internal/p4"
)

// routerDevice runs the router of the examples with the entries of its test on
// ports 1 and 3. It also has a route to port 2, which is not connected.
func routerDevice(t *testing.T) *Device {
	t.Helper()
	p, err := p4.Compile(examples.FS, "router.p4", p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := examples.FS.ReadFile("router.stf")
	if err != nil {
		t.Fatal(err)
	}
	var entries strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "add ") {
			entries.WriteString(line)
		}
	}
	script, err := stf.Parse("router.stf", entries.String())
	if err != nil {
		t.Fatal(err)
	}
	dev, err := NewDevice(DeviceOptions{Load: func(_ []byte, o dataplane.Options) (*dataplane.Switch, error) {
		sw, err := dataplane.New(p.Config, o)
		if err == nil {
			err = script.Run(sw)
		}
		return sw, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	sw, err := dev.Link(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	dev.run(sw, nil, nil)
	for _, number := range []uint32{1, 3} {
		if err := dev.AddPort(number, newTestPort(), nil); err != nil {
			t.Fatal(err)
		}
	}
	return dev
}

// TestPortCounts sends one packet for each possible outcome in the router.
func TestPortCounts(t *testing.T) {
	dev := routerDevice(t)
	send := func(packet string) {
		data, err := hex.DecodeString(strings.ReplaceAll(packet, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		dev.receive(3, [][]byte{data})
	}
	const (
		head    = "02000000FF03 020000000003 0800 "
		payload = " 03E807D0000C0000 70696E67"
		routed  = head + "4500002000014000401122C90A0003030A000101" + payload
	)
	send(routed)
	send(head + "4500002000014000401122490A0003030A000181" + payload) // route to the missing port 2
	send(head + "4500002000014000401121C90A0003030A000201" + payload) // no route
	send(head + "4500002000014000011161C90A0003030A000101" + payload) // TTL 1
	send(head + "4500002000014000401122C80A0003030A000101" + payload) // a wrong checksum
	if err := dev.SetQueueDepth(1, -1, 0); err != nil {
		t.Fatal(err)
	}
	send(routed)

	const frame = 14 + 20 + 12
	want := []bmv2.PortCounts{
		{Port: 1, OutPackets: 1, OutBytes: frame},
		{Port: 2, Room: 64},
		{Port: 3, InPackets: 6, InBytes: 6 * frame, Room: 64},
	}
	want[0].Drops[bmv2.DropQueue] = 1
	want[1].Drops[bmv2.DropNoPort] = 1
	want[2].Drops[bmv2.DropNoEntry], want[2].Drops[bmv2.DropTTL], want[2].Drops[bmv2.DropProgram] = 1, 1, 1
	got := dev.PortCounts()
	if len(got) != len(want) {
		t.Fatalf("counts of %d ports, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("port %d: %+v, want %+v", want[i].Port, got[i], want[i])
		}
	}
}
