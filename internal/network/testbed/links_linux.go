package testbed

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/netspace"
)

// setLinks takes links down and up according to the topology.
//
// A failed link drops packets at both ends, but its interfaces stay up. If an
// interface went down, the switch would stop: its single receive thread would block
// in libpcap until the interface came up again.
func (b *bed) setLinks(t *fabric.Topology) error {
	for i, l := range t.Links {
		if b.links != nil && b.links.Links[i].Down == l.Down {
			continue
		}
		if err := b.setLink(t, l, target.Random{}); err != nil {
			return err
		}
	}
	b.links = t
	return nil
}

func (b *bed) setLink(t *fabric.Topology, l fabric.Link, r target.Random) error {
	for _, e := range []fabric.End{l.A, l.B} {
		if err := b.setEnd(t, l, e, r); err != nil {
			return fmt.Errorf("setting link %v: %w", l, err)
		}
	}
	return nil
}

// drops reports whether an end of a link has the discipline of a link that is
// down.
func (b *bed) drops(e fabric.End) (bool, error) {
	s, err := netspace.Open(namespace(b.name, e.Node))
	if err != nil {
		return false, err
	}
	defer s.Close()
	dev, err := s.LinkByName(netspace.EndOf(b.links, e, 0).Name)
	if err != nil {
		return false, err
	}
	list, err := s.QdiscList(dev)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list, func(q netlink.Qdisc) bool { return q.Type() == "blackhole" }), nil
}

// setEnd chooses the discipline by which an end of a link sends.
func (b *bed) setEnd(t *fabric.Topology, l fabric.Link, e fabric.End, r target.Random) error {
	s, err := netspace.Open(namespace(b.name, e.Node))
	if err != nil {
		return err
	}
	defer s.Close()
	dev, err := s.LinkByName(netspace.EndOf(t, e, 0).Name)
	if err != nil {
		return err
	}
	attrs := netlink.QdiscAttrs{LinkIndex: dev.Attrs().Index, Parent: netlink.HANDLE_ROOT}
	// Delete the old discipline, because not every discipline can be replaced by
	// any other.
	err = s.QdiscDel(&netlink.GenericQdisc{QdiscAttrs: attrs})
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
		return err
	}
	switch {
	case l.Down:
		return s.QdiscAdd(&netlink.GenericQdisc{QdiscAttrs: attrs, QdiscType: "blackhole"})
	case l.Delay > 0, r != target.Random{}:
		return b.delay(s, attrs, l, r)
	}
	return nil
}

// delay configures the delay, loss and jitter of one end of a link, if the kernel has
// netem.
func (b *bed) delay(s *netspace.Space, attrs netlink.QdiscAttrs, l fabric.Link, r target.Random) error {
	attrs.Handle = netlink.MakeHandle(1, 0)
	err := s.QdiscAdd(netlink.NewNetem(attrs, netlink.NetemQdiscAttrs{
		Latency: uint32(l.Delay.Microseconds()), Jitter: uint32(r.Jitter.Microseconds()), Loss: float32(100 * r.Loss), Limit: 10000,
	}))
	if errors.Is(err, unix.ENOENT) && r != (target.Random{}) {
		return fmt.Errorf("this kernel has no netem: %w", errors.ErrUnsupported)
	}
	if errors.Is(err, unix.ENOENT) {
		b.noDelays.Do(func() {
			b.o.Log.Warn("this kernel has no netem: links have no delay of their own")
		})
		return nil
	}
	return err
}
