package target

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// An interfaceMeter knows the interfaces of a simple_switch on this machine. The
// kernel counts for each network namespace, which the process of the switch is
// in.
type interfaceMeter struct {
	process string // its folder below /proc
	args    []string
}

// newInterfaceMeter finds the switch by the port of its Thrift server, which is
// among its arguments, and by its address, which its network namespace has.
func newInterfaceMeter(address string) (*interfaceMeter, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	for _, file := range processes {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended, or is another user's
		}
		args := strings.Split(string(text), "\x00")
		process := filepath.Dir(file)
		if strings.HasPrefix(filepath.Base(args[0]), "simple_switch") && argument(args, "--thrift-port") == port && isAt(process, host) {
			return &interfaceMeter{process, args}, nil
		}
	}
	return nil, fmt.Errorf("no simple_switch on this machine serves Thrift at %s", address)
}

// isAt reports whether a process can be reached at an address of this machine:
// in this network namespace, or in one that has the address for itself.
func isAt(process, host string) bool {
	if ip := net.ParseIP(host); ip == nil || ip.IsLoopback() {
		ours, err := os.Readlink("/proc/self/ns/net")
		its, e := os.Readlink(filepath.Join(process, "ns/net"))
		return err == nil && e == nil && ours == its
	}
	text, err := os.ReadFile(filepath.Join(process, "net/fib_trie"))
	return err == nil && hasAddress(string(text), host)
}

// hasAddress reports whether a table like /proc/net/fib_trie has an address as
// a local one: it is followed by a line that says so.
func hasAddress(table, host string) bool {
	found := false
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if found && line == "/32 host LOCAL" {
			return true
		}
		found = line == "|-- "+host
	}
	return false
}

// sent is what the interface behind a port has sent.
func (m *interfaceMeter) sent(port int) (uint64, error) {
	name := interfaceOf(m.args, port)
	if name == "" {
		return 0, fmt.Errorf("port %d of the switch has no interface", port)
	}
	return interfaceBytes(filepath.Join(m.process, "net/dev"), name)
}

// argument is what follows a flag, or stands behind it and =.
func argument(args []string, flag string) string {
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, flag+"="); ok {
			return v
		}
		if a == flag && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// interfaceOf is the interface of a port, which is given as -i PORT@NAME.
func interfaceOf(args []string, port int) string {
	prefix := strconv.Itoa(port) + "@"
	for i, a := range args {
		switch {
		case (a == "-i" || a == "--interface") && i+1 < len(args):
			if name, ok := strings.CutPrefix(args[i+1], prefix); ok {
				return name
			}
		case strings.HasPrefix(a, "-i"+prefix):
			return strings.TrimPrefix(a, "-i"+prefix)
		}
	}
	return ""
}

// interfaceBytes reads how many bytes an interface has sent out of a table like
// /proc/net/dev.
func interfaceBytes(file, name string) (uint64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	const sentBytes = 8 // the ninth figure
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		head, figures, ok := strings.Cut(lines.Text(), ":")
		if !ok || strings.TrimSpace(head) != name {
			continue
		}
		fields := strings.Fields(figures)
		if len(fields) <= sentBytes {
			return 0, fmt.Errorf("%s: %q is no line of counts", file, lines.Text())
		}
		return strconv.ParseUint(fields[sentBytes], 10, 64)
	}
	return 0, fmt.Errorf("%s has no interface %s", file, name)
}
