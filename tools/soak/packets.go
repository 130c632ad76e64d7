package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"time"
)

// A packetTarget is an attacked switch that forwards packets between two ports.
// The measured value is the time for a thousand packets.
type packetTarget struct {
	*p4rtTarget
	in, out *net.UDPConn
	sent    int // in thousands
}

// work starts to measure the CPU time of the switch per thousand packets. The
// clients' own time does not count.
func (c *packetTarget) work(pid int) (end func() time.Duration) {
	began, sent := worked(pid, time.Now()), c.sent
	return func() time.Duration {
		return (worked(pid, time.Now()) - began) / time.Duration(max(1, c.sent-sent))
	}
}

// elsewhere is the name of the test in which another process uses a processor.
const elsewhere = "work of another process"

// convoySieges returns the attacks that are repeated while packets arrive,
// without the one about digests, which needs its own packets. A process that
// only uses a processor serves as a baseline.
func convoySieges() []siege {
	list := []siege{{name: elsewhere, run: func(w *p4rtTarget) error {
		for w.Err() == nil {
		}
		return nil
	}}}
	for _, s := range slices.Concat(sieges(), floodSieges()) {
		if s.run != nil && s.name != digestSiege {
			list = append(list, s)
		}
	}
	for i := range list {
		list[i].convoy = true
	}
	return list
}

// build adds two ports to the switch.
func (c *packetTarget) build(binary, dir string) (*exec.Cmd, error) {
	cmd, err := c.p4rtTarget.build(binary, dir)
	if err != nil {
		return nil, err
	}
	here := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}
	for i, own := range []**net.UDPConn{&c.in, &c.out} {
		address, err := freePort()
		if err != nil {
			return nil, err
		}
		at := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(address))
		if *own, err = net.DialUDP("udp", here, at); err != nil {
			return nil, err
		}
		cmd.Args = append(cmd.Args, "-i", fmt.Sprintf("%d@udp:%v,%v", i+1, at, (*own).LocalAddr()))
	}
	return cmd, nil
}

// change sends a thousand packets, at most half a queue at a time, and waits
// for them.
func (c *packetTarget) change(ctx context.Context) error {
	const atATime = 32
	packet, came := binary.BigEndian.AppendUint32(nil, 1<<24), make([]byte, 64)
	packet = append(packet, 0, 0, 0, 0) // matches the first route
	for left := 1000; left > 0; {
		n := min(left, atATime)
		for range n {
			if _, err := c.in.Write(packet); err != nil {
				return err
			}
		}
		c.out.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		for ; n > 0; n-- {
			if _, err := c.out.Read(came); err != nil {
				break // lost: send others
			}
			left--
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%d packets did not arrive: %w", left, err)
		}
	}
	return nil
}

// Close closes the ports.
func (c *packetTarget) Close() error {
	c.in.Close()
	return c.out.Close()
}
