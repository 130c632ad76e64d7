package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/cmd/p4lb/internal/view"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/deployed"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/controller/tofino"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A reach describes how a verb finds switches: by the state of a deployment, by a topology with a
// scheme, or by the address of a single switch.
type reach struct {
	state    string
	topology string
	request  schemeRequest

	grpc     string
	thrift   string
	bfrt     string
	device   uint64
	manifest string
	tls      clientTLS
}

// reachHelp explains how verbs find switches.
const reachHelp = `By default the command finds the switches of the network deployed from this
folder. Use --topology with --scheme for other switches that run a scheme at the
addresses of a topology. Use --manifest with --thrift, --grpc or --bfrt for a
single switch. Registers are read over Thrift if its address is known, otherwise
over P4Runtime or BfRt, which do not report the switch's clock.`

func (r *reach) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	addState(cmd, &r.state)
	f.StringVar(&r.topology, "topology", "", "use the switches of a `TOPOLOGY`, a file or a preset")
	r.request.addFlags(cmd)
	f.StringVar(&r.thrift, "thrift", "", "use the switch with a Thrift server at `ADDR`")
	f.StringVar(&r.grpc, "grpc", "", "use the switch with a P4Runtime server at `ADDR`")
	f.StringVar(&r.bfrt, "bfrt", "", "use the switch with a BfRt server at `ADDR`")
	f.Uint64Var(&r.device, "device-id", 1, "device id of that switch")
	f.StringVar(&r.manifest, "manifest", "", "manifest `FILE` of that switch's program")
	r.tls.addFlags(cmd)
	if err := cmd.RegisterFlagCompletionFunc("topology", cli.CompleteTopology); err != nil {
		panic(err) // the flag has just been defined
	}
}

// check returns an error for contradictory flags.
func (r *reach) check(cmd *cobra.Command, c *cli.Console) error {
	one := r.thrift != "" || r.grpc != "" || r.bfrt != ""
	scheme := r.request.Scheme != "" || r.request.File != ""
	if err := cli.Requires(cmd, one, "the address of a switch, --thrift, --grpc or --bfrt", "manifest", "device-id"); err != nil {
		return err
	}
	switch {
	case one && (r.topology != "" || scheme):
		return cli.UsageError(cmd, "--topology cannot be combined with the address of a switch")
	case r.bfrt != "" && (r.thrift != "" || r.grpc != ""):
		return cli.UsageError(cmd, "--bfrt cannot be combined with --thrift or --grpc")
	case one && r.manifest == "":
		return cli.UsageError(cmd, "--thrift, --grpc and --bfrt need --manifest, which describes the registers")
	case (r.topology != "") != scheme:
		return cli.UsageError(cmd, "--topology and --scheme must be given together")
	case (one || scheme) && cmd.Flags().Changed("state"):
		return cli.UsageError(cmd, "--state cannot be combined with other flags that name the switches")
	case scheme:
		return r.request.check(cmd, c)
	}
	return cli.Requires(cmd, false, "a --scheme", "set", "blocks", "coeffs", "state-path", "errata", "arch", "ipv6")
}

// A reached switch is a switch with the access to its registers.
type reached struct {
	node      *plan.Node
	endpoint  target.Endpoint
	registers registers.Access
	err       error // why the switch is not accessible
}

// A site holds the switches that a verb accesses.
type site struct {
	scheme   string
	fabric   string
	topology *fabric.Topology // nil if only one switch is known
	project  bool             // the programs belong to a project, not to a scheme
	switches []*reached
}

// close closes the connections.
func (s *site) close() {
	for _, sw := range s.switches {
		if c, ok := sw.registers.(io.Closer); ok {
			c.Close()
		}
	}
}

