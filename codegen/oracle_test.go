package codegen_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/bmv2"
)

// oracleDir contains simple_switch's results for each scheme: commands, input packets
// (>), output packets (<), changes to registers (set), and their final values (=).
// Packets are hexadecimal; +N stands for N more zero bytes.
const oracleDir = "../testdata/oracle/schemes"

// oraclePackets is the number of packets of a record.
const oraclePackets = 400

// oracleParams are parameters with which all mechanisms of a scheme act early.
func oracleParams(row codegen.Row, i int) codegen.Params {
	set := map[string]string{
		"dt": "40us", "twarn": "400us", "qpfc": "64KiB", "qth": "8000B", "hold": "300us", "rc": "3",
		"cell": "4KiB", "timeout": "2ms", "sent": "8000B", "gap": "300us", "tb": "40us",
		"trimat": "20 packets",
	}
	p := codegen.Params{Ports: []int{4, 8, 3, 16}[i%4], Set: map[string]string{}}
	for _, known := range row.Parameters() {
		if v, ok := set[known.Name]; ok {
			p.Set[known.Name] = v
		}
	}
	if row.Signal == "utilisation" || row.Signal == "degree" {
		p.Role = "tor"
	}
	return p
}

// A leaving is a packet that leaves.
type leaving struct {
	port uint32
	data string
}

// A subject is a switch with a program.
type subject interface {
	commands(lines []string) error // of simple_switch_CLI
	set(register string, index int, value uint64) error
	send(port uint32, data []byte, want int) ([]leaving, error) // want are expected
	cells(register string) ([]uint64, error)
}

// TestOracle repeats the recorded runs of simple_switch on the embedded switch: the
// same packets must leave at the same ports, and all registers must have the same
// final values. If SIMPLE_SWITCH names the folder of the switches, it first
// regenerates the records.
func TestOracle(t *testing.T) {
	names := append(codegen.Names(), "ecmp+trim", "ar-flowlet+trim")
	for i, name := range names {
		if testing.Short() && i%6 > 0 {
			continue // each has one goroutine: some do for the race detector
		}
		t.Run(name, func(t *testing.T) {
			row, err := codegen.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			program, text := generate(t, row, oracleParams(row, i))
			text = rigged(t, text)
			config := compile(t, name, text)
			judge(t, oracleFile(name), newRigTraffic(program.Manifest, program.Manifest.Paths, uint64(i)), config, text)
		})
	}
	files, err := filepath.Glob(oracleDir + "/*.gz")
	if err != nil || len(files) != len(names) {
		t.Errorf("%d records, %d schemes: %v", len(files), len(names), err)
	}
}

func oracleFile(name string) string { return filepath.Join(oracleDir, name+".txt.gz") }

// ipv6Schemes are schemes whose programs use IP headers in different ways.
var ipv6Schemes = []string{"ecmp", "letflow", "conga", "hula", "clove", "flowbender", "hermes", "presto", "dhlb", "pdlb", "qdaps", "qall-poly3", "drill+rlb", "letflow+rlb-star", "ecmp+trim"}

// ipv6Dir contains simple_switch's results for them with IPv4 and IPv6 packets.
const ipv6Dir = "../testdata/oracle/ipv6"

// TestOracleIPv6 is TestOracle for programs that forward IPv6.
func TestOracleIPv6(t *testing.T) {
	for i, name := range ipv6Schemes {
		if testing.Short() && i%6 > 0 {
			continue // as in TestOracle
		}
		t.Run(name, func(t *testing.T) {
			row, err := codegen.Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			params := oracleParams(row, i)
			params.IPv6 = true
			program, text := generate(t, row, params)
			text = rigged(t, text)
			config := compile(t, name, text)
			checkManifest(t, program.Manifest, config)
			tr := newRigTraffic(program.Manifest, program.Manifest.Paths, uint64(i))
			tr.ipv6 = true
			judge(t, filepath.Join(ipv6Dir, name+".txt.gz"), tr, config, text)
		})
	}
}

// rlbForms are parameters that change the program of RLB.
var rlbForms = []struct{ scheme, set string }{
	{"letflow+rlb", "suboptimal=random"},
	{"presto+rlb", "suboptimal=turn"},
	{"drill+rlb", "relay=2"},
}

// formsDir contains simple_switch's results for them.
const formsDir = "../testdata/oracle/forms"

