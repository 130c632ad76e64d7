package hosts

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/p4lb/p4lb/internal/device/ports"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/netspace"
)

// A Network is the hosts of a topology.
type Network struct {
	edge  *netspace.Space // the switches' ends of the links
	names map[string]string
	known []byte // the hosts as lines of /etc/hosts
	hosts map[string]*netspace.Space

	answerers []*netspace.Answerer // answer requests for virtual addresses
	first     *os.Process          // first process in the namespaces of the hosts
	alive     *os.File             // pipe whose end terminates the first process
	processes *os.File             // their namespace

	mu       sync.Mutex
	closed   bool
	finished sync.WaitGroup
}

// Open creates the hosts of a topology.
func Open(t *fabric.Topology, o Options) (_ *Network, err error) {
	n := &Network{known: netspace.HostsFile(t), names: map[string]string{}, hosts: map[string]*netspace.Space{}}
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	if n.edge, err = netspace.New(""); err != nil {
		return nil, refusal(err)
	}
	if err = n.startFirst(); err != nil {
		return nil, refusal(err)
	}
	shaped := o.Rates
	for i := range t.Hosts {
		h := &t.Hosts[i]
		if err := n.add(t, h, fmt.Sprintf("h%d", i), o); err != nil {
			return nil, fmt.Errorf("setting up host %s: %w", h.Name, err)
		}
		if !shaped {
			continue
		}
		err := n.limit(h.Name, linkOf(t, h).Rate)
		if errors.Is(err, unix.ENOENT) {
			shaped = false
			o.log().Warn("this kernel has no token buckets (sch_tbf): hosts send as fast as they can")
		} else if err != nil {
			return nil, fmt.Errorf("limiting what host %s sends: %w", h.Name, err)
		}
	}
	return n, nil
}

func (o Options) log() *slog.Logger {
	return cmp.Or(o.Log, slog.New(slog.DiscardHandler))
}

// add creates a host. Its link has its own name in the edge namespace.
func (n *Network) add(t *fabric.Topology, h *fabric.Host, name string, o Options) error {
	mtu := cmp.Or(o.MTU, 1500)
	space, err := netspace.New("")
	if err != nil {
		return err
	}
	n.names[h.Name], n.hosts[h.Name] = name, space
	here := netspace.EndOf(t, fabric.End{Node: h.Name}, mtu)
	there := netspace.EndOf(t, fabric.End{Node: h.Switch, Port: h.Port}, mtu)
	here.Space, there.Space, there.Name = space, n.edge, name
	here.Offload, there.Offload = offloadBytes, offloadBytes
	if err := netspace.Join(here, there); err != nil {
		return err
	}
	if err := netspace.Settle(t, h, space, o.Known.In(o.ByMAC), o.Virtual); err != nil {
		return err
	}
	own := netspace.OnLink(t, h, o.Known.In(o.ByMAC), o.Virtual)
	if len(own) == 0 {
		return nil
	}
	a, err := netspace.Answer(here, there, own)
	if err == nil {
		n.answerers = append(n.answerers, a)
	}
	return err
}

// offloadBytes is the largest payload of a TCP packet that a host leaves to the switch's port. Larger
// packets are cheaper, and fill more of a queue at once.
const offloadBytes = 32 << 10

// linkOf returns the link between a host and its switch.
func linkOf(t *fabric.Topology, h *fabric.Host) fabric.Link {
	i := slices.IndexFunc(t.Links, func(l fabric.Link) bool { return l.A.Node == h.Name || l.B.Node == h.Name })
	return t.Links[i]
}

const (
	// hostQueue is the number of full packets that may wait at a host, as in Linux by default.
	hostQueue = 1000
	// bucket is the number of packets that may leave in a burst, because the kernel's timers are
	// not more precise.
	bucket = 4
)

// limit limits the sending rate of a host.
func (n *Network) limit(host string, r fabric.Rate) error {
	s := n.hosts[host]
	dev, err := s.LinkByName(netspace.HostPort)
	if err != nil {
		return err
	}
	packet := uint32(dev.Attrs().MTU + 14)
	bytes := uint64(r) / 8
	burst := max(bucket*packet, uint32(min(bytes/1000, 1<<20))) // a millisecond's worth
	return s.QdiscAdd(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: dev.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0)},
		Rate:       bytes, Limit: hostQueue * packet, Buffer: netlink.Xmittime(bytes, burst),
	})
}

// Port opens the switch's end of a host's link.
func (n *Network) Port(host string) (p ports.Port, err error) {
	name, ok := n.names[host]
	if !ok {
		return nil, fmt.Errorf("there is no host %s", host)
	}
	err = n.edge.Do(func() error {
		p, err = ports.Open("offload:" + name)
		return err
	})
	return p, err
}

// Socket creates a TCP socket on a host.
func (n *Network) Socket(host string) (fd int, err error) {
	return n.socket(host, (*netspace.Space).Socket)
}

// Datagrams creates a UDP socket on a host.
func (n *Network) Datagrams(host string) (fd int, err error) {
	return n.socket(host, (*netspace.Space).Datagrams)
}

func (n *Network) socket(host string, create func(*netspace.Space) (int, error)) (fd int, err error) {
	space := n.hosts[host]
	if space == nil {
		return 0, fmt.Errorf("there is no host %s", host)
	}
	return create(space)
}

// In calls f in the network namespace of a host. f must not leave its goroutine.
func (n *Network) In(host string, f func() error) error {
	space := n.hosts[host]
	if space == nil {
		return fmt.Errorf("there is no host %s", host)
	}
	return space.Do(f)
}

// Run starts a command on a host, and calls ended when it has ended. It ends
// with the network.
func (n *Network) Run(host string, cmd *exec.Cmd, ended func(error)) error {
	space := n.hosts[host]
	if space == nil {
		return fmt.Errorf("there is no host %s", host)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return errors.New("the network is being taken down")
	}
	started := make(chan error)
	n.finished.Go(func() {
		runtime.LockOSThread() // never unlocked, because nothing else may run on this thread
		err := netns.Set(space.NS)
		if err == nil {
			n.resolve()
			err = unix.Setns(int(n.processes.Fd()), unix.CLONE_NEWPID)
		}
		if err == nil {
			err = cmd.Start()
		}
		started <- err
		if err == nil {
			ended(cmd.Wait())
		}
	})
	return <-started
}

// resolve gives this thread, and commands that it starts, an /etc/hosts with the names of the
// hosts. The file is in memory and disappears with the last command. If the kernel rejects it,
// commands run without the names.
func (n *Network) resolve() {
	const room = "/tmp" // any folder: the file system in it is hidden at once
	had, _ := os.ReadFile("/etc/hosts")
	if unix.Unshare(unix.CLONE_NEWNS) != nil || unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "") != nil {
		return
	}
	if unix.Mount("tmpfs", room, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=1m,mode=755") != nil {
		return
	}
	defer unix.Unmount(room, unix.MNT_DETACH)
	file := room + "/hosts"
	if os.WriteFile(file, append(had, n.known...), 0o644) == nil {
		unix.Mount(file, "/etc/hosts", "", unix.MS_BIND, "")
	}
}

// Close ends all processes on the hosts and removes the hosts.
func (n *Network) Close() error {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	err := n.endAll()
	for _, a := range n.answerers {
		a.Close()
	}
	for _, s := range n.hosts {
		s.Close()
	}
	if n.edge != nil {
		n.edge.Close()
	}
	return err
}
