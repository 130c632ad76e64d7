package codegen_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/codegen"
)

// forwardingRecord contains the results of the programs on real switches.
const forwardingRecord = "../testdata/oracle/forwarding.tsv"

// forwardingHead explains the record; the version of the switch follows.
const forwardingHead = `# Each program of the catalogue on BMv2: filled through simple_switch_CLI on simple_switch,
# and through P4Runtime on simple_switch_grpc. Of so many packets to groups so many left once,
# at a port of their group, for its next hop. The digest is of the program's text
# without comments and empty lines. A folder without simple_switch_grpc leaves what
# that did with programs that have not changed, and "not run" for the others.
# Recorded by SIMPLE_SWITCH=DIR go test ./codegen -run Forwarding
`

// forwardedPackets is the number of packets that a program receives.
const forwardedPackets = 24

// TestForwardingRecord compares the record with today's programs. If SIMPLE_SWITCH
// names the folder of the switches, it first regenerates the record.
func TestForwardingRecord(t *testing.T) {
	leftToPlainRun(t)
	if dir := os.Getenv("SIMPLE_SWITCH"); dir != "" {
		recordForwarding(t, dir)
	}
	text, err := os.ReadFile(forwardingRecord)
	if err != nil {
		t.Fatal(err)
	}
	record := readTable(t, string(text), 4)
	all := fmt.Sprintf("%d of %d", forwardedPackets, forwardedPackets)
	for _, row := range codegen.Rows() {
		_, program := generate(t, row, codegen.Params{})
		switch got := record[row.Name]; {
		case got == nil:
			t.Errorf("%s is not in the record", row.Name)
		case got[0] != digest(program):
			t.Errorf("%s is no longer the program that was recorded", row.Name)
		case got[1] == all && got[2] == notRun:
			t.Logf("%s has changed since simple_switch_grpc ran it", row.Name)
		case got[1] != all || got[2] != all:
			t.Errorf("%s: %s forwarded by simple_switch, %s by simple_switch_grpc", row.Name, got[1], got[2])
		}
	}
	if len(record) != len(codegen.Rows()) {
		t.Errorf("%d schemes in the record, %d in the catalogue", len(record), len(codegen.Rows()))
	}
}

// notRun replaces the answer of a switch that was not available.
const notRun = "not run"

func recordForwarding(t *testing.T, dir string) {
	t.Helper()
	before, err := os.ReadFile(forwardingRecord)
	if err != nil {
		t.Fatal(err)
	}
	record := readTable(t, string(before), 4)
	_, missing := os.Stat(filepath.Join(dir, "simple_switch_grpc"))
	var b strings.Builder
	for i, row := range codegen.Rows() {
		program, text := generate(t, row, codegen.Params{})
		config := compile(t, row.Name, text)
		tr := newRigTraffic(program.Manifest, program.Manifest.Paths, uint64(i))
		commands := entries(config, program.Manifest, tr)
		plain := startSimpleSwitch(t, dir, config, 1)
		if i == 0 {
			fmt.Fprintf(&b, "%s# %s\nscheme\tdigest\tsimple_switch\tsimple_switch_grpc\n", forwardingHead, plain.version)
		}
		remote := notRun
		if old := record[row.Name]; missing == nil {
			remote = forwarded(t, startSimpleSwitchGRPC(t, dir, text), commands, tr)
		} else if old != nil && old[0] == digest(text) {
			remote = old[2]
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\n", row.Name, digest(text), forwarded(t, plain, commands, tr), remote)
	}
	if err := os.WriteFile(forwardingRecord, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A forwarder is the part of a switch that the test needs.
type forwarder interface {
	commands(lines []string) error
	send(port uint32, data []byte, want int) ([]leaving, error)
}

// forwarded counts the packets that a switch forwards correctly.
func forwarded(t *testing.T, s forwarder, commands []string, tr *rigTraffic) string {
	t.Helper()
	if err := s.commands(commands); err != nil {
		t.Fatal(err)
	}
	good := 0
	for i := range forwardedPackets {
		gid := i % groups
		packet := make([]byte, 100)
		copy(packet, tr.ethernet(nil, 0x0800))
		ip := packet[14:]
		ip[0], ip[3], ip[8], ip[9] = 0x45, 86, 64, 17
		binary.BigEndian.PutUint32(ip[12:], hostAddr(firstHost))
		binary.BigEndian.PutUint32(ip[16:], groupNet(gid)+uint32(i))
		binary.BigEndian.PutUint16(ip[10:], internetChecksum(ip[:20]))
		binary.BigEndian.PutUint16(ip[20:], uint16(1000+i))
		out, err := s.send(firstHost, packet, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(out) != 1 {
			t.Logf("packet %d leaves as\n%s", i, leavings(out))
			continue
		}
		for slot := range groupSize(gid, tr.ports) {
			nextHop := bytes48(uint64(0x100 + slot))
			if int(out[0].port) == memberPort(gid, slot, tr.ports) && bytes.HasPrefix([]byte(out[0].data), nextHop) {
				good++
			}
		}
	}
	return fmt.Sprintf("%d of %d", good, forwardedPackets)
}
