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

// A convoy are packets through a switch under siege, over two of its ports: how long a
// thousand of them take is what is measured.
type convoy struct {
	*walls
	in, out *net.UDPConn
	sent    int // thousands
}

// work begins to count what the switch works for a thousand packets and all that it
// does meanwhile, of which its clients take no part.
func (c *convoy) work(pid int) (end func() time.Duration) {
	began, sent := worked(pid, time.Now()), c.sent
	return func() time.Duration {
		return (worked(pid, time.Now()) - began) / time.Duration(max(1, c.sent-sent))
	}
}

// elsewhere is the name of what is no attack on the switch at all.
const elsewhere = "somebody's work elsewhere"

// convoySieges are those of sieges that are laid while packets come, too; digests are
// made of packets themselves. A process that does nothing but keep a processor busy is
// there to compare with.
func convoySieges() []siege {
	list := []siege{{name: elsewhere, run: func(w *walls) error {
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
func (c *convoy) build(binary, dir string) (*exec.Cmd, error) {
	cmd, err := c.walls.build(binary, dir)
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

// change sends a thousand packets, as many at a time as a queue holds half of, and waits
// until they come.
func (c *convoy) change(ctx context.Context) error {
	const atATime = 32
	packet, came := binary.BigEndian.AppendUint32(nil, 1<<24), make([]byte, 64)
	packet = append(packet, 0, 0, 0, 0) // of the first route
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
				break // lost, and others are sent
			}
			left--
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%d packets do not come: %w", left, err)
		}
	}
	return nil
}

// Close lets the ports go.
func (c *convoy) Close() error {
	c.in.Close()
	return c.out.Close()
}
