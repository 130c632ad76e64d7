package netspace

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// A Space is an open network namespace. It exists until it is closed and contains
// no process, or as long as it has a name.
type Space struct {
	NS netns.NsHandle
	*netlink.Handle
}

// New creates a namespace. If a name is given, it is registered under /run/netns,
// as the program ip does. IPv6 is disabled, so that links only carry intended
// packets.
func New(name string) (*Space, error) {
	var s *Space
	err := onThread(func() (err error) {
		var ns netns.NsHandle
		if name == "" {
			ns, err = netns.New()
		} else {
			ns, err = netns.NewNamed(name)
		}
		if err != nil {
			return fmt.Errorf("making namespace %s: %w", name, err)
		}
		if err := withoutIPv6(); err != nil {
			ns.Close()
			return err
		}
		s, err = open(ns)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := s.up("lo"); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Open opens the namespace with a name.
func Open(name string) (*Space, error) {
	ns, err := netns.GetFromName(name)
	if err != nil {
		return nil, fmt.Errorf("opening namespace %s: %w", name, err)
	}
	return open(ns)
}

func open(ns netns.NsHandle) (*Space, error) {
	handle, err := netlink.NewHandleAt(ns)
	if err != nil {
		ns.Close()
		return nil, fmt.Errorf("opening a namespace: %w", err)
	}
	return &Space{ns, handle}, nil
}

// withoutIPv6 disables IPv6 in the namespace of the thread.
func withoutIPv6() error {
	for _, which := range []string{"all", "default"} {
		err := os.WriteFile("/proc/sys/net/ipv6/conf/"+which+"/disable_ipv6", []byte("1"), 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel without IPv6
			return fmt.Errorf("switching IPv6 off: %w", err)
		}
	}
	return nil
}

// withIPv6 enables IPv6 at an interface of this namespace. The interface has only
// the addresses and neighbours that it is given: the kernel derives none, and sends
// no packets to look for others.
func (s *Space) withIPv6(name string) error {
	settings := []struct{ name, value string }{
		{"accept_ra", "0"}, {"autoconf", "0"}, {"dad_transmits", "0"}, {"router_solicitations", "0"},
		{"addr_gen_mode", "1"}, // no link-local address
		{"disable_ipv6", "0"},
	}
	return s.Do(func() error {
		for _, set := range settings {
			err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/"+set.name, []byte(set.value), 0)
			if errors.Is(err, os.ErrNotExist) {
				return errors.New("the kernel has no IPv6")
			}
			if err != nil {
				return fmt.Errorf("switching IPv6 on: %s: %w", set.name, err)
			}
		}
		return nil
	})
}

// Close releases the namespace.
func (s *Space) Close() {
	s.Handle.Close()
	s.NS.Close()
}

// up enables an interface.
func (s *Space) up(name string) error {
	l, err := s.LinkByName(name)
	if err != nil {
		return err
	}
	return s.LinkSetUp(l)
}

// Do calls f in the network namespace.
func (s *Space) Do(f func() error) error {
	return onThread(func() error {
		if err := netns.Set(s.NS); err != nil {
			return fmt.Errorf("entering a namespace: %w", err)
		}
		return f()
	})
}

// Socket creates a TCP socket in the namespace, for IPv6 if its host has an IPv6 address.
func (s *Space) Socket() (fd int, err error) { return s.socket(unix.SOCK_STREAM) }

// Datagrams creates a UDP socket like Socket.
func (s *Space) Datagrams() (fd int, err error) { return s.socket(unix.SOCK_DGRAM) }

func (s *Space) socket(kind int) (fd int, err error) {
	err = s.Do(func() error {
		family := unix.AF_INET
		if text, _ := os.ReadFile("/proc/thread-self/net/if_inet6"); bytes.Contains(text, []byte(" "+HostPort)) {
			family = unix.AF_INET6
		}
		fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// onThread calls f on a thread that may change its namespace and change back. If it cannot change
// back, the thread ends. f therefore does not run on the process's first thread, which cannot
// end.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		home, err := netns.Get()
		if err != nil {
			done <- fmt.Errorf("opening the own namespace: %w", err)
			return
		}
		defer home.Close()
		err = f()
		if back := netns.Set(home); back == nil {
			runtime.UnlockOSThread() // otherwise the thread ends with its goroutine
		}
		done <- err
	}()
	return <-done
}
