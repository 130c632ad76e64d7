// Package serve implements the verb switch, which runs a switch as a process.
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/device/ports"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/p4app"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/server/bfrt"
	"github.com/p4lb/p4lb/internal/server/gate"
	"github.com/p4lb/p4lb/internal/server/p4rt"
	"github.com/p4lb/p4lb/internal/server/thrift"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// off disables a server, in place of its address.
const off = "off"

// New returns the verb switch.
func New(c *cli.Console) *cobra.Command {
	j := &switchJob{c: c}
	cmd := &cobra.Command{
		SuggestFor: []string{"serve", "bmv2"},
		Use:        "switch [-i PORT@WHERE]... [--load PROG]",
		Short:      "Run the embedded switch in real time for P4Runtime clients",
		Long: `Switch runs a program until it is interrupted: the program sent by a P4Runtime
client as BMv2 JSON, or the one given with --load. It forwards packets between
its ports:

  -i 1@veth1                     port 1 is a network interface (requires root)
  -i 1@packet:veth1              same, shared with the machine's network stack
  -i 1@offload:veth1             same, for a host that leaves checksums and TCP
                                 segmentation to the other end
  -i 2@udp:127.0.0.1:5002,127.0.0.1:6002
                                 port 2 sends and receives UDP datagrams between a
                                 local and a remote address, one packet in each
  -i 3@pcap:in.pcap,out.pcap     port 3 plays one capture and records another;
                                 either may be omitted

--entries fills the tables of the --load program before packets flow. The file
contains commands of simple_switch_CLI (table_add, table_set_default,
mc_mgrp_create, mirroring_add, register_write and others) or the JSON of runtime
files in the P4 tutorials.

--restore-state restores the tables, action profiles and meters from a file with the
result of the Thrift call serialize_state, from this switch or from simple_switch.
Handles stay the same. The program must be the same: the state contains the digest of
its JSON. Registers and counters start again, and P4Runtime clients do not see the
entries.

A program for Tofino (TNA, T2NA) runs as on the chip, each port with the program of
its pipe. Ports 68 to 71 of each pipe, or port 6 on Tofino 2, recirculate. Queue
depths count cells. --load accepts its P4 source or the JSON of p4lb compile.

--bfrt serves the runtime interface of Intel's SDE instead of P4Runtime, like
bf_switchd at port 50052, for its Python client and packet tests. Each pipe then
has separate registers, counters, meters and entries. --program loads different
programs into the pipes:

  p4lb switch --bfrt 127.0.0.1:50052 --load tna_counter.p4 -i 0@veth0 -i 1@veth2
  p4lb switch --bfrt 127.0.0.1:50052 --program a.p4@0,2 --program b.p4@1,3

The default queues are the same as in simple_switch: 64 packets per port, with
unlimited rate. Hosts on veth interfaces must compute checksums and insert
VLAN tags in software: run ethtool -K DEV tx off txvlan off on the host's side.
With offload: only txvlan and tx-udp-segmentation must be off. The port cuts TCP
packets into segments before the program runs and combines them for the host,
which makes TCP two to three times faster.

The switch reads a network interface through XDP (AF_XDP), the most efficient way,
if the kernel, the permissions and the interface support it: one receive queue and
an MTU of at most 3818. The machine's own network stack then receives no packets
from the interface. Otherwise, and with packet:, the switch uses a packet socket
and shares the interface with the stack. With xdp: it fails unless XDP works.

With --grpc off, without --thrift and with only captures as ports, switch ends
after the last captured packet.

--thrift serves the Thrift interface of simple_switch, for simple_switch_CLI and
other clients. It has neither encryption nor passwords: any client that reaches
the address can read and change the whole switch. The address must therefore be on
this machine, unless --remote-plaintext allows others.

--enable-swap lets Thrift clients replace the program, like simple_switch --
--enable-swap. load_new_config_file loads a program beside the running one. Until
swap_configs, commands refer to the loaded program. The old program finishes the
packets in its queues, the new one processes all later packets. P4Runtime clients
must push a program again after a swap.

` + limitHelp,
		Example: `  p4lb switch -i 0@veth0 -i 1@veth2 --cpu-port 255
  p4lb switch --load router.p4 -i 0@pcap:in.pcap,out.pcap --grpc off
  p4lb switch --load basic.p4 --entries s1-runtime.json -i 1@veth0 -i 2@veth2
  p4lb switch --grpc 0.0.0.0:9559 --tls-cert s.crt --tls-key s.key --tls-ca ca.crt`,
		Args: cli.WantArgs(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := j.check(cmd); err != nil {
				return err
			}
			j.hasCPU = cmd.Flags().Changed("cpu-port")
			return j.run(cmd.Context())
		},
	}
	j.addFlags(cmd)
	return cmd
}

