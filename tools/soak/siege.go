package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/prototext"
)

// A siege is an attack by clients on a running switch while its primary keeps
// writing. The time of these writes has a limit too.
type siege struct {
	name string
	run  func(*p4rtTarget) error // runs until the time is over
	chip func(*bfrtTarget) error // the same for a switch that serves BfRt
	page func(*pageTarget) error // the same for a page
	tls  bool                    // clients of P4Runtime use TLS
	near bool                    // the reader of the page uses the attackers' address
	// convoy measures packets instead of writes.
	convoy bool
	// memory is the limit of the short form in MiB if it is not 200.
	memory int64
}

func allSieges() []siege {
	return slices.Concat(sieges(), floodSieges(), chipSieges(), pageSieges(), convoySieges())
}

// title returns the name of a siege with its kind of target.
func (s *siege) title() string {
	switch {
	case s.chip != nil:
		return "switch --bfrt: " + s.name
	case s.page != nil:
		return "page: " + s.name
	case s.convoy:
		return "a thousand packets: " + s.name
	}
	return "switch: " + s.name
}

// A target is an attacked server with a client that keeps changing something.
// As a context it ends with the server, and for attackers with the time of the
// attack.
type target interface {
	context.Context
	// build writes the program into a folder and returns the command that
	// starts the server.
	build(binary, dir string) (*exec.Cmd, error)
	// find takes the addresses of the server and reads the program from the
	// folder.
	find(dir string, addresses []string) error
	// open connects the client and adds the given number of entries.
	open(entries int, patience time.Duration) error
	// change makes one change.
	change(context.Context) error
}

// A p4rtTarget is an attacked switch that serves P4Runtime and Thrift.
type p4rtTarget struct {
	context.Context
	p4runtime, thrift string // its addresses
	tls               bool
	program           *p4v1.ForwardingPipelineConfig
	primary           p4v1.P4RuntimeClient
	ids               map[string]uint32
}

const besieged = `#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> a; bit<32> b; }
@controller_header("packet_out") header out_t { bit<16> port; }
struct H { out_t head; h_t h; }
struct M { bit<32> m; }
parser P(packet_in pkt, out H hdr, inout M meta, inout standard_metadata_t std) {
    state start { transition select(std.ingress_port) { 255: controller; default: rest; } }
    state controller { pkt.extract(hdr.head); transition rest; }
    state rest { pkt.extract(hdr.h); transition accept; }
}
control V(inout H hdr, inout M meta) { apply {} }
control I(inout H hdr, inout M meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets) seen;
    action forward(bit<9> port) { std.egress_spec = port; seen.count(); }
    table routes { key = { hdr.h.a: lpm; } actions = { forward; NoAction; } default_action = NoAction; counters = seen; size = 1048576; }
    apply { digest<h_t>(1, hdr.h); routes.apply(); }
}
control E(inout H hdr, inout M meta, inout standard_metadata_t std) { apply {} }
control D(packet_out pkt, in H hdr) { apply { pkt.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
`

// electionID is the election id of the attacked switch's primary.
var electionID = &p4v1.Uint128{Low: 100}

// target returns the target of a siege and the function that attacks it.
func (s *siege) target(over context.Context) (target, func() error) {
	switch {
	case s.chip != nil:
		c := &bfrtTarget{Context: over}
		return c, func() error { return s.chip(c) }
	case s.page != nil:
		g := &pageTarget{Context: over, near: s.near}
		return g, func() error { return s.page(g) }
	}
	w := &p4rtTarget{Context: over, tls: s.tls}
	attack := func() error { return s.run(w) }
	if s.convoy {
		return &packetTarget{p4rtTarget: w}, attack
	}
	return w, attack
}

