package testbed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/netspace"
	"github.com/vishvananda/netns"
)

// A bed is a deployment that this process holds.
type bed struct {
	o        Options
	name     string // name returned by nameOf
	lock     *os.File
	note     note
	switches []*node
	noDelays sync.Once // logs only once that delays are not supported

	links *fabric.Topology // current state of the links

	answerers []*netspace.Answerer // answer requests for virtual addresses
}

// A note describes a deployment for the next process.
type note struct {
	Topology string                    `json:"topology"` // topology with all links up
	MTU      int                       `json:"mtu"`
	Known    netspace.Known            `json:"known"`             // initial knowledge of the hosts
	Virtual  map[netip.Addr]fabric.MAC `json:"virtual,omitempty"` // addresses of programs
	Block    int                       `json:"block"`             // number of the address block
	Queues   map[string]knownQueue     `json:"queues,omitempty"`
}

// A knownQueue is the configuration of a switch's queues, valid while the process
// runs.
type knownQueue struct {
	PID    int          `json:"pid"`
	Queues []plan.Queue `json:"queues"`
}

// openBed takes over the network of the plan, or builds it if it does not exist.
// Its switches need not be running.
func openBed(o Options, p *plan.Plan) (*bed, error) {
	name := cmp.Or(o.Name, p.Topology.Name)
	b := &bed{o: o, name: nameOf(name)}
	var err error
	if b.lock, err = takeLock(b.name); err != nil {
		return nil, err
	}
	if err := b.adoptOrBuild(p); err != nil {
		return nil, errors.Join(err, dropLock(b.lock, b.name))
	}
	for i, s := range p.Switches {
		address := management(b.note.Block, i, 1).String()
		n := &node{
			bed: b, plan: s, ports: p.Topology.Ports(s.Name),
			grpc: net.JoinHostPort(address, grpcPort), thrift: net.JoinHostPort(address, thriftPort),
		}
		n.remote = target.NewThrift(n.thrift)
		b.switches = append(b.switches, n)
	}
	if err := b.answer(p.Topology); err != nil {
		return nil, errors.Join(err, b.close(true))
	}
	return b, b.findProcesses()
}

// answer responds to the requests of hosts for the MACs of virtual addresses.
func (b *bed) answer(t *fabric.Topology) error {
	for i := range t.Hosts {
		h := &t.Hosts[i]
		own := netspace.OnLink(t, h, b.note.Known, b.note.Virtual)
		if len(own) == 0 {
			continue
		}
		host, err := netspace.Open(namespace(b.name, h.Name))
		if err != nil {
			return err
		}
		defer host.Close()
		sw, err := netspace.Open(namespace(b.name, h.Switch))
		if err != nil {
			return err
		}
		defer sw.Close()
		a, err := netspace.Answer(netspace.End{Space: host, Name: netspace.HostPort}, netspace.End{Space: sw, Name: netspace.PortName(h.Port)}, own)
		if err != nil {
			return err
		}
		b.answerers = append(b.answerers, a)
	}
	return nil
}

func (b *bed) adoptOrBuild(p *plan.Plan) error {
	b.o.Known = b.o.Known.In(p.ByMAC())
	want := note{Topology: bare(p.Topology), MTU: p.Options.MTU, Known: b.o.Known, Virtual: p.VirtualAddresses()}
	if had, err := readNote(b.name); err == nil && had.Topology == want.Topology && had.MTU == want.MTU && had.Known == want.Known && maps.Equal(had.Virtual, want.Virtual) && complete(b.name, p.Topology) {
		b.o.Log.Info("taking over", "deployment", b.name)
		b.note = *had
		return nil
	}
	found, err := remove(b.name)
	if err != nil {
		return err
	}
	if found {
		b.o.Log.Info("removed the remains of an earlier run", "deployment", b.name)
	}
	if want.Block, err = freeBlock(b.name); err != nil {
		return err
	}
	b.note = want
	if err := b.build(p); err != nil {
		_, e := remove(b.name)
		return errors.Join(err, e)
	}
	if err := b.writeNote(); err != nil {
		return err
	}
	had, _ := os.ReadFile("/etc/hosts")
	if err := os.WriteFile(hostsFile(b.name), append(had, netspace.HostsFile(p.Topology)...), 0o644); err != nil {
		return fmt.Errorf("noting the names of hosts: %w", err)
	}
	return nil
}

