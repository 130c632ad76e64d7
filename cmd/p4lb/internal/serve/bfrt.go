package serve

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/server/bfrt"
)

// bfrtFlags are the flags of the switch verb for BfRt.
type bfrtFlags struct {
	address  string
	info     string
	name     string
	programs []string
	pipes    int
	loops    []int
}

func (b *bfrtFlags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&b.address, "bfrt", "", "serve BfRt at `ADDR`, instead of P4Runtime")
	f.StringVar(&b.info, "bfrt-info", "", "read the BfRt schema of a JSON program from `FILE` (default PROG.bf-rt.json)")
	f.StringVar(&b.name, "p4-name", "", "`NAME` of the program for BfRt clients (default the name of its file)")
	f.StringArrayVar(&b.programs, "program", nil, "with --bfrt, load a program into these pipes, as `FILE@PIPE,...` (repeatable)")
	f.IntVar(&b.pipes, "pipes", 4, "with --bfrt, the number of pipes, `N`")
	f.IntSliceVar(&b.loops, "loop-pipes", nil, "with --bfrt, set all ports of these `PIPES` to loopback, like the inner pipes of a chip with 32 ports")
}

func (b *bfrtFlags) check(cmd *cobra.Command, j *switchJob) error {
	set := cmd.Flags().Changed
	if b.address == "" {
		return cli.Requires(cmd, false, "--bfrt", "bfrt-info", "p4-name", "program", "pipes", "loop-pipes")
	}
	switch {
	case set("grpc") && j.grpc != off:
		return cli.UsageError(cmd, "--bfrt and --grpc: want only one of them")
	case j.thrift != off:
		return cli.UsageError(cmd, "--bfrt and --thrift: want only one of them")
	case (j.load == "") == (len(b.programs) == 0):
		return cli.UsageError(cmd, "--bfrt requires --load, or --program for each set of pipes")
	case b.pipes < 1 || b.pipes > 4:
		return cli.UsageError(cmd, "--pipes %d: want 1 to 4", b.pipes)
	case b.info != "" && filepath.Ext(j.load) != ".json":
		return cli.UsageError(cmd, "--bfrt-info requires a JSON program: --load FILE.json")
	case b.name != "" && j.load == "":
		return cli.UsageError(cmd, "--p4-name requires --load")
	case set("p4info") || set("entries") || set("device-id"):
		return cli.UsageError(cmd, "--p4info, --entries and --device-id are for P4Runtime: --bfrt excludes them")
	}
	for _, p := range b.loops {
		if p < 0 || p >= b.pipes {
			return cli.UsageError(cmd, "--loop-pipes %d: want pipes from 0 to %d", p, b.pipes-1)
		}
	}
	for _, p := range b.programs {
		if _, _, err := pipesOf(p, b.pipes); err != nil {
			return cli.UsageError(cmd, "--program %s: %w", p, err)
		}
	}
	j.grpc = off
	return nil
}

// pipesOf splits FILE@PIPE,... and checks the pipes.
func pipesOf(s string, most int) (file string, pipes []int, err error) {
	file, list, ok := strings.Cut(s, "@")
	if !ok || file == "" {
		return "", nil, errors.New("want FILE and its pipes, as in a.p4@0,2")
	}
	for _, x := range strings.Split(list, ",") {
		n, err := strconv.Atoi(x)
		if err != nil || n < 0 || n >= most {
			return "", nil, fmt.Errorf("pipe %q: want a number from 0 to %d", x, most-1)
		}
		pipes = append(pipes, n)
	}
	return file, pipes, nil
}

