package bench

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/vishvananda/netns"

	"github.com/p4lb/p4lb/examples"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/device/ports"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/netspace"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// vethBenches are the programs measured between interfaces.
var vethBenches = []string{"router", "flowlet"}

const (
	// vethWindow is the maximum number of packets between sender and receiver.
	// It keeps the switch busy without losses.
	vethWindow = 256
	// vethSlice is the time for which a switch gets packets before it is the
	// other's turn.
	vethSlice = 100 * time.Millisecond
	// vethPatience is how long the receiver waits for packets before they count
	// as lost.
	vethPatience = 20 * time.Millisecond
	// vethStall is the time without packets after which the measurement fails.
	vethStall = 10 * time.Second
)

// Interfaces measures switch processes that forward packets between two veth
// interfaces: p4lb switch and, if it is installed, simple_switch, in turns.
func Interfaces(ctx context.Context, runs int) ([]Measurement, error) {
	dir, err := os.MkdirTemp("", "p4lb-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var list []Measurement
	for _, name := range vethBenches {
		for _, size := range []int{64, 1500} {
			more, err := benchVethProgram(ctx, dir, name, size, min(runs, 5))
			if err != nil {
				return nil, fmt.Errorf("measuring %s between interfaces: %w", name, err)
			}
			list = append(list, more...)
		}
	}
	more, err := benchNetwork(ctx, runs)
	return append(list, more...), err
}

// benchVethProgram measures one program with packets of one size.
func benchVethProgram(ctx context.Context, dir, name string, size, runs int) ([]Measurement, error) {
	way, err := newVethWay(dir, name)
	if err != nil {
		return nil, err
	}
	way.packet = slices.Grow(way.packet, size)
	way.packet = way.packet[:max(size, len(way.packet))]
	self, err := executable()
	if err != nil {
		return nil, err
	}
	args := []string{self, "switch", "-q", "--load", way.program, "--grpc", "off"}
	rigs := []*vethRig{
		{way: way, who: "p4lb switch", args: args},
		{way: way, who: "p4lb switch with packet sockets", args: args, kind: "packet:"},
	}
	other, err := exec.LookPath("simple_switch")
	if err == nil {
		notify := "ipc://" + filepath.Join(dir, "notifications.ipc")
		rigs = append(rigs, &vethRig{way: way, who: "simple_switch", args: []string{other, "--notifications-addr", notify, way.program}})
	}
	for _, r := range rigs {
		defer r.close()
		if err := r.start(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", r.who, err)
		}
	}
	for range runs {
		for _, r := range rigs {
			if err := r.run(ctx, vethSlice); err != nil {
				return nil, fmt.Errorf("%s: %w", r.who, err)
			}
		}
	}
	head := fmt.Sprintf("veth.%s.%d", name, size)
	ours, sockets := median(rigs[0].rates), median(rigs[1].rates)
	list := []Measurement{{head, ours / 1e3, "kpkt/s", fmt.Sprintf(
		"p4lb switch with %s.p4 between veth interfaces, %d-byte packets, for a second of CPU time of its process, median of %d (by XDP where it can)", name, size, runs)},
		{head + ".packet_sockets", sockets / 1e3, "kpkt/s", "the same without XDP, in alternation"}}
	if len(rigs) == 2 {
		return list, nil
	}
	theirs := median(rigs[2].rates)
	return append(list,
		Measurement{head + ".simple_switch", theirs / 1e3, "kpkt/s", "simple_switch with the same JSON, in alternation; " + peerBuild(other)},
		Measurement{head + ".ratio", ours / theirs, "", "p4lb switch (" + ownBuild() + ") divided by simple_switch"}), nil
}

// A vethWay is the input of a measurement: the program, the packet, and the
// ports.
type vethWay struct {
	program string // the file with its JSON
	packet  []byte
	in      int
	outs    []int // possible output ports
}

// newVethWay uses the packet test of an example: its first packet, and its
// entries, which are written into the JSON, so that any switch runs with them
// without a control plane.
func newVethWay(dir, name string) (*vethWay, error) {
	engine, port, packet, err := switchBench{name: name}.load(0, dataplane.Options{})
	if err != nil {
		return nil, err
	}
	p, err := p4.Compile(examples.FS, name+".p4", p4.Options{})
	if err != nil {
		return nil, err
	}
	for _, pipe := range p.Config.Pipelines {
		for _, t := range pipe.Tables {
			entries, err := engine.Switch().Tables().Entries(t.Name)
			if err != nil {
				return nil, err
			}
			t.Entries = nil
			for _, e := range entries {
				t.Entries = append(t.Entries, fixedEntry(t, e))
			}
		}
	}
	w := &vethWay{program: filepath.Join(dir, name+".json"), packet: packet, in: int(port)}
	test, err := examples.FS.ReadFile(name + ".stf")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(test)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "expect" {
			out, err := strconv.Atoi(fields[1])
			if err != nil {
				return nil, err
			}
			w.outs = append(w.outs, out)
		}
	}
	w.outs = lists.Set(w.outs)
	return w, errors.Join(os.WriteFile(w.program, p.JSON(), 0o666),
		os.WriteFile(filepath.Join(dir, name+".p4info.txtpb"), p.P4InfoText(), 0o666))
}

