package codegen_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/server/thrift"
)

// record sends random packets through a program on simple_switch and writes the
// results.
func record(t *testing.T, dir, file string, manifest manifest.Manifest, config *bmv2.Config, text string, tr *rigTraffic) {
	t.Helper()
	real := startSimpleSwitch(t, dir, config, manifest.Queues)
	beside := newEmbedded(t, config, manifest.Queues)
	var b strings.Builder
	fmt.Fprintf(&b, "# %s --packet-in ADDR --thrift-port PORT %s.json\n", real.version, manifest.Scheme)
	fmt.Fprintf(&b, "# recorded by SIMPLE_SWITCH=DIR go test ./codegen -run Oracle\ndigest %s\n", digest(text))
	commands := entries(config, manifest, tr)
	for _, s := range []subject{real, beside} {
		if err := s.commands(commands); err != nil {
			t.Fatal(err)
		}
	}
	b.WriteString(strings.Join(commands, "\n") + "\n")
	for i := range oraclePackets {
		tr.pass(float64(i) / oraclePackets)
		if register, index, value, ok := tr.change(); ok && tr.IntN(3) == 0 {
			for _, s := range []subject{real, beside} {
				if err := s.set(register, index, value); err != nil {
					t.Fatal(err)
				}
			}
			fmt.Fprintf(&b, "set %s %d %d\n", register, index, value)
		}
		port, data := tr.packet()
		expected, _ := beside.send(port, data, 0)
		got, err := real.send(port, data, len(expected))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "> %d %s\n%s", port, pack(data), leavings(got))
	}
	for _, r := range manifest.Registers {
		cells, err := real.cells(r.Name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, strings.Join(append([]string{"=", r.Name}, cellList(cells)...), " "))
	}
	writeRecord(t, file, b.String())
}