// A switchJob is one run of the switch verb.
type switchJob struct {
	c *cli.Console

	ports        []string
	load, p4info string
	entries      []string
	restore      string
	sources      p4.Options
	grpc, thrift string
	device       uint64
	cpuPort      uint32
	hasCPU       bool
	rate         uint64
	depth        int
	priorities   int
	seed         uint64
	rounds       int
	cert, key    string
	ca           string
	trace        string
	pcap         string
	plaintext    bool
	swap         bool
	limits       limits
	engine       cli.Engine
	bfrt         bfrtFlags
	loopback     []uint32 // nil: the chip's own
}

func (j *switchJob) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVarP(&j.ports, "port", "i", nil, "connect a port, as `PORT@WHERE` (repeatable)")
	f.StringVar(&j.load, "load", "", "start with the program in `FILE`, P4 or BMv2 JSON")
	f.StringVar(&j.p4info, "p4info", "", "read the P4Info of a JSON program, in text form, from `FILE` (default PROG.p4info.txtpb)")
	f.StringArrayVar(&j.entries, "entries", nil, "fill its tables from `FILE`: commands of simple_switch_CLI, or JSON (repeatable)")
	f.StringVar(&j.restore, "restore-state", "", "start with the tables, action profiles and meters in `FILE`, which serialize_state has saved")
	cli.AddSourceFlags(cmd, &j.sources)
	f.StringVar(&j.grpc, "grpc", "127.0.0.1:9559", "serve P4Runtime at `ADDR`, or off")
	f.Uint64Var(&j.device, "device-id", 1, "device id that clients must use")
	f.StringVar(&j.cert, "tls-cert", "", "serve over TLS with the certificate in `FILE`")
	f.StringVar(&j.key, "tls-key", "", "key of the certificate, in `FILE`")
	f.StringVar(&j.ca, "tls-ca", "", "accept only clients with a certificate signed by a CA in `FILE`")
	f.StringVar(&j.thrift, "thrift", off, "serve the Thrift interface of simple_switch at `ADDR`")
	f.BoolVar(&j.swap, "enable-swap", false, "let Thrift clients replace the program: load_new_config_file and swap_configs of simple_switch_CLI")
	cli.AddPlaintext(cmd, &j.plaintext, "Thrift")
	cmd.Flags().StringArrayVar(&j.limits.list, "limit", nil, "limit the resources of clients, as `NAME=N` (repeatable)")
	j.engine.AddFlag(cmd)
	j.bfrt.addFlags(cmd)
	f.Uint32Var(&j.cpuPort, "cpu-port", 0, "use `PORT` as the controller's port (default none)")
	f.Uint64Var(&j.rate, "rate", 0, "limit each queue to `N` packets per second (0: no limit)")
	f.IntVar(&j.depth, "depth", 64, "capacity of each queue in packets")
	f.IntVar(&j.priorities, "priorities", 1, "number of queues of each port")
	f.Uint64Var(&j.seed, "seed", 1, "seed of the random numbers")
	cli.AddRoundsFlag(cmd, &j.rounds)
	f.StringVar(&j.trace, "trace", "", "write a trace of all packets to `FILE`, as a JSON object per line")
	cli.AddPcapFlag(cmd, &j.pcap, "")
}