// open finds the switches and connects to the named ones, or to all.
func (r *reach) open(ctx context.Context, c *cli.Console, names []string) (*site, error) {
	s, endpoints, err := r.find(c)
	if err != nil {
		return nil, err
	}
	if err := s.only(names); err != nil {
		return nil, err
	}
	tls, err := r.tls.config(c)
	if err != nil {
		return nil, err
	}
	for _, sw := range s.switches {
		e := endpoints[sw.node.Name]
		e.TLS = tls
		sw.endpoint = e
		sw.registers, sw.err = connect(ctx, e)
	}
	if err := s.reachable(c); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// find returns the switches and their addresses.
func (r *reach) find(c *cli.Console) (*site, map[string]target.Endpoint, error) {
	switch {
	case r.thrift != "" || r.grpc != "" || r.bfrt != "":
		return r.findOne(c)
	case r.topology != "":
		return r.findScheme(c)
	}
	return r.findDeployed()
}

// findDeployed reads the note of a deployment.
func (r *reach) findDeployed() (*site, map[string]target.Endpoint, error) {
	if err := findState(&r.state); err != nil {
		return nil, nil, err
	}
	d, t, err := deployed.Read(r.state)
	if errors.Is(err, deployed.ErrNothing) {
		return nil, nil, cli.Hinted(err, "run p4lb deploy, or name switches with --topology T --scheme S or --thrift ADDR --manifest FILE; p4lb ps lists the deployments of other folders")
	}
	if err != nil {
		return nil, nil, cli.Hinted(err, "p4lb deploy rewrites it")
	}
	if err := up(d, r.state); err != nil {
		return nil, nil, err
	}
	nodes, err := d.Nodes(t)
	if err != nil {
		return nil, nil, err
	}
	s := newSite(d.Scheme, t, nodes)
	s.project = d.Project != ""
	endpoints := map[string]target.Endpoint{}
	for _, sw := range d.Switches {
		e := target.Endpoint{Address: sw.GRPC, Device: sw.Device, Thrift: sw.Thrift}
		if sw.API == deployed.BfRt {
			e.Speak = tofino.Watch(sw.Device)
		}
		endpoints[sw.Name] = e
	}
	return s, endpoints, nil
}

func newSite(scheme string, t *fabric.Topology, nodes []*plan.Node) *site {
	s := &site{scheme: scheme, fabric: t.Name, topology: t}
	for _, n := range nodes {
		s.switches = append(s.switches, &reached{node: n})
	}
	return s
}

// findScheme uses the topology's addresses, and generates manifests as p4lb deploy does.
func (r *reach) findScheme(c *cli.Console) (*site, map[string]target.Endpoint, error) {
	t, err := c.Topology(r.topology)
	if err != nil {
		return nil, nil, err
	}
	if t, err = r.request.addresses(t); err != nil {
		return nil, nil, err
	}
	front := t
	t = plan.DevicePorts(front, r.request.Arch)
	manifests, err := r.manifests(c, t)
	if err != nil {
		return nil, nil, err
	}
	var virtual []int
	for _, m := range manifests {
		virtual = append(virtual, m.VirtualNumbers()...)
	}
	t = plan.DevicePorts(front, r.request.Arch, virtual...)
	nodes, err := plan.NewNodes(t, manifests, plan.GroupingOf(manifests))
	if err != nil {
		return nil, nil, err
	}
	endpoints := map[string]target.Endpoint{}
	for _, sw := range t.Switches {
		endpoints[sw.Name] = target.Endpoint{Address: sw.GRPC, Device: sw.ID, Thrift: sw.Thrift}
	}
	return newSite(nodes[0].Manifest.Scheme, t, nodes), endpoints, nil
}

// manifests generates the program of each role for its manifest.
func (r *reach) manifests(c *cli.Console, t *fabric.Topology) (map[fabric.Role]*manifest.Manifest, error) {
	schemes, err := r.request.Schemes()
	if err != nil {
		return nil, err
	}
	params, err := r.request.paramsFor(c, t)
	if err != nil {
		return nil, err
	}
	params.Ports, params.MaxPort = plan.Sizes(t)
	manifests := map[fabric.Role]*manifest.Manifest{}
	for _, sw := range t.Switches {
		if manifests[sw.Role] != nil {
			continue
		}
		params.Role = string(sw.Role)
		p, err := schemes[0].Build(params)
		if err != nil {
			return nil, err
		}
		manifests[sw.Role] = &p.Manifest
	}
	return manifests, nil
}

// findOne returns a single switch, described by the manifest of its program.
func (r *reach) findOne(c *cli.Console) (*site, map[string]target.Endpoint, error) {
	text, err := c.ReadSource(r.manifest)
	if err != nil {
		return nil, nil, err
	}
	m, err := manifest.Decode(cli.DisplayName(r.manifest), text)
	if err != nil {
		return nil, nil, cli.Hinted(err, "want the manifest.json that p4lb gen writes beside a program")
	}
	name := cmp.Or(r.thrift, r.grpc, r.bfrt)
	e := target.Endpoint{Address: r.grpc, Device: r.device, Thrift: r.thrift}
	if r.bfrt != "" {
		e.Address, e.Device, e.Speak = r.bfrt, 0, tofino.Watch(0)
	}
	s := &site{scheme: m.Scheme, switches: []*reached{{node: &plan.Node{Name: name, Role: fabric.Role(m.Role), Manifest: m}}}}
	return s, map[string]target.Endpoint{name: e}, nil
}

// only keeps the named switches, or all if names is empty.
func (s *site) only(names []string) error {
	if len(names) == 0 {
		return nil
	}
	have := lists.Map(s.switches, func(sw *reached) string { return sw.node.Name })
	for _, name := range names {
		if !slices.Contains(have, name) {
			return cli.Hinted(fmt.Errorf("there is no switch %q", name), "there are %s", abbreviated(have))
		}
	}
	s.switches = slices.DeleteFunc(s.switches, func(sw *reached) bool { return !slices.Contains(names, sw.node.Name) })
	return nil
}

// connect opens the access to the registers of a switch.
func connect(ctx context.Context, e target.Endpoint) (registers.Access, error) {
	if e.Thrift != "" {
		t := target.NewThrift(e.Thrift)
		short, cancel := context.WithTimeout(ctx, view.ReachTimeout)
		defer cancel()
		if _, err := t.Clock(short); err == nil || e.Address == "" {
			return t, err
		}
		t.Close()
	}
	return controller.NewPeek(ctx, e, view.ReachTimeout)
}

// vanished returns an error for an unreachable switch, with its exit code.
func vanished(err error) error {
	f := &cli.Failure{Code: cli.ExitInput, Err: err}
	if known, ok := errors.AsType[*plan.Error](err); ok {
		f.Hint = known.Hint
	}
	if errors.Is(err, target.ErrUnreachable) {
		f.Code, f.Hint = cli.ExitRefused, "check that the switch is running; embedded switches run as long as p4lb deploy"
	}
	return f
}

// reachable keeps the reachable switches and lists the others. It returns an error if
// none is left.
func (s *site) reachable(c *cli.Console) error {
	var last error
	s.switches = slices.DeleteFunc(s.switches, func(sw *reached) bool {
		if sw.err == nil {
			return false
		}
		if last != nil {
			c.Report(last)
		}
		last = vanished(fmt.Errorf("%s: %w", sw.node.Name, sw.err))
		return true
	})
	if last != nil && len(s.switches) > 0 {
		c.Report(last)
		return nil
	}
	return last
}
