package target

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/bmv2"
)

// An interfaceMeter reads the counters of a simple_switch's interfaces on this machine. The
// kernel keeps them by network namespace, and the meter uses the one of the switch's process.
type interfaceMeter struct {
	process string // folder of the process in /proc
	args    []string
}

// newInterfaceMeter finds the switch's process by the port of its Thrift server, which is in its
// arguments, and by its address, which its network namespace has.
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
			continue // the process has ended, or belongs to another user
		}
		args := strings.Split(string(text), "\x00")
		process := filepath.Dir(file)
		if strings.HasPrefix(filepath.Base(args[0]), "simple_switch") && argument(args, "--thrift-port") == port && isAt(process, host) {
			return &interfaceMeter{process, args}, nil
		}
	}
	return nil, fmt.Errorf("no simple_switch on this machine serves Thrift at %s", address)
}

// isAt reports whether a process is reachable at an address of this machine: it is in this
// network namespace, or in one that has the address itself.
func isAt(process, host string) bool {
	if ip := net.ParseIP(host); ip == nil || ip.IsLoopback() {
		ours, err := os.Readlink("/proc/self/ns/net")
		its, e := os.Readlink(filepath.Join(process, "ns/net"))
		return err == nil && e == nil && ours == its
	}
	text, err := os.ReadFile(filepath.Join(process, "net/fib_trie"))
	return err == nil && hasAddress(string(text), host)
}

// hasAddress reports whether a table in the format of /proc/net/fib_trie contains an address as
// local. The line after the address is then "host LOCAL".
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

// counts returns the kernel's counters of the interfaces. The kernel knows neither the switch's
// queue lengths nor its reasons for drops.
func (m *interfaceMeter) counts() ([]bmv2.PortCounts, error) {
	text, err := os.ReadFile(filepath.Join(m.process, "net/dev"))
	if err != nil {
		return nil, err
	}
	byName, err := interfaceCounts(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s/net/dev: %w", m.process, err)
	}
	var list []bmv2.PortCounts
	for port, name := range interfacesOf(m.args) {
		c, ok := byName[name]
		if !ok {
			continue // the interface has been removed
		}
		c.Port = port
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b bmv2.PortCounts) int { return cmp.Compare(a.Port, b.Port) })
	return list, nil
}

// argument returns the value of a flag, written as "FLAG VALUE" or "FLAG=VALUE".
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

// interfacesOf returns the interfaces of ports, from arguments -i PORT@NAME.
func interfacesOf(args []string) map[int]string {
	list := map[int]string{}
	for i, a := range args {
		where := ""
		switch {
		case (a == "-i" || a == "--interface") && i+1 < len(args):
			where = args[i+1]
		case strings.HasPrefix(a, "-i"):
			where = strings.TrimPrefix(a, "-i")
		}
		number, name, _ := strings.Cut(where, "@")
		if port, err := strconv.Atoi(number); err == nil && name != "" {
			list[port] = name
		}
	}
	return list
}

// interfaceCounts reads a table like /proc/net/dev.
func interfaceCounts(table string) (map[string]bmv2.PortCounts, error) {
	// The columns of the counters: receive first, then transmit.
	const inBytes, inPackets, inDrops, outBytes, outPackets, outDrops, fields = 0, 1, 3, 8, 9, 11, 16
	list := map[string]bmv2.PortCounts{}
	for line := range strings.Lines(table) {
		head, figures, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		texts := strings.Fields(figures)
		if len(texts) < fields {
			return nil, fmt.Errorf("%q is no line of counts", strings.TrimSpace(line))
		}
		numbers := make([]uint64, len(texts))
		for i, t := range texts {
			var err error
			if numbers[i], err = strconv.ParseUint(t, 10, 64); err != nil {
				return nil, err
			}
		}
		c := bmv2.PortCounts{
			InPackets: numbers[inPackets], InBytes: numbers[inBytes], OutPackets: numbers[outPackets], OutBytes: numbers[outBytes],
		}
		c.Drops[bmv2.DropUnread], c.Drops[bmv2.DropLink] = numbers[inDrops], numbers[outDrops]
		list[strings.TrimSpace(head)] = c
	}
	return list, nil
}