// check reports mistakes in the command line before the switch opens anything.
func (j *switchJob) check(cmd *cobra.Command) error {
	switch {
	case (j.cert == "") != (j.key == ""):
		return cli.UsageError(cmd, "--tls-cert and --tls-key go together")
	case j.ca != "" && j.cert == "":
		return cli.UsageError(cmd, "--tls-ca requires --tls-cert and --tls-key")
	case j.p4info != "" && j.load == "":
		return cli.UsageError(cmd, "--p4info requires --load")
	case len(j.entries) > 0 && j.load == "":
		return cli.UsageError(cmd, "--entries requires --load")
	case j.restore != "" && (j.load == "" || len(j.entries) > 0 || j.bfrt.address != ""):
		return cli.UsageError(cmd, "--restore-state requires --load, without --entries and --bfrt")
	case j.rounds <= 0:
		return cli.UsageError(cmd, "--rounds %d: want at least 1", j.rounds)
	case j.depth <= 0:
		return cli.UsageError(cmd, "--depth %d: want at least 1", j.depth)
	case j.priorities < 1 || j.priorities > 8:
		return cli.UsageError(cmd, "--priorities %d: want 1 to 8", j.priorities)
	}
	if err := j.limits.check(); err != nil {
		return cli.UsageError(cmd, "%w", err)
	}
	if err := j.bfrt.check(cmd, j); err != nil {
		return err
	}
	bfrt, compiled := j.bfrt.address != "", j.load != "" && filepath.Ext(j.load) != ".json"
	for _, p := range j.bfrt.programs {
		file, _, _ := strings.Cut(p, "@")
		compiled = compiled || filepath.Ext(file) != ".json"
	}
	if err := cmp.Or(
		cli.Requires(cmd, compiled, "a P4 program: --load FILE.p4", "include", "define"),
		cli.Requires(cmd, j.grpc != off || bfrt, "--grpc or --bfrt", "tls-cert"),
		cli.Requires(cmd, j.grpc != off || j.thrift != off, "--grpc or --thrift", "device-id"),
		cli.Requires(cmd, j.thrift != off, "--thrift", "remote-plaintext", "enable-swap"),
	); err != nil {
		return err
	}
	for _, limit := range j.limits.list {
		if ofThrift := strings.HasPrefix(limit, "thrift="); ofThrift && j.thrift == off || !ofThrift && j.grpc == off && !bfrt {
			return cli.UsageError(cmd, "--limit %s: this limit belongs to a server that is off", limit)
		}
	}
	if j.thrift != off {
		if err := cli.StaysHere("--thrift", "Thrift", j.thrift, j.plaintext); err != nil {
			return err
		}
	}
	taken := map[uint32]string{}
	for _, p := range j.ports {
		n, where, err := parsePort(p)
		if err == nil {
			err = ports.Check(where)
		}
		if other, ok := taken[n]; ok && err == nil {
			err = fmt.Errorf("port %d is already connected to %s", n, other)
		}
		if taken[n] = where; err != nil {
			return cli.UsageError(cmd, "-i %s: %w", p, err)
		}
	}
	return nil
}

// parsePort splits PORT@WHERE.
func parsePort(s string) (number uint32, where string, err error) {
	n, where, ok := strings.Cut(s, "@")
	v, err := strconv.ParseUint(n, 10, 9)
	switch {
	case !ok || where == "":
		return 0, "", errors.New("want PORT@INTERFACE, PORT@pcap:IN,OUT or PORT@udp:LOCAL,REMOTE")
	case err != nil:
		return 0, "", fmt.Errorf("port %q: want a number from 0 to 511", n)
	}
	return uint32(v), where, nil
}

// run opens everything, then serves until ctx ends. If opening fails, no packet
// has been forwarded.
func (j *switchJob) run(ctx context.Context) (err error) {
	s := &runningSwitch{c: j.c}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := j.open(s); err != nil {
		return err
	}
	return s.serve(ctx)
}

// A runningSwitch holds the open resources of a switchJob.
type runningSwitch struct {
	c        *cli.Console
	dev      *p4rt.Device
	server   *p4rt.Server
	bfrt     *server.Server
	thrift   *thrift.Server
	trace    *traceFile
	captures *ports.Captures

	grpcListener, thriftListener, bfrtListener net.Listener
	// finite is true if every port ends by itself.
	finite bool

	mu     sync.Mutex
	broken []error // errors of finite ports
}