// fixedEntry returns an entry as a const entry of a program.
func fixedEntry(t *bmv2.Table, e dataplane.Entry) *bmv2.Entry {
	word := func(b []byte) string { return "0x" + hex.EncodeToString(b) }
	entry := &bmv2.Entry{Priority: max(1, e.Priority), ActionEntry: &bmv2.ActionEntry{ActionData: []string{}}}
	for i, m := range e.Match {
		key := &bmv2.MatchKey{MatchType: t.Key[i].MatchType, Key: word(m.Value), PrefixLength: m.PrefixLen}
		if m.Mask != nil {
			key.Mask = word(m.Mask)
		}
		entry.MatchKey = append(entry.MatchKey, key)
	}
	for i, action := range t.Actions {
		if action == e.Target.Action.Name {
			entry.ActionEntry.ActionID = t.ActionIDs[i]
		}
	}
	for _, p := range e.Target.Action.Params {
		entry.ActionEntry.ActionData = append(entry.ActionEntry.ActionData, word(p))
	}
	return entry
}

// A vethRig is a switch process with interfaces in its own namespace, a sender
// at one interface and receivers at the others.
type vethRig struct {
	way  *vethWay
	who  string
	args []string // arguments of the switch, without interfaces
	kind string   // prefix of its ports

	space     *netspace.Space
	cmd       *exec.Cmd
	said      bytes.Buffer
	ended     chan struct{}
	sender    ports.Port
	sinks     []ports.Port
	receiving sync.WaitGroup
	received  atomic.Int64
	arrived   chan struct{} // signals that packets have arrived
	rates     []float64
}

// start creates the interfaces and the process, and waits for the first
// forwarded packet.
func (r *vethRig) start(ctx context.Context) (err error) {
	if r.space, err = netspace.New(""); err != nil {
		return err
	}
	if r.sender, err = r.pair(r.way.in); err != nil {
		return err
	}
	r.arrived = make(chan struct{}, 1)
	for _, port := range r.way.outs {
		sink, err := r.pair(port)
		if err != nil {
			return err
		}
		r.sinks = append(r.sinks, sink)
		r.receiving.Go(func() { sink.Receive(r.count) }) // run reports missing packets
	}
	if err := r.launch(); err != nil {
		return err
	}
	for deadline := time.Now().Add(vethStall); r.received.Load() == 0; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.ended:
			return fmt.Errorf("the process has ended: %s", strings.TrimSpace(r.said.String()))
		default:
		}
		if time.Now().After(deadline) {
			return errors.New("no packet was forwarded")
		}
		r.sender.Send(r.way.packet)
		if err := r.sender.Flush(); err != nil {
			return err
		}
		r.await(1)
	}
	return nil
}