// run starts the switches that are not running as planned, and waits for all.
func (b *bed) run(ctx context.Context, p *plan.Plan) error {
	errs := make([]error, len(b.switches))
	step := b.o.ClockStep
	b.o.ClockStep = 0
	var wg sync.WaitGroup
	for i, n := range b.switches {
		n.plan = p.Switches[i]
		wg.Go(func() {
			if n.fits() {
				err := n.ready(ctx)
				if err == nil || ctx.Err() != nil {
					errs[i] = err
					return
				}
				b.o.Log.Warn("a running switch does not answer and is restarted", "switch", n.plan.Name)
			}
			n.stop()
			if errs[i] = wait(ctx, time.Duration(len(b.switches)-1-i)*step); errs[i] == nil {
				errs[i] = n.start(ctx)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// wait waits, unless the context ends.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// close releases the deployment.
func (b *bed) close(keep bool) (err error) {
	defer func() { err = errors.Join(err, dropLock(b.lock, b.name)) }()
	for _, a := range b.answerers {
		a.Close()
	}
	b.note.Queues = map[string]knownQueue{}
	for _, n := range b.switches {
		if q := n.remote.KnownQueues(); len(q) > 0 && n.alive() {
			b.note.Queues[n.plan.Name] = knownQueue{n.pid(), q}
		}
		n.remote.Close()
		n.hangUp()
	}
	if keep {
		return b.writeNote()
	}
	_, err = remove(b.name)
	return err
}

// dir returns the folder for the files of a deployment.
func dir(name string) string { return filepath.Join(RunDir, name) }

// noteFile returns the file that allows another process to take a deployment over.
func noteFile(name string) string { return filepath.Join(dir(name), "note.json") }

// takeLock makes this process the only one that works on a deployment. The kernel releases the
// lock when the process ends.
func takeLock(name string) (*os.File, error) {
	for {
		if err := os.MkdirAll(RunDir, 0o755); err != nil {
			return nil, fmt.Errorf("noting the deployment: %w", err)
		}
		f, err := os.OpenFile(lockFile(name), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("noting the deployment: %w", err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
			return nil, &plan.Error{
				Err:  fmt.Errorf("deployment %s: %w", name, ErrBusy),
				Hint: "end that process, or give this deployment another name",
			}
		}
		// A process that has ended may have removed the file after it was opened.
		if mine, err := f.Stat(); err == nil {
			if there, err := os.Stat(lockFile(name)); err == nil && os.SameFile(mine, there) {
				return f, nil
			}
		}
		f.Close()
	}
}

func lockFile(name string) string { return dir(name) + ".lock" }

// dropLock releases the lock and removes its file.
func dropLock(f *os.File, name string) error {
	err := os.Remove(lockFile(name))
	return errors.Join(err, f.Close())
}

func readNote(name string) (*note, error) {
	text, err := os.ReadFile(noteFile(name))
	if err != nil {
		return nil, err
	}
	n := &note{}
	return n, json.Unmarshal(text, n)
}

func (b *bed) writeNote() error {
	text, err := json.Marshal(b.note)
	if err != nil {
		return fmt.Errorf("noting the deployment: %w", err)
	}
	if err := os.MkdirAll(dir(b.name), 0o755); err != nil {
		return fmt.Errorf("noting the deployment: %w", err)
	}
	// A process that is killed while writing leaves the previous note.
	part := noteFile(b.name) + ".part"
	if err := os.WriteFile(part, text, 0o600); err != nil {
		return fmt.Errorf("noting the deployment: %w", err)
	}
	if err := os.Rename(part, noteFile(b.name)); err != nil {
		return fmt.Errorf("noting the deployment: %w", err)
	}
	return nil
}

// remove removes everything with the name of a deployment: processes, namespaces
// and files. The kernel removes links with the namespaces, some time later. It
// waits at the end, so that an interrupt leaves nothing behind.
func remove(name string) (found bool, err error) {
	// Remove the note first, so that no process takes over a deployment that is
	// being removed.
	if err := os.Remove(noteFile(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("removing the note of the deployment: %w", err)
	}
	entries, err := os.ReadDir(namespaceDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("listing namespaces: %w", err)
	}
	var spaces []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix(name)) {
			spaces = append(spaces, e.Name())
		}
	}
	running, err := processes(spaces)
	if err != nil {
		return false, err
	}
	running.signal(unix.SIGTERM)
	for _, s := range spaces {
		// The kernel removes the namespace when its last process has ended.
		err := netns.DeleteNamed(s)
		if errors.Is(err, unix.EINVAL) { // nothing is mounted on the file
			err = os.Remove(filepath.Join(namespaceDir, s))
		}
		if err != nil {
			return true, fmt.Errorf("deleting namespace %s: %w", s, err)
		}
	}
	_, err = os.Stat(dir(name))
	found = err == nil || len(spaces) > 0
	if err := os.RemoveAll(dir(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return found, fmt.Errorf("removing the files of the deployment: %w", err)
	}
	// All processes get time to end after the signal.
	deadline := time.Now().Add(endTime)
	for running.signal(0) && time.Now().Before(deadline) {
		time.Sleep(pollEvery)
	}
	running.signal(unix.SIGKILL)
	return found, nil
}
