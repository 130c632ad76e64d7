package network

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/controller/pipeline"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/tofino"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/scheme/own"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// A schemeRequest contains the flags that select a scheme for all roles.
type schemeRequest struct {
	cli.Request
}

func (r *schemeRequest) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.Scheme, "scheme", "", "the `SCHEME`, such as qall-poly3, drill+rlb or ./mine")
	cli.AddBlocksFlag(cmd, &r.Blocks)
	f.StringArrayVar(&r.Assigned, "set", nil, "set a parameter, as `NAME=VALUE` with its unit (repeatable)")
	f.StringVarP(&r.File, "file", "f", "", "read parameters from the YAML `FILE`, as p4lb gen does")
	f.StringVar(&r.Coeffs, "coeffs", "", "polynomial of a fitted scheme: the JSON `FILE` of a model")
	f.StringVar(&r.StatePath, "state-path", "", "how queue state reaches ingress: recirc, recirc-cut (copies without payload, not on BMv2), shared, or for Tofino 2 ghost (default recirc; shared for ar on BMv2)")
	f.StringVar(&r.Errata, "errata", "", "printed: use the formulas as the paper prints them, with its misprints")
	f.BoolVar(&r.IPv6, "ipv6", false, "forward IPv6, and give hosts IPv6 addresses: 10.0.1.1 becomes fd00::10.0.1.1 (default if the topology has IPv6 addresses)")
	cli.AddArchFlag(cmd, &r.Arch, "architecture `ARCH` of the programs: v1model, tna or t2na (default v1model; tna with --target tofino)")
	cli.CompleteLater(cmd, "scheme", codegen.Names)
	cli.CompleteWith(cmd, "state-path", codegen.StatePaths)
}

// check completes the request.
func (r *schemeRequest) check(cmd *cobra.Command, c *cli.Console) error {
	if err := r.Complete(cmd, c); err != nil {
		return err
	}
	switch {
	case r.All:
		return cli.UsageError(cmd, "%s is for one scheme, not for all", cmd.Name())
	case cli.WantArch(cmd, r.Arch) != nil:
		return cli.WantArch(cmd, r.Arch)
	case r.Role != "" || r.Ports != "":
		return cli.UsageError(cmd, "role and ports follow from the topology: leave them out of %s", cli.DisplayName(r.File))
	case own.IsPath(r.Scheme) && r.Arch == "":
		// A user's program states its own architecture.
		s, err := cli.LibraryFrom(".").Find(r.Scheme)
		if err != nil {
			return err
		}
		if arch := s.Archs()[0]; arch != codegen.Archs[0] {
			r.Arch = arch
		}
	}
	return nil
}

// addresses returns the topology with the addresses that the request asks for.
func (r *schemeRequest) addresses(t *fabric.Topology) (*fabric.Topology, error) {
	if !r.IPv6 {
		return t, nil
	}
	return t.ToIPv6()
}

// paramsFor returns the parameters of the programs for a topology. Generated programs
// forward IPv6 where hosts have IPv6 addresses.
func (r *schemeRequest) paramsFor(c *cli.Console, t *fabric.Topology) (codegen.Params, error) {
	want := r.Request
	want.IPv6 = t.HasIPv6() && !own.IsPath(r.Scheme)
	return want.Params(c)
}

// plan generates the programs and computes the configuration of every switch.
func (j *deployJob) plan(ctx context.Context) (*plan.Plan, error) {
	t, err := j.c.Topology(j.topology)
	if err != nil {
		return nil, err
	}
	if t, err = j.request.addresses(t); err != nil {
		return nil, err
	}
	if j.target == targetBMv2 || j.target == targetEmbedded {
		if err := j.pacing.choose(&j.request.Request, t, j.target, j.c.Log); err != nil {
			return nil, err
		}
	}
	if t, err = cli.FailLinks(t, j.fail); err != nil {
		return nil, err
	}
	if j.adjust != nil {
		if t, err = j.adjust(t); err != nil {
			return nil, err
		}
	}
	front := t
	if j.target == targetEmbedded {
		// A topology that counts ports from 1 may use port numbers that the
		// hardware reserves.
		t = plan.DevicePorts(front, j.request.Arch)
	}
	pipelines, err := j.pipelines(ctx, t)
	if err != nil {
		return nil, err
	}
	if t != front {
		var virtual []int
		for _, p := range pipelines {
			virtual = append(virtual, p.Manifest.VirtualNumbers()...)
		}
		t = plan.DevicePorts(front, j.request.Arch, virtual...)
		first := t.Switches[0].Name
		j.c.Log.Info("the ports of the topology are front ports", "first", fmt.Sprintf("%s:%d is device port %d", first, front.Ports(first)[0].Number, t.Ports(first)[0].Number))
	}
	plan, err := plan.New(t, pipelines, plan.Options{MTU: j.mtu, Queue: j.queue})
	if err != nil {
		return nil, j.planErrors(err)
	}
	if j.app == "" && !plan.Balances() {
		j.c.Log.Warn("no switch has more than one path to anywhere: the scheme has nothing to choose among")
	}
	for _, table := range plan.Empty() {
		j.c.Log.Warn("nothing fills a table: every packet takes its default action", "table", table)
	}
	if j.bfrt {
		j.warnOfPackets(plan)
	}
	for _, text := range plan.Cut() {
		j.c.Log.Warn("cut off", "who", text)
	}
	return plan, nil
}