// pair creates the interface of a port and opens its peer.
func (r *vethRig) pair(port int) (far ports.Port, err error) {
	name := netspace.PortName(port)
	a := netspace.End{Space: r.space, Name: name, MAC: fabric.MAC{2, 0, 0, 0, 0, byte(port)}, MTU: 1600}
	b := netspace.End{Space: r.space, Name: "far" + name, MAC: fabric.MAC{2, 0, 0, 0, 1, byte(port)}, MTU: 1600}
	if err := netspace.Join(a, b); err != nil {
		return nil, err
	}
	err = r.space.Do(func() error {
		far, err = ports.Open("packet:" + b.Name) // cheaper for the sender
		return err
	})
	return far, err
}

// count counts forwarded packets.
func (r *vethRig) count(list [][]byte) {
	r.received.Add(int64(len(list)))
	select {
	case r.arrived <- struct{}{}:
	default:
	}
}

// launch starts the process in the namespace. It ends with this process.
func (r *vethRig) launch() error {
	list := slices.Clone(r.args)
	for _, port := range append([]int{r.way.in}, r.way.outs...) {
		list = append(list, "-i", fmt.Sprintf("%d@%s%s", port, r.kind, netspace.PortName(port)))
	}
	r.cmd = exec.Command(list[0], list[1:]...)
	r.cmd.Stdout, r.cmd.Stderr = &r.said, &r.said
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	r.ended = make(chan struct{})
	started := make(chan error)
	go func() {
		defer close(r.ended)
		runtime.LockOSThread() // and never unlock it: nothing else must run on this thread
		err := netns.Set(r.space.NS)
		if err == nil {
			err = r.cmd.Start()
		}
		started <- err
		if err == nil {
			r.cmd.Wait()
		}
	}()
	return <-started
}

// run keeps the switch busy for a time, and records packets per second of its
// CPU time.
func (r *vethRig) run(ctx context.Context, span time.Duration) error {
	r.await(0)
	before, busy := r.received.Load(), processTimeOf(r.cmd.Process.Pid)
	sent := before
	// Other work on the machine may delay the switch for longer.
	waits := func(d time.Duration) bool { return d < span || r.received.Load() == before && d < vethStall }
	for began := time.Now(); waits(time.Since(began)); {
		if err := ctx.Err(); err != nil {
			return err
		}
		for ; sent-r.received.Load() < vethWindow; sent++ {
			r.sender.Send(r.way.packet)
		}
		if err := r.sender.Flush(); err != nil {
			return err
		}
		if !r.await(sent - vethWindow/2) {
			sent = r.received.Load() // packets that have not arrived by now are lost
		}
	}
	r.await(sent)
	received, spent := r.received.Load()-before, processTimeOf(r.cmd.Process.Pid)-busy
	if received == 0 || spent <= 0 {
		return errors.New("no packet was forwarded")
	}
	r.rates = append(r.rates, float64(received)/spent.Seconds())
	return nil
}

// await waits until the given number of packets have arrived, or until none
// arrive for vethPatience.
func (r *vethRig) await(packets int64) bool {
	for r.received.Load() < packets {
		select {
		case <-r.arrived:
		case <-time.After(vethPatience):
			return false
		}
	}
	return true
}

// close ends the process; the interfaces are deleted with their namespace.
func (r *vethRig) close() {
	if r.cmd != nil && r.cmd.Process != nil {
		r.cmd.Process.Kill()
		<-r.ended
	}
	for _, p := range append(r.sinks, r.sender) {
		if p != nil {
			p.Close()
		}
	}
	r.receiving.Wait()
	if r.space != nil {
		r.space.Close()
	}
}

// processTimeOf returns the CPU time of all threads of a process.
func processTimeOf(pid int) time.Duration {
	const ofProcess = 2 // CPUCLOCK_SCHED, see clock_getcpuclockid(3)
	return clock(int32(^pid<<3 | ofProcess))
}