// lay attacks a switch with the given number of routes for a time.
func (s *siege) lay(binary string, l limits, length time.Duration, routes int) (o outcome) {
	dir, err := os.MkdirTemp("", "p4lb-soak-")
	if err != nil {
		return outcome{lost: err.Error()}
	}
	defer os.RemoveAll(dir)
	alive, dead := context.WithCancel(context.Background())
	defer dead()
	within, _ := s.target(alive)
	cmd, err := within.build(binary, dir)
	if err != nil {
		return outcome{lost: err.Error()}
	}
	var addresses []string
	for _, option := range []string{"--grpc", "--thrift", "--bfrt", "--listen"} {
		if at := slices.Index(cmd.Args, option); at >= 0 {
			addresses = append(addresses, cmd.Args[at+1])
		}
	}
	if c, ok := within.(io.Closer); ok {
		defer c.Close()
	}
	if err := within.find(dir, addresses); err != nil {
		return outcome{lost: err.Error()}
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return outcome{lost: err.Error()}
	}
	ended := make(chan struct{})
	go func() { defer close(ended); cmd.Wait(); dead() }()
	defer func() { cmd.Process.Kill(); <-ended }()
	interrupted := false
	fail := func(format string, args ...any) outcome {
		o.lost = fmt.Sprintf(format, args...)
		if alive.Err() != nil && !interrupted {
			<-ended // its output is complete
			o.lost = fmt.Sprintf("it crashed: %s: %.300s", o.lost, &said)
		}
		return o
	}
	if err := within.open(routes, l.time); err != nil {
		return fail("%v", err)
	}
	packets, convoyed := within.(*packetTarget)
	var work func() time.Duration // returns the CPU time of the switch for packets; nil if there are none
	var before time.Duration      // CPU time before the attack
	if convoyed {
		work = packets.work(cmd.Process.Pid)
	}
	calm, cancel := context.WithTimeout(alive, length/3)
	defer cancel()
	if o.quiet, err = s.changes(calm, within, l.time); err != nil {
		return fail("a write: %v", err)
	}
	if convoyed {
		before, work = work(), packets.work(cmd.Process.Pid)
	}
	raise, err := s.begin(dir, addresses, l.time)
	if err != nil {
		return fail("%v", err)
	}
	ctx, cancel := context.WithTimeout(alive, length)
	defer cancel()
	o.writes, err = s.changes(ctx, within, l.time)
	if convoyed {
		o.note = fmt.Sprintf("switch %v CPU, under attack %v ", before.Round(100*time.Microsecond), work().Round(100*time.Microsecond))
	}
	attacked := raise()
	if err != nil {
		return fail("a write: %v", err)
	}
	if attacked != nil {
		return fail("%v", attacked)
	}
	if alive.Err() != nil {
		return fail("under attack")
	}
	o.memory = residentPeak(cmd.Process.Pid)
	interrupted = true
	cmd.Process.Signal(os.Interrupt)
	select {
	case <-ended:
	case <-time.After(l.time):
		return fail("it does not end")
	}
	o.took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	switch {
	case died(said.String()):
		return fail("it crashed: %.300s", &said)
	case o.memory > l.memory:
		return fail("exceeds the memory limit")
	case s.convoy && s.name != elsewhere && l.packets > 0 && o.writes.Seconds() > l.packets*o.quiet.Seconds():
		return fail("packets take too long")
	case s.convoy:
	case o.writes > l.write && !s.near, o.writes > 10*l.write:
		return fail("writes under attack take too long")
	}
	return o
}

// besieger as first argument makes this program run the attackers of a siege.
// They have their own process, so writes wait for the switch and not for
// attackers in the same process.
const besieger = "besiege"

// begin starts the attack. raise ends it and returns its error.
func (s *siege) begin(dir string, addresses []string, patience time.Duration) (raise func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	crowd := exec.Command(self, append([]string{besieger, s.title(), dir}, addresses...)...)
	over, err := crowd.StdinPipe()
	if err != nil {
		return nil, err
	}
	here, err := crowd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var said bytes.Buffer
	crowd.Stderr = &said
	if err := crowd.Start(); err != nil {
		return nil, err
	}
	// Starting the process does not count as time of the attack. If it ends
	// immediately, raise returns its error.
	here.Read(make([]byte, 1))
	return func() error {
		over.Close()
		late := time.AfterFunc(patience, func() { crowd.Process.Kill() })
		defer late.Stop()
		if err := crowd.Wait(); err != nil {
			return fmt.Errorf("%v: %.300s", err, &said)
		}
		return nil
	}, nil
}

