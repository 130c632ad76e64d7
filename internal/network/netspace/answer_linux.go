package netspace

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// An Answerer responds to the requests of a host for the MACs of virtual addresses.
type Answerer struct {
	requests, answers *os.File
	done              chan struct{}
}

// requestFilter passes ARP and IPv6 neighbour solicitations.
var requestFilter = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: 12},
	{Code: unix.BPF_JMP | unix.BPF_JEQ, Jt: 5, K: 0x0806},
	{Code: unix.BPF_JMP | unix.BPF_JEQ, Jf: 5, K: 0x86dd},
	{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 20},
	{Code: unix.BPF_JMP | unix.BPF_JEQ, Jf: 3, K: 58},
	{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: icmpSix},
	{Code: unix.BPF_JMP | unix.BPF_JEQ, Jf: 1, K: solicitation},
	{Code: unix.BPF_RET, K: 1 << 16},
	{Code: unix.BPF_RET, K: 0},
}

// Answer responds to ARP and neighbour requests of a host until Close. It reads them at the
// host's end of the link and writes at the switch's end, because a switch that uses XDP would
// hide them.
func Answer(host, sw End, addresses map[netip.Addr]fabric.MAC) (_ *Answerer, err error) {
	a := &Answerer{done: make(chan struct{})}
	if a.requests, err = packets(host, requestFilter); err != nil {
		return nil, err
	}
	if a.answers, err = packets(sw, requestFilter[len(requestFilter)-1:]); err != nil {
		a.requests.Close()
		return nil, err
	}
	go func() {
		defer close(a.done)
		frame := make([]byte, 256)
		for {
			n, err := a.requests.Read(frame)
			if err != nil {
				return
			}
			if reply := answerTo(frame[:n], addresses); reply != nil {
				_, _ = a.answers.Write(reply) // if the reply is lost, the host asks again
			}
		}
	}()
	return a, nil
}

// Sender opens a packet socket that writes frames to the link of an interface and reads
// nothing.
func Sender(e End) (*os.File, error) { return packets(e, requestFilter[len(requestFilter)-1:]) }

// Close ends the responses.
func (a *Answerer) Close() {
	a.requests.Close()
	<-a.done
	a.answers.Close()
}

// packets opens a packet socket at an interface with a filter.
//
// Hostile input: none. The filter is constant, and the kernel checks it.
func packets(e End, filter []unix.SockFilter) (file *os.File, err error) {
	err = e.Space.Do(func() error {
		link, err := net.InterfaceByName(e.Name)
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return err
		}
		file = os.NewFile(uintptr(fd), e.Name)
		program := unix.SockFprog{Len: uint16(len(filter)), Filter: unsafe.SliceData(filter)}
		if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program); err != nil {
			return err
		}
		all := uint16(unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8)
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: link.Index})
	})
	if err != nil {
		if file != nil {
			file.Close()
		}
		return nil, fmt.Errorf("packet socket at %s: %w", e.Name, err)
	}
	return file, nil
}

// OnLink returns the virtual addresses that a host resolves, with their MACs. These
// are the addresses in its subnet, or with KnowsAll all addresses of its IP
// version. The default MAC is the switch's.
func OnLink(t *fabric.Topology, h *fabric.Host, known Known, virtual map[netip.Addr]fabric.MAC) map[netip.Addr]fabric.MAC {
	list := map[netip.Addr]fabric.MAC{}
	for ip, mac := range virtual {
		if ip.Is6() != h.IP.Addr().Is6() || known != KnowsAll && !h.IP.Contains(ip) {
			continue
		}
		if mac == (fabric.MAC{}) {
			mac = EndOf(t, fabric.End{Node: h.Switch, Port: h.Port}, 0).MAC
		}
		list[ip] = mac
	}
	return list
}