func (j *switchJob) open(s *runningSwitch) (err error) {
	if j.bfrt.address != "" {
		return j.openBfRt(s)
	}
	options := p4rt.Options{DeviceID: j.device, Limits: j.limits.server, Log: j.c.Log}
	if options.TLS, err = j.tlsConfig(); err != nil {
		return err
	}
	program, info, err := j.c.Runnable(j.load, j.p4info, j.sources)
	if err != nil {
		return err
	}
	var entries []*p4app.Entries
	for _, file := range j.entries {
		e, err := j.c.Entries(file, info)
		if err != nil {
			return err
		}
		entries = append(entries, e)
	}
	if err := j.openDevice(s); err != nil {
		return err
	}
	if s.server, err = p4rt.NewServer(s.dev, options); err != nil {
		return err
	}
	if info != nil {
		if err := s.server.Load(program, info); err != nil {
			return fmt.Errorf("loading %s: %w", j.load, err)
		}
	}
	for _, e := range entries {
		if err := e.Apply(s.server, s.dev); err != nil {
			return err
		}
	}
	if err := j.restoreState(s); err != nil {
		return err
	}
	if err := j.listen(s); err != nil {
		return err
	}
	return j.openPorts(s)
}

// restoreState gives the switch the state in the file of --restore-state.
func (j *switchJob) restoreState(s *runningSwitch) error {
	if j.restore == "" {
		return nil
	}
	state, err := plain.ReadFile(j.restore)
	if err == nil {
		err = thrift.RestoreState(s.dev.Control(), s.dev.Program(), state)
	}
	if err != nil {
		return fmt.Errorf("restoring the state in %s: %w", j.restore, err)
	}
	return nil
}

func (j *switchJob) openDevice(s *runningSwitch) (err error) {
	options := p4rt.DeviceOptions{
		CPUPort: j.cpuPort, CPUZero: j.hasCPU, CPUIsPort: j.bfrt.address != "",
		Priorities: j.priorities, Rate: j.rate, Depth: j.depth, Seed: j.seed, Load: j.loadProgram,
		Log: func(line string) { j.c.Log.Info("log_msg", "text", line) },
	}
	if j.trace != "" {
		s.trace = &traceFile{name: j.trace}
		options.Trace = s.trace.event
	}
	s.dev, err = p4rt.NewDevice(options)
	return err
}

// loadProgram links a program for a switch that logs dropped packets without
// rounds left. A program with a loop drops every packet, so only the first few
// are logged.
func (j *switchJob) loadProgram(program []byte, o dataplane.Options) (*dataplane.Switch, error) {
	const most = 10
	said := 0
	o.Rounds, o.Loopback = j.rounds, j.loopback
	o.Endless = func(e dataplane.Ended) bool { j.c.Log.Warn(e.Endless()); return false }
	o.Ended = func(e dataplane.Ended) {
		if said++; said <= most {
			j.c.Log.Warn("packet dropped: no round left", "port", e.Port, "rounds", e.Rounds, "way", e.Way)
		}
		if said == most {
			j.c.Log.Warn("further packets without rounds left are not logged")
		}
	}
	return j.engine.Load(program, o)
}

func (j *switchJob) listen(s *runningSwitch) (err error) {
	if j.grpc != off {
		if s.grpcListener, err = net.Listen("tcp", j.grpc); err != nil {
			return cli.Refused("serving P4Runtime at "+j.grpc, err)
		}
		if j.cert == "" && fabric.Remote(s.grpcListener.Addr().String()) {
			j.c.Log.Warn("serving P4Runtime to other machines without TLS: any client can control the switch", "address", j.grpc)
		}
	}
	if j.thrift != off {
		if s.thriftListener, err = net.Listen("tcp", j.thrift); err != nil {
			return cli.Refused("serving Thrift at "+j.thrift, err)
		}
		s.thrift = thrift.NewServer(&switchPorts{Device: s.dev, names: map[uint32]string{}, given: j.ports, log: j.c.Log}, j.device)
		s.thrift.Limit(j.limits.thrift)
		if j.swap {
			s.thrift.AllowSwap()
		}
		s.thrift.LogTo(j.c.Log)
	}
	return nil
}