// TestOracleForms is TestOracle for these programs.
func TestOracleForms(t *testing.T) {
	for i, f := range rlbForms {
		t.Run(f.set, func(t *testing.T) {
			row, err := codegen.Parse(f.scheme)
			if err != nil {
				t.Fatal(err)
			}
			params := oracleParams(row, i)
			set := strings.SplitN(f.set, "=", 2)
			params.Set[set[0]] = set[1]
			program, text := generate(t, row, params)
			text = rigged(t, text)
			judge(t, filepath.Join(formsDir, f.scheme+"-"+f.set+".txt.gz"), newRigTraffic(program.Manifest, program.Manifest.Paths, uint64(i)), compile(t, f.scheme, text), text)
		})
	}
}

// judge compares the embedded switch with the record in a file, which it makes first if
// SIMPLE_SWITCH is set.
func judge(t *testing.T, file string, tr *rigTraffic, config *bmv2.Config, text string) {
	t.Helper()
	if dir := os.Getenv("SIMPLE_SWITCH"); dir != "" {
		record(t, dir, file, tr.manifest, config, text, tr)
	} else {
		t.Parallel()
	}
	replay(t, file, tr.manifest.Queues, config, text)
}

// replay compares the embedded switch with a record.
func replay(t *testing.T, file string, queues int, config *bmv2.Config, text string) {
	t.Helper()
	lines := readRecord(t, file)
	e := newEmbedded(t, config, queues)
	var commands []string
	packets := 0
	for i := 0; i < len(lines); i++ {
		f := strings.Fields(lines[i])
		switch f[0] {
		case "#":
		case "digest":
			if f[1] != digest(text) {
				t.Fatalf("%s: the program is no longer the one that was recorded", file)
			}
		case ">":
			if err := e.commands(commands); err != nil {
				t.Fatal(err)
			}
			commands = nil
			packets++
			i = replayPacket(t, e, lines, i)
		case "set":
			if err := e.set(f[1], number(t, f[2]), uint64(number(t, f[3]))); err != nil {
				t.Fatal(err)
			}
		case "=":
			compareCells(t, e, f)
		default:
			commands = append(commands, lines[i])
		}
	}
	if packets != oraclePackets {
		t.Errorf("%d packets", packets)
	}
}

// replayPacket sends the packet of a line, compares the output with the following
// lines, and returns the index of the last of them.
func replayPacket(t *testing.T, e *embedded, lines []string, i int) int {
	t.Helper()
	f := strings.Fields(lines[i])
	got, err := e.send(uint32(number(t, f[1])), packed(t, f[2]), 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []leaving
	for i+1 < len(lines) && strings.HasPrefix(lines[i+1], "< ") {
		i++
		w := strings.Fields(lines[i])
		want = append(want, leaving{uint32(number(t, w[1])), string(packed(t, w[2]))})
	}
	if !slices.Equal(got, want) {
		t.Errorf("line %d, packet at port %s:\n%s\nleaves simple_switch as\n%sand here as\n%s", i+1, f[1], f[2], leavings(want), leavings(got))
	}
	return i
}

// compareCells compares a register with a line of INDEX:VALUE pairs for non-zero
// cells.
func compareCells(t *testing.T, e *embedded, f []string) {
	t.Helper()
	cells, err := e.cells(f[1])
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(cellList(cells), " "), strings.Join(f[2:], " "); got != want {
		t.Errorf("register %s has on simple_switch\n%s\nand here\n%s", f[1], want, got)
	}
}

func cellList(cells []uint64) []string {
	var list []string
	for i, v := range cells {
		if v != 0 {
			list = append(list, fmt.Sprintf("%d:%d", i, v))
		}
	}
	return list
}

func leavings(list []leaving) string {
	var b strings.Builder
	for _, l := range list {
		fmt.Fprintf(&b, "< %d %s\n", l.port, pack([]byte(l.data)))
	}
	return b.String()
}

func readRecord(t *testing.T, file string) []string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// pack writes a packet.
func pack(b []byte) string {
	short := bytes.TrimRight(b, "\x00")
	if len(b)-len(short) < 4 {
		return hex.EncodeToString(b) + "+0"
	}
	return fmt.Sprintf("%x+%d", short, len(b)-len(short))
}

func packed(t *testing.T, s string) []byte {
	t.Helper()
	digits, zeros, _ := strings.Cut(s, "+")
	b, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal(err)
	}
	return append(b, make([]byte, number(t, zeros))...)
}