// besiege attacks until the end of standard input. The arguments are the
// siege's title, a folder and the target's addresses.
func besiege(args []string) error {
	title, dir, addresses := args[0], args[1], args[2:]
	list := allSieges()
	at := slices.IndexFunc(list, func(s siege) bool { return s.title() == title })
	// A deadline would be sent to the switch, which could then end a call
	// slightly before this side knows that the time is over.
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	within, attack := list[at].target(ctx)
	if err := within.find(dir, addresses); err != nil {
		return err
	}
	fmt.Println() // the attack begins
	return attack()
}

// outputs are the compiled programs, shared by all sieges.
var outputs = map[string]map[string][]byte{}

// compiled writes a program as x.p4 and its compiled files into a folder. It
// compiles each program once.
func compiled(binary, dir, program string, options ...string) error {
	key := binary + "\n" + program
	if outputs[key] == nil {
		if err := os.WriteFile(filepath.Join(dir, "x.p4"), []byte(program), 0o644); err != nil {
			return err
		}
		cmd := exec.Command(binary, append([]string{"compile", "x.p4"}, options...)...)
		cmd.Dir = dir
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("compiling: %s", text)
		}
		outputs[key] = filesBelow(dir)
	}
	for name, text := range outputs[key] {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (w *p4rtTarget) build(binary, dir string) (*exec.Cmd, error) {
	if err := compiled(binary, dir, besieged, "-o", "x.json", "--p4info", "x.txtpb"); err != nil {
		return nil, err
	}
	args := []string{"switch", "--cpu-port", "255"}
	for _, option := range []string{"--grpc", "--thrift"} {
		address, err := freePort()
		if err != nil {
			return nil, err
		}
		args = append(args, option, address)
	}
	if w.tls {
		cert, key, err := certificate(dir)
		if err != nil {
			return nil, err
		}
		args = append(args, "--tls-cert", cert, "--tls-key", key)
	}
	return exec.Command(binary, args...), nil
}

func (w *p4rtTarget) find(dir string, addresses []string) error {
	program, err := os.ReadFile(filepath.Join(dir, "x.json"))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "x.txtpb"))
	if err != nil {
		return err
	}
	info := new(configv1.P4Info)
	if err := prototext.Unmarshal(text, info); err != nil {
		return err
	}
	w.p4runtime, w.thrift = addresses[0], addresses[1]
	w.program, w.ids = &p4v1.ForwardingPipelineConfig{P4Info: info, P4DeviceConfig: program}, map[string]uint32{}
	for _, t := range info.Tables {
		w.ids[t.Preamble.Alias] = t.Preamble.Id
	}
	for _, a := range info.Actions {
		w.ids[a.Preamble.Alias] = a.Preamble.Id
	}
	for _, d := range info.Digests {
		w.ids["digest"] = d.Preamble.Id
	}
	var more []grpc.DialOption
	if w.tls {
		more = append(more, grpc.WithTransportCredentials(credentials.NewTLS(trusting)))
	}
	w.primary, err = dial(w.p4runtime, more...)
	return err
}

// ports counts the ports returned by freePort.
var ports atomic.Uint32

func init() { ports.Store(rand.Uint32N(10000)) }

// freePort returns an unused address, a different one each time. Its port is
// below the ephemeral range, so no other process gets it by chance before the
// server listens.
func freePort() (address string, err error) {
	for range 100 {
		address = fmt.Sprint("127.0.0.1:", 20000+ports.Add(1)%10000)
		var l net.Listener
		if l, err = net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", err
}

// dial returns a client with its own connection.
func dial(address string, more ...grpc.DialOption) (p4v1.P4RuntimeClient, error) {
	conn, err := grpc.NewClient("passthrough:"+address, append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30), grpc.MaxCallSendMsgSize(1<<30), grpc.WaitForReady(true)),
		grpc.WithMaxHeaderListSize(64 << 20),
	}, more...)...)
	if err != nil {
		return nil, err
	}
	return p4v1.NewP4RuntimeClient(conn), nil
}