// openBfRt opens a switch with a BfRt server.
func (j *switchJob) openBfRt(s *runningSwitch) error {
	programs, arch, err := j.bfrtPrograms()
	if err != nil {
		return err
	}
	if !j.hasCPU {
		j.cpuPort, j.hasCPU = cpuOf(arch), true
	}
	j.loopback = loopsOf(arch, j.bfrt.loops)
	tls, err := j.tlsConfig()
	if err != nil {
		return err
	}
	if err := j.openDevice(s); err != nil {
		return err
	}
	// Clients of the SDE send large reads and writes, so the default limits are
	// higher than for P4Runtime.
	limits := j.limits.server
	limits.MaxMessage = cmp.Or(limits.MaxMessage, 512<<20)
	limits.MaxUpdates = cmp.Or(limits.MaxUpdates, 1<<20)
	s.bfrt, err = server.New(s.dev, server.Options{Arch: arch, Pipes: j.bfrt.pipes, TLS: tls, Limits: limits, Log: j.c.Log})
	if err != nil {
		return err
	}
	if err := s.bfrt.Load(programs...); err != nil {
		return fmt.Errorf("loading %s: %w", j.load, err)
	}
	if s.bfrtListener, err = net.Listen("tcp", j.bfrt.address); err != nil {
		return cli.Refused("serving BfRt at "+j.bfrt.address, err)
	}
	if tls == nil && fabric.Remote(s.bfrtListener.Addr().String()) {
		j.c.Log.Warn("serving BfRt to other machines without TLS: any client can control the switch", "address", j.bfrt.address)
	}
	return j.openPorts(s)
}

// loopsOf returns the ports in loopback: the chip's own, and all ports of the
// given pipes. nil selects the chip's own.
func loopsOf(arch string, pipes []int) []uint32 {
	if len(pipes) == 0 {
		return nil
	}
	list := dataplane.Loopback(arch)
	for _, p := range pipes {
		for i := range uint32(72) {
			list = append(list, uint32(p)<<7|i)
		}
	}
	return list
}

// cpuOf returns the Ethernet port of the CPU.
func cpuOf(arch string) uint32 {
	if arch == bmv2.T2NA {
		return 2
	}
	return 64
}

// bfrtPrograms reads the programs of the pipes and returns their common
// architecture.
func (j *switchJob) bfrtPrograms() (list []server.Program, arch string, err error) {
	add := func(file string, pipes []int) error {
		binary, schema, a, err := j.bfrtProgram(file)
		if err != nil {
			return err
		}
		if arch != "" && a != arch {
			return fmt.Errorf("%s is a program for %s, another one for %s: want one architecture", cli.DisplayName(file), a, arch)
		}
		arch = a
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		if j.bfrt.name != "" && j.load != "" {
			name = j.bfrt.name
		}
		list = append(list, server.Program{Name: name, Schema: schema, Binary: binary, Pipes: pipes})
		return nil
	}
	if j.load != "" {
		err := add(j.load, nil)
		return list, arch, err
	}
	for _, p := range j.bfrt.programs {
		file, pipes, _ := pipesOf(p, j.bfrt.pipes) // checked before
		if err := add(file, pipes); err != nil {
			return nil, "", err
		}
	}
	return list, arch, nil
}

// bfrtProgram reads a program and its schema.
func (j *switchJob) bfrtProgram(file string) (binary, schema []byte, arch string, err error) {
	if filepath.Ext(file) == ".json" {
		if binary, err = j.c.ReadSource(file); err != nil {
			return nil, nil, "", err
		}
		name := j.bfrt.info
		if name == "" {
			name = strings.TrimSuffix(file, ".json") + ".bf-rt.json"
		}
		if schema, err = j.c.ReadSource(name); err != nil {
			return nil, nil, "", cli.Hinted(fmt.Errorf("loading %s: its BfRt schema is missing: %w", file, err), "name it with --bfrt-info, or put it into %s", name)
		}
		c, err := bmv2.Load(binary)
		if err != nil {
			return nil, nil, "", fmt.Errorf("loading %s: %w", cli.DisplayName(file), err)
		}
		arch = c.Chip()
	} else {
		p, err := j.c.CheckProgram(file, j.sources)
		if err != nil {
			return nil, nil, "", err
		}
		if err := p.Lower(); err != nil {
			return nil, nil, "", j.c.Diagnose(err)
		}
		if arch = p.Config.Chip(); arch == bmv2.TNA || arch == bmv2.T2NA {
			if err := p.DescribeBfRt(); err != nil {
				return nil, nil, "", j.c.Diagnose(err)
			}
			schema = p.Schema.JSON()
		}
		if err := j.c.Warn(p.Warnings, false); err != nil {
			return nil, nil, "", err
		}
		binary = p.JSON()
	}
	if arch != bmv2.TNA && arch != bmv2.T2NA {
		return nil, nil, "", fmt.Errorf("loading %s: this is a program for v1model: BfRt requires one for Tofino (tna, t2na)", cli.DisplayName(file))
	}
	return binary, schema, arch, nil
}