// openPorts connects the ports. It comes last, as ports forward packets
// immediately.
func (j *switchJob) openPorts(s *runningSwitch) error {
	s.finite = len(j.ports) > 0 && j.grpc == off && j.thrift == off && s.bfrt == nil
	var opened []ports.Port
	closeAll := func() {
		for _, o := range opened {
			o.Close()
		}
	}
	for _, text := range j.ports {
		_, where, _ := parsePort(text) // checked before
		p, err := ports.Open(where)
		if err != nil {
			closeAll()
			if strings.HasPrefix(where, "pcap:") {
				return fmt.Errorf("-i %s: %w", text, err)
			}
			return cli.Refused("-i "+text, err)
		}
		opened = append(opened, p)
		_, ends := p.(interface{ Finite() bool })
		s.finite = s.finite && ends
	}
	if err := j.openFiles(s); err != nil {
		closeAll()
		return err
	}
	joining := make([]p4rt.NewPort, len(opened))
	for i, p := range opened {
		number, where, _ := parsePort(j.ports[i])
		if s.captures != nil {
			tapped, err := s.captures.Tap(fmt.Sprintf("port%d", number), p)
			if err != nil {
				closeAll()
				return err
			}
			p = tapped
		}
		joining[i] = p4rt.NewPort{Number: number, Port: p, Failed: func(err error) {
			if s.finite {
				s.broke(fmt.Errorf("port %d: %w", number, err))
				return
			}
			j.c.Log.Error("port", "number", number, "error", err)
		}}
		j.c.Log.Debug("port", "number", number, "at", where)
	}
	if err := s.dev.AddPorts(joining...); err != nil {
		closeAll()
		return err
	}
	return nil
}

// openFiles creates the trace and capture files. It runs after everything else
// is open, so that a switch that fails to start leaves the files of an earlier
// one unchanged.
func (j *switchJob) openFiles(s *runningSwitch) (err error) {
	if s.trace != nil {
		if err := s.trace.begin(); err != nil {
			return err
		}
	}
	if j.pcap != "" {
		s.captures, err = ports.NewCaptures(j.pcap, j.c.CaptureFailed)
	}
	return err
}

// broke records the error that ended a finite port early.
func (s *runningSwitch) broke(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = append(s.broken, err)
}

// serve answers clients until ctx ends or a server fails. With finite ports and
// no server it returns when the captures have been played.
func (s *runningSwitch) serve(ctx context.Context) error {
	failed := make(chan error, 4)
	if s.grpcListener != nil {
		s.c.Log.Info("serving P4Runtime", "address", s.grpcListener.Addr())
		go func() { failed <- s.server.Serve(s.grpcListener) }()
	}
	if s.bfrtListener != nil {
		s.c.Log.Info("serving BfRt", "address", s.bfrtListener.Addr())
		go func() { failed <- s.bfrt.Serve(s.bfrtListener) }()
	}
	if s.thriftListener != nil {
		s.c.Log.Info("serving Thrift", "address", s.thriftListener.Addr())
		go func() { failed <- s.thrift.Serve(gate.Paced(s.thriftListener, s.dev.Busy)) }()
	}
	if s.finite {
		go func() {
			s.dev.Drain()
			s.mu.Lock()
			defer s.mu.Unlock()
			failed <- errors.Join(s.broken...)
		}()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// stopTime limits the wait for requests in progress when the switch stops.
const stopTime = 500 * time.Millisecond

// close closes all open resources.
func (s *runningSwitch) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if s.server != nil {
		s.server.Stop(ctx)
	}
	if s.bfrt != nil {
		s.bfrt.Stop(ctx)
	}
	for _, l := range []net.Listener{s.grpcListener, s.bfrtListener} {
		if l != nil {
			l.Close()
		}
	}
	if s.thrift != nil {
		s.thrift.Close()
		s.thriftListener.Close()
	}
	var errs []error
	if s.dev != nil {
		errs = append(errs, s.dev.Close())
	}
	if s.captures != nil {
		errs = append(errs, s.captures.Close())
	}
	if s.trace != nil {
		errs = append(errs, s.trace.close())
	}
	return errors.Join(errs...)
}