// open connects as primary, sets the program and inserts the routes.
func (w *p4rtTarget) open(routes int, patience time.Duration) (err error) {
	stream, giveUp := context.WithCancel(w)
	late := time.AfterFunc(patience, giveUp)
	if _, err = w.claim(stream, w.primary, "", electionID); err != nil {
		return err
	}
	late.Stop()
	ctx, cancel := context.WithTimeout(w, patience)
	defer cancel()
	_, err = w.primary.SetForwardingPipelineConfig(ctx, &p4v1.SetForwardingPipelineConfigRequest{
		DeviceId: 1, ElectionId: electionID, Config: w.program, Action: p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT,
	})
	if err != nil {
		return err
	}
	for at := 0; at < routes; at += 10000 {
		var list []*p4v1.Update
		for i := range min(10000, routes-at) {
			list = append(list, &p4v1.Update{Type: p4v1.Update_INSERT, Entity: w.route(uint32(at + i))})
		}
		if _, err := w.primary.Write(ctx, w.batch(list...)); err != nil {
			return err
		}
	}
	return nil
}

// claim opens a stream with a role and an election id and waits for the answer.
func (w *p4rtTarget) claim(ctx context.Context, c p4v1.P4RuntimeClient, role string, id *p4v1.Uint128) (p4v1.P4Runtime_StreamChannelClient, error) {
	stream, err := c.StreamChannel(ctx)
	if err != nil {
		return nil, err
	}
	m := &p4v1.MasterArbitrationUpdate{DeviceId: 1, ElectionId: id}
	if role != "" {
		m.Role = &p4v1.Role{Name: role}
	}
	if err := stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{Arbitration: m}}); err != nil {
		return nil, err
	}
	_, err = stream.Recv()
	return stream, err
}

func (w *p4rtTarget) route(i uint32) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{
		TableId: w.ids["routes"],
		Match: []*p4v1.FieldMatch{{FieldId: 1, FieldMatchType: &p4v1.FieldMatch_Lpm{
			Lpm: &p4v1.FieldMatch_LPM{Value: bytes.TrimLeft(binary.BigEndian.AppendUint32(nil, i+1<<24), "\x00"), PrefixLen: 32},
		}}},
		Action: &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: &p4v1.Action{
			ActionId: w.ids["forward"], Params: []*p4v1.Action_Param{{ParamId: 1, Value: []byte{2}}},
		}}},
	}}}
}

func (w *p4rtTarget) batch(list ...*p4v1.Update) *p4v1.WriteRequest {
	return &p4v1.WriteRequest{DeviceId: 1, ElectionId: electionID, Updates: list}
}

// change inserts and deletes a route as the primary.
func (w *p4rtTarget) change(ctx context.Context) error {
	e := w.route(1 << 25)
	_, err := w.primary.Write(ctx, w.batch(&p4v1.Update{Type: p4v1.Update_INSERT, Entity: e}, &p4v1.Update{Type: p4v1.Update_DELETE, Entity: e}))
	return err
}

// changes makes changes until the time is over, and returns the 99th percentile
// of their times. For packets, it returns the median of the means of eight
// rounds: a short burst of other work on the machine affects few of these.
func (s *siege) changes(over context.Context, b target, patience time.Duration) (time.Duration, error) {
	var list []time.Duration
	for pause := time.NewTicker(5 * time.Millisecond); over.Err() == nil; {
		ctx, cancel := context.WithTimeout(b, patience)
		began := time.Now()
		err := b.change(ctx)
		cancel()
		if err != nil {
			return 0, err
		}
		list = append(list, time.Since(began))
		<-pause.C
	}
	if len(list) == 0 {
		return 0, errors.New("no change completed in time")
	}
	if s.convoy {
		var means []time.Duration
		for part := range slices.Chunk(list, 8) {
			var sum time.Duration
			for _, d := range part {
				sum += d
			}
			means = append(means, sum/time.Duration(len(part)))
		}
		b.(*packetTarget).sent += len(list)
		slices.Sort(means)
		return means[len(means)/2], nil
	}
	slices.Sort(list)
	return list[len(list)*99/100], nil
}
