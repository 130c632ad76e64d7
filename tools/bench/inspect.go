package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/deployed"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// inspectScheme is the scheme with the most cells: four registers of 65,536 and
// five of 16,384.
const inspectScheme = "hermes+rlb-star"

// An inspectRig is a fabric of embedded switches to inspect.
type inspectRig struct {
	plan   *plan.Plan
	target *embedded.Target
	nodes  []*plan.Node
}

// newInspectRig starts the given number of leaves and two spines.
func newInspectRig(ctx context.Context, leaves int) (*inspectRig, error) {
	top, err := fabric.LeafSpine{Leaves: leaves, Spines: 2, Parallel: 2, Hosts: 1}.Make()
	if err != nil {
		return nil, err
	}
	plan, err := planOf(inspectScheme, codegen.Params{MaxPort: 64}, top)
	if err != nil {
		return nil, err
	}
	r := &inspectRig{plan: plan, target: embedded.New(embedded.Options{AnyPort: true}), nodes: plan.Nodes()}
	if _, err := controller.Deploy(ctx, plan, r.target, controller.DeployOptions{}); err != nil {
		r.target.Close()
		return nil, err
	}
	return r, nil
}

// occupy fills a quarter of the flow slots, as traffic would.
func occupy(ctx context.Context, n *plan.Node, regs registers.Access) error {
	for _, r := range n.Manifest.Registers {
		if r.Index == "flow" {
			if err := regs.Write(ctx, r.Name, 0, r.Size/4, 1<<15+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// Inspect measures how often registers can be read.
func Inspect(ctx context.Context, runs int) ([]Measurement, error) {
	r, err := newInspectRig(ctx, 18)
	if err != nil {
		return nil, fmt.Errorf("bringing switches up: %w", err)
	}
	defer r.target.Close()
	var list []Measurement
	for _, way := range r.ways() {
		m, err := r.measure(ctx, runs, way)
		if err != nil {
			return nil, fmt.Errorf("measuring %s: %w", way.name, err)
		}
		list = append(list, m)
	}
	m, err := r.watch(ctx, time.Duration(min(runs, 10))*time.Second)
	if err != nil {
		return nil, fmt.Errorf("measuring p4lb inspect: %w", err)
	}
	list = append(list, m)
	bmv2, err := benchInspectBMv2(ctx, runs, r)
	if err != nil {
		return nil, fmt.Errorf("measuring simple_switch: %w", err)
	}
	return append(list, bmv2...), nil
}

// A wayIn is a method of accessing the registers of a switch.
type wayIn struct {
	name, detail string
	open         func(ctx context.Context) (registers.Access, error)
}

// ways returns the methods for the first leaf.
func (r *inspectRig) ways() []wayIn {
	endpoint := func() (target.Endpoint, error) { return r.target.Endpoint(r.nodes[0].Name) }
	return []wayIn{
		{"direct", "in the process of the switch", func(context.Context) (registers.Access, error) {
			e, err := endpoint()
			return e.Registers, err
		}},
		{"thrift", "by Thrift over loopback, client and server in one process", func(context.Context) (registers.Access, error) {
			e, err := endpoint()
			return target.NewThrift(e.Thrift), err
		}},
		{"p4runtime", "by P4Runtime over loopback, client and server in one process", func(ctx context.Context) (registers.Access, error) {
			e, err := endpoint()
			if err != nil {
				return nil, err
			}
			return controller.NewPeek(ctx, e, 5*time.Second)
		}},
	}
}

// measure reads all registers of the first leaf repeatedly.
func (r *inspectRig) measure(ctx context.Context, runs int, way wayIn) (Measurement, error) {
	n := r.nodes[0]
	regs, err := way.open(ctx)
	if err != nil {
		return Measurement{}, err
	}
	if c, ok := regs.(interface{ Close() error }); ok {
		defer c.Close()
	}
	e, err := r.target.Endpoint(n.Name)
	if err != nil {
		return Measurement{}, err
	}
	if err := occupy(ctx, n, e.Registers); err != nil {
		return Measurement{}, err
	}
	return snapshots(ctx, runs, "inspect.embedded."+way.name, way.detail, n, regs)
}

// snapshots measures how often per second all registers of a switch can be read
// and explained.
func snapshots(ctx context.Context, runs int, name, detail string, n *plan.Node, regs registers.Access) (Measurement, error) {
	in, err := inspect.New(n, regs, inspect.Options{Everything: true})
	if err != nil {
		return Measurement{}, err
	}
	cells := 0
	for _, reg := range n.Manifest.Registers {
		cells += reg.Size
	}
	spent, err := repeat(ctx, runs, 2*time.Second, monotonic(), func() error {
		_, err := in.Snapshot(ctx)
		return err
	})
	if err != nil {
		return Measurement{}, err
	}
	return Measurement{
		Name: name, Value: 1 / median(spent).Seconds(), Unit: "snapshots/s",
		Detail: fmt.Sprintf("all registers of a leaf with %s (%d cells), %s, median of %d", n.Manifest.Scheme, cells, detail, len(spent)),
	}, nil
}

// watch measures the cost of watching 20 switches with p4lb inspect: reading
// them by Thrift twice a second and generating the displayed frames.
func (r *inspectRig) watch(ctx context.Context, watchTime time.Duration) (Measurement, error) {
	dir, err := os.MkdirTemp("", "p4lb-bench-")
	if err != nil {
		return Measurement{}, err
	}
	defer os.RemoveAll(dir)
	state := filepath.Join(dir, "deployed.json")
	if err := deployed.New(r.plan, r.target).Write(state); err != nil {
		return Measurement{}, err
	}
	u, err := start(ctx, 1, "", "inspect", "--state", state, "--listen", "127.0.0.1:0", "--for", watchTime.String(), "-q")
	if err != nil {
		return Measurement{}, err
	}
	return Measurement{
		Name: "inspect.watch", Value: 100 * u.busy[0].Seconds() / watchTime.Seconds(), Unit: "% of a core",
		Detail: fmt.Sprintf("p4lb inspect on %d switches with %s, by Thrift, twice a second, tables of flows every %v: CPU time of its process in %v",
			len(r.nodes), inspectScheme, inspect.FlowsEvery(len(r.nodes)), watchTime),
	}, nil
}

// benchInspectBMv2 measures simple_switch if it is installed.
func benchInspectBMv2(ctx context.Context, runs int, r *inspectRig) ([]Measurement, error) {
	path, err := exec.LookPath("simple_switch")
	if err != nil {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "p4lb-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	n := r.nodes[0]
	program := filepath.Join(dir, "p.json")
	if err := os.WriteFile(program, r.plan.Switch(n.Name).Pipeline.Config, 0o644); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, "--thrift-port", strconv.Itoa(port), "--log-level", "off", "--notifications-addr", "ipc://"+program+".ipc", program)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	regs := target.NewThrift(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	defer regs.Close()
	if err := awaitClock(ctx, regs); err != nil {
		return nil, err
	}
	if err := occupy(ctx, n, regs); err != nil {
		return nil, err
	}
	m, err := snapshots(ctx, runs, "inspect.bmv2.thrift", "by Thrift from simple_switch", n, regs)
	return []Measurement{m}, err
}

// freePort returns an unused port.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// awaitClock waits until a switch answers.
func awaitClock(ctx context.Context, regs registers.Access) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := regs.Clock(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}