// pipelines generates and compiles the program of each role, all at once.
func (j *deployJob) pipelines(ctx context.Context, t *fabric.Topology) (map[fabric.Role]*plan.Pipeline, error) {
	all, err := pipelinesOf(ctx, j.c, &j.request, t)
	switch {
	case err != nil:
		return nil, err
	case j.target == targetTofino:
		return all, j.loadDeviceConfigs(all)
	case j.bfrt:
		return all, encodeEmbedded(all)
	}
	return all, nil
}

// pipelinesOf makes the programs of a scheme for a topology.
func pipelinesOf(ctx context.Context, c *cli.Console, r *schemeRequest, t *fabric.Topology) (map[fabric.Role]*plan.Pipeline, error) {
	schemes, err := r.Schemes()
	if err != nil {
		return nil, err
	}
	params, err := r.paramsFor(c, t)
	if err != nil {
		return nil, err
	}
	all, err := pipeline.For(ctx, schemes[0], params, t)
	if err != nil {
		return nil, err
	}
	var manifests []*manifest.Manifest
	for _, p := range all {
		manifests = append(manifests, &p.Manifest)
	}
	return all, r.CheckStatePath(manifests...)
}

// warnOfPackets lists the tasks that BfRt cannot run, because it carries no packets.
func (j *deployJob) warnOfPackets(p *plan.Plan) {
	var tasks []string
	for _, s := range p.Switches {
		for _, t := range s.Pipeline.Manifest.Tasks {
			sends := t.Kind == manifest.ProbeFlood || t.Kind == manifest.PathProbe || t.Kind == manifest.SendFrame
			if name := string(t.Kind); sends && !slices.Contains(tasks, name) {
				tasks = append(tasks, name)
			}
		}
	}
	if len(tasks) > 0 {
		j.c.Log.Warn("BfRt carries no packets: what these tasks would send must come from the packet generator, or from a host at the CPU's port", "tasks", strings.Join(tasks, ", "))
	}
}

// loadDeviceConfigs reads the output of the hardware's compiler. Over BfRt a role may
// lack it if its switches already run their program.
func (j *deployJob) loadDeviceConfigs(all map[fabric.Role]*plan.Pipeline) error {
	for _, p := range all {
		p.Config = nil // programs compiled by p4lb only run on its own switch
	}
	for _, text := range j.tofino.configs {
		role, file, ok := strings.Cut(text, "=")
		p := all[fabric.Role(role)]
		if !ok || p == nil {
			roles := lists.Map(slices.Sorted(maps.Keys(all)), func(role fabric.Role) string { return string(role) })
			return fmt.Errorf("--device-config %s: want ROLE=FILE with a role of the topology: %s", text, strings.Join(roles, ", "))
		}
		var err error
		if p.Config, err = j.deviceConfig(p, file); err != nil {
			return fmt.Errorf("--device-config %s: %w", text, err)
		}
	}
	for role, p := range all {
		if len(p.Config) == 0 && !j.dryRun && !j.bfrt {
			return fmt.Errorf("there is no --device-config for the role %s", role)
		}
	}
	return nil
}

// deviceConfig reads the device configuration of a pipeline.
func (j *deployJob) deviceConfig(p *plan.Pipeline, file string) ([]byte, error) {
	if j.bfrt && filepath.Ext(file) == ".conf" {
		a, err := tofino.ReadConf(file)
		if err != nil {
			return nil, plain.Bare(err)
		}
		return a.Encode()
	}
	text, err := plain.ReadFile(file)
	if err != nil {
		return nil, plain.Bare(err)
	}
	switch {
	case !j.bfrt:
		return text, nil
	case filepath.Ext(file) == ".json":
		p.Config = text
		return encode(p)
	}
	return nil, cli.Hinted(errors.New("want the .conf that p4c writes, or the .json that p4lb compile -o does"), "--tofino-api p4runtime takes the pipeline of Stratum")
}

// encodeEmbedded converts programs to the form that embedded switches load over BfRt.
func encodeEmbedded(all map[fabric.Role]*plan.Pipeline) (err error) {
	for _, p := range all {
		if p.Config, err = encode(p); err != nil {
			return err
		}
	}
	return nil
}

func encode(p *plan.Pipeline) ([]byte, error) {
	a, err := tofino.Embedded(p)
	if err != nil {
		return nil, err
	}
	return a.Encode()
}