func writeRecord(t *testing.T, file, text string) {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(z.Close(), os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, b.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// entries returns the commands that add routes, groups and sessions.
func entries(config *bmv2.Config, manifest manifest.Manifest, tr *rigTraffic) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for _, table := range manifest.Tables {
		whole := wholeKey(config, table.Name)
		switch _, name, _ := strings.Cut(table.Name, "."); name {
		case "ipv4_route":
			for gid := range groups {
				add("table_add %s LbIngress.set_group %#x/24 => %d %d", table.Name, groupNet(gid), gid, groupSize(gid, tr.ports))
			}
			for port := firstHost; port < firstHost+hosts; port++ {
				add("table_add %s LbIngress.set_port %#x/32 => %d", table.Name, hostAddr(port), port)
			}
		case "ipv6_route":
			for gid := range groups {
				add("table_add %s LbIngress.set_group 0x%x/88 => %d %d", table.Name, wide(groupNet(gid)), gid, groupSize(gid, tr.ports))
			}
			for port := firstHost; port < firstHost+hosts; port++ {
				add("table_add %s LbIngress.set_port 0x%x/128 => %d", table.Name, wide(hostAddr(port)), port)
			}
		case "member":
			for gid := range groups {
				for slot := range groupSize(gid, tr.ports) {
					add("table_add %s LbIngress.forward %s %d => %d %#x %#x", table.Name, whole(gid), slot, memberPort(gid, slot, tr.ports), 0x100+slot, 0x200+gid)
				}
			}
		case "candidates":
			for gid := range groups {
				add("table_add %s LbIngress.set_candidates %s => %s", table.Name, whole(gid), candidates(config, gid, tr))
			}
		case "leaf":
			for gid := range groups {
				add("table_add %s LbIngress.set_port %s => %d 1", table.Name, whole(gid), memberPort(gid, 0, tr.ports))
			}
			add("table_add %s LbIngress.at_home %s => %d 1", table.Name, whole(groups), groups)
		case "leaf_of":
			for gid := range groups {
				add("table_add %s LbIngress.set_leaf %#x/24 => %d", table.Name, groupNet(gid), gid)
			}
		case "leaf_of_ipv6":
			for gid := range groups {
				add("table_add %s LbIngress.set_leaf 0x%x/88 => %d", table.Name, wide(groupNet(gid)), gid)
			}
		case "arrival":
			for gid := range groups {
				for slot := range groupSize(gid, tr.ports) {
					add("table_add %s LbIngress.set_arrival %d %d => %d", table.Name, gid, memberPort(gid, slot, tr.ports), slot)
				}
			}
		case "port_cfg":
			for i := range tr.ports {
				add("table_add %s LbEgress.set_port_cfg %d => %d", table.Name, firstHop+i, 255<<16/(16+8*i))
			}
		case "pattern":
			add("table_set_default %s %sset_pattern %s", table.Name, strings.TrimSuffix(table.Name, "pattern"), pattern(config, tr))
		}
	}
	return append(list, replication(manifest, tr.ports)...)
}

// wholeKey returns how commands write the whole value of the first field of a table's
// key. Lines about tables with ternary fields end with a priority.
func wholeKey(config *bmv2.Config, name string) func(value int) string {
	for _, p := range config.Pipelines {
		for _, t := range p.Tables {
			if t.Name != name || len(t.Key) == 0 {
				continue
			}
			switch t.Key[0].MatchType {
			case bmv2.MatchLPM:
				return func(value int) string { return fmt.Sprintf("%d/16", value) }
			case bmv2.MatchTernary:
				return func(value int) string { return fmt.Sprintf("%d&&&0xfff", value) }
			}
		}
	}
	return strconv.Itoa
}

// groupSize is 2 to all paths.
func groupSize(gid, ports int) int { return max(2, ports-gid*ports/groups) }

// memberPort returns a port of a group; the order of ports differs between groups.
func memberPort(gid, slot, ports int) int { return firstHop + (slot+gid)%ports }

// candidates are the arguments of a group's attributes, as the action names
// them.
func candidates(config *bmv2.Config, gid int, tr *rigTraffic) string {
	var args []string
	for _, name := range paramNames(config, "LbIngress.set_candidates") {
		attribute, text, _ := strings.Cut(name, "_")
		slot := int(inNumbers([]string{text})[0])
		value := 0
		switch {
		case slot >= groupSize(gid, tr.ports):
		case attribute == "port":
			value = memberPort(gid, slot, tr.ports)
		case attribute == "svc":
			value = (10+tr.IntN(20))<<16 + tr.IntN(1<<16)
		default:
			value = tr.IntN(4)
		}
		args = append(args, fmt.Sprint(value))
	}
	return strings.Join(args, " ")
}

// pattern are coefficients of either sign.
func pattern(config *bmv2.Config, tr *rigTraffic) string {
	var args []string
	for range paramNames(config, "LbIngress.set_pattern") {
		args = append(args, fmt.Sprint(uint32(tr.Int32N(6001)-3000)))
	}
	return strings.Join(args, " ")
}

func paramNames(config *bmv2.Config, action string) []string {
	var names []string
	for _, a := range config.Actions {
		if a.Name == action {
			for _, p := range a.RuntimeData {
				names = append(names, p.Name)
			}
			break
		}
	}
	return names
}

// replication returns the commands for clone sessions and multicast groups.
func replication(manifest manifest.Manifest, ports int) []string {
	var list []string
	for _, s := range manifest.CloneSessions {
		if !s.PerPort {
			list = append(list, fmt.Sprintf("mirroring_add %d %d", s.Session, s.Port))
			continue
		}
		for port := firstHost; port < firstHop+ports; port++ {
			list = append(list, fmt.Sprintf("mirroring_add %d %d", s.Session+port, port))
		}
	}
	for i, g := range manifest.MulticastGroups {
		first, last := g.Group, g.Group
		if g.PerPort {
			first, last = g.Group+firstHost, g.Group+firstHop+ports-1
		}
		list = append(list, fmt.Sprintf("mc_node_create %d %d %d", i, firstHop, firstHop+1))
		for group := first; group <= last; group++ {
			list = append(list, fmt.Sprintf("mc_mgrp_create %d", group), fmt.Sprintf("mc_node_associate %d %d", group, i))
		}
	}
	return list
}

// simpleSwitch is a subject that runs simple_switch: packets go through its socket for
// tests, registers through Thrift.
type simpleSwitch struct {
	version string
	cli     *exec.Cmd
	packets net.Conn
	thrift  *thrift.Client
}

// startSimpleSwitch runs a program on the simple_switch in a folder.
func startSimpleSwitch(t *testing.T, dir string, config *bmv2.Config, queues int) *simpleSwitch {
	t.Helper()
	var doc bytes.Buffer
	if err := config.Write(&doc); err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	file, socket := filepath.Join(tmp, "program.json"), filepath.Join(tmp, "packets")
	if err := os.WriteFile(file, doc.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	version, err := exec.Command(filepath.Join(dir, "simple_switch"), "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	process := exec.Command(filepath.Join(dir, "simple_switch"), "--packet-in", "ipc://"+socket, "--thrift-port", port,
		"--notifications-addr", "ipc://"+filepath.Join(tmp, "notifications"), "--log-level", "off", file, "--", "--priority-queues", strconv.Itoa(max(1, queues)))
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Process.Kill()
		process.Wait()
	})
	s := &simpleSwitch{version: "simple_switch " + strings.TrimSpace(string(version))}
	deadline := time.Now().Add(20 * time.Second)
	for s.thrift == nil || s.packets == nil {
		if time.Now().After(deadline) {
			t.Fatal("simple_switch does not answer")
		}
		s.connect("127.0.0.1:"+port, socket)
	}
	t.Cleanup(func() { s.packets.Close(); s.thrift.Close() })
	// The handshake of nanomsg's pairs.
	if _, err := s.packets.Write([]byte{0, 'S', 'P', 0, 0, 16, 0, 0}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(s.packets, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	s.cli = exec.Command(filepath.Join(dir, "simple_switch_CLI"), "--thrift-port", port)
	return s
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// connect connects the remaining sockets, retrying for a short time.
func (s *simpleSwitch) connect(addr, socket string) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if s.thrift == nil {
		s.thrift, _ = thrift.Dial(ctx, addr)
	}
	if s.packets == nil {
		var d net.Dialer
		s.packets, _ = d.DialContext(ctx, "unix", socket)
	}
	if s.thrift == nil || s.packets == nil {
		<-ctx.Done()
	}
}

// commands passes all commands to simple_switch_CLI at once.
func (s *simpleSwitch) commands(lines []string) error {
	s.cli.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	said, err := s.cli.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	for line := range strings.Lines(string(said)) {
		for _, bad := range []string{"Error", "Invalid", "Unknown"} {
			if strings.Contains(line, bad) {
				return errors.New(string(said))
			}
		}
	}
	return nil
}

func (s *simpleSwitch) set(register string, index int, value uint64) error {
	return s.thrift.RegisterWriteRange(context.Background(), register, index, index+1, value)
}

func (s *simpleSwitch) cells(register string) ([]uint64, error) {
	return s.thrift.RegisterReadAll(context.Background(), register)
}

// settle is the time after the last expected packet in which other packets, or work
// within the switch, are possible.
const settle = 5 * time.Millisecond

const (
	packetIn  = 3 // of BMv2's messages
	packetOut = 4
)

func (s *simpleSwitch) send(port uint32, data []byte, want int) ([]leaving, error) {
	m := binary.BigEndian.AppendUint64([]byte{1}, uint64(12+len(data)))
	for _, v := range []uint32{packetIn, port, uint32(len(data))} {
		m = binary.LittleEndian.AppendUint32(m, v)
	}
	if _, err := s.packets.Write(append(m, data...)); err != nil {
		return nil, err
	}
	var list []leaving
	for {
		patience := settle
		if len(list) < want {
			patience = 2 * time.Second
		}
		l, err := s.receive(patience)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			sortLeaving(list)
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
}

// receive waits for the next packet.
func (s *simpleSwitch) receive(patience time.Duration) (leaving, error) {
	if err := s.packets.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return leaving{}, err
	}
	head := make([]byte, 21)
	if _, err := io.ReadFull(s.packets, head[:1]); err != nil {
		return leaving{}, err
	}
	if err := s.packets.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return leaving{}, err
	}
	if _, err := io.ReadFull(s.packets, head[1:]); err != nil {
		return leaving{}, err
	}
	if typ := binary.LittleEndian.Uint32(head[9:]); typ != packetOut {
		return leaving{}, fmt.Errorf("a message of type %d", typ)
	}
	data := make([]byte, binary.LittleEndian.Uint32(head[17:]))
	_, err := io.ReadFull(s.packets, data)
	return leaving{binary.LittleEndian.Uint32(head[13:]), string(data)}, err
}
