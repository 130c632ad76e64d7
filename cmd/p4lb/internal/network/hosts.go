package network

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/controller/deployed"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/device/ports"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/hosts"
	"github.com/p4lb/p4lb/internal/network/netspace"
	"github.com/p4lb/p4lb/internal/network/testbed"
	"github.com/p4lb/p4lb/internal/server/p4rt"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A hostJob finds the network that a verb about hosts is for.
type hostJob struct {
	c     *cli.Console
	state string
}

func (j *hostJob) addFlags(cmd *cobra.Command) {
	addState(cmd, &j.state)
}

// addState adds the flag that names the state of a deployment.
func addState(cmd *cobra.Command, state *string) {
	cmd.Flags().StringVar(state, "state", "", "use the deployment with the state `FILE` (default: the deployment of this folder; p4lb ps lists all)")
}

// findState sets an empty name to the state file of the current folder.
func findState(state *string) (err error) {
	if *state == "" {
		*state, err = deployed.StateOf(".")
	}
	return err
}

// read reads the note of the deployment.
func (j *hostJob) read() (*deployed.Note, *fabric.Topology, error) {
	if err := findState(&j.state); err != nil {
		return nil, nil, err
	}
	d, t, err := deployed.Read(j.state)
	if errors.Is(err, deployed.ErrNothing) {
		if pid, err := deployed.Owner(j.state); err == nil && pid == 0 {
			deployed.Forget(j.state) // These files belong to a process that was killed before it wrote the state.
		}
		return nil, nil, cli.Hinted(err, "p4lb deploy --scheme SCHEME --topology TOPOLOGY starts a network; p4lb ps lists the networks of other folders")
	}
	return d, t, err
}

// running reads the note of a deployment that is up.
func (j *hostJob) running() (*deployed.Note, *fabric.Topology, error) {
	d, t, err := j.read()
	if err == nil {
		err = up(d, j.state)
	}
	return d, t, err
}

// up returns an error if the process that the switches live in has ended. It
// then removes the state, which that process had no time to remove.
func up(d *deployed.Note, state string) error {
	if !d.Kept {
		return nil
	}
	if pid, err := deployed.Owner(state); err != nil || pid != 0 {
		return err
	}
	if err := deployed.Forget(state); err != nil {
		return err
	}
	return cli.Hinted(fmt.Errorf("%w: the process that ran it has ended", hosts.ErrGone), "p4lb deploy brings it up again")
}

// host finds a host of a deployment. It returns an error if the deployment has no hosts.
func (j *hostJob) host(d *deployed.Note, t *fabric.Topology, name string) (*fabric.Host, error) {
	if d.Control == "" && d.Name == "" {
		return nil, cli.Hinted(fmt.Errorf("the deployment on target %s has no hosts of p4lb's", d.Target),
			"deploy --target embedded or bmv2 has some, where this machine can make them")
	}
	if h := t.Host(name); h != nil {
		return h, nil
	}
	return nil, noHost(t, name)
}

// noHost returns the error about a host that does not exist in the topology.
func noHost(t *fabric.Topology, name string) error {
	names := lists.Map(t.Hosts, func(h fabric.Host) string { return h.Name })
	return cli.Hinted(fmt.Errorf("there is no host %s", name), "the hosts are %s", abbreviated(names))
}

// NewHosts returns the verb hosts.
func NewHosts(c *cli.Console) *cobra.Command {
	j := &hostJob{c: c}
	var form cli.Format
	cmd := &cobra.Command{
		Use:   "hosts [-o FORMAT]",
		Short: "List the hosts of the deployed network",
		Long: `Hosts lists the hosts of the network deployed from this folder, with their
addresses and switch ports. p4lb exec runs a command on a host.`,
		Example: `  p4lb hosts
  p4lb hosts -o json`,
		Args: cli.WantArgs(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			_, t, err := j.running()
			if err != nil {
				return err
			}
			type row struct {
				Name    string `json:"name"`
				Address string `json:"address"`
				MAC     string `json:"mac"`
				Switch  string `json:"switch"`
				Port    int    `json:"port"`
			}
			rows, list := cli.Grid{{"HOST", "ADDRESS", "MAC", "SWITCH", "PORT"}}, []row{}
			for _, h := range t.Hosts {
				r := row{h.Name, h.IP.String(), h.MAC.String(), h.Switch, h.Port}
				list = append(list, r)
				rows = append(rows, []string{r.Name, r.Address, r.MAC, r.Switch, strconv.Itoa(r.Port)})
			}
			return cli.Show(c.Out, form, rows, list)
		},
	}
	j.addFlags(cmd)
	cli.AddFormat(cmd, &form, cli.Table, cli.JSON, cli.CSV)
	return cmd
}

// NewExec returns the verb exec.
func NewExec(c *cli.Console) *cobra.Command {
	j := &hostJob{c: c}
	cmd := &cobra.Command{
		Use:   "exec HOST -- COMMAND [ARG]...",
		Short: "Run a command on a host of the deployed network",
		Long: `Exec runs a command with the address and the link of a host; files and processes
are shared with this machine. It uses the network deployed from this folder. Only
the user of that deployment can run commands in it.

The exit code is the command's, or 127 if it could not be started. Taking the
network down ends all commands on its hosts.`,
		Example: `  p4lb exec h1 -- ping -c 3 10.0.2.1
  p4lb exec h17 -- iperf3 -s -D
  p4lb exec h1 -- bash`,
		Args: cli.WantArgs(2, -1, "a host and a command"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] == "--" {
				args = slices.Delete(args, 1, 2)
			}
			if len(args) < 2 {
				return cli.UsageError(cmd, "exec wants a command after the host")
			}
			d, t, err := j.running()
			if err != nil {
				return err
			}
			h, err := j.host(d, t, args[0])
			if err != nil {
				return err
			}
			if err := c.Out.Flush(); err != nil {
				return err
			}
			// The command handles interrupts.
			return j.exec(context.WithoutCancel(cmd.Context()), d, h, args[1:])
		},
	}
	cmd.Flags().SetInterspersed(false)
	j.addFlags(cmd)
	return cmd
}

// exec runs the command and ends with its exit code.
func (j *hostJob) exec(ctx context.Context, d *deployed.Note, h *fabric.Host, args []string) error {
	var code int
	var err error
	if d.Name != "" {
		code, err = testbed.Exec(d.Name, h.Name, args)
	} else {
		code, err = hosts.Exec(ctx, d.Control, h.Name, args)
	}
	switch {
	case errors.Is(err, hosts.ErrGone):
		return cli.Hinted(err, "p4lb deploy brings it up again")
	case err != nil:
		return &cli.Failure{Code: max(code, cli.ExitInput), Err: fmt.Errorf("on host %s: %w", h.Name, err)}
	case code != 0:
		return &cli.Failure{Code: code}
	}
	return nil
}

// NewDown returns the verb down.
func NewDown(c *cli.Console) *cobra.Command {
	j := &hostJob{c: c}
	cmd := &cobra.Command{
		SuggestFor: []string{"stop", "destroy", "cleanup"},
		Use:        "down",
		Short:      "Take down the deployed network",
		Long: `Down ends the deployment of this folder. It stops the process with the embedded
switches, and removes namespaces and switches that deploy --target bmv2 --keep has
left. Commands on hosts end too. Switches of other targets keep running.

Down signals a process only if the kernel confirms that it holds the lock of this
deployment.`,
		Example: `  p4lb deploy --scheme drill --topology qall --detach
  p4lb down`,
		Args: cli.WantArgs(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, t, err := j.read()
			if err != nil {
				return err
			}
			pid, err := endOwner(cmd.Context(), j.state)
			if err != nil {
				return err
			}
			if !d.Kept && d.Name == "" && pid == 0 {
				return cli.Hinted(fmt.Errorf("the switches of target %s are not p4lb's to end", d.Target), "end the process that serves them; remove %s to forget the deployment", j.state)
			}
			if d.Name != "" {
				if _, err := testbed.Remove(d.Name); err != nil {
					return deployFailure(err)
				}
			}
			if err := deployed.Forget(j.state); err != nil {
				return err
			}
			j.c.Log.Info("the network is down", "topology", t.Name)
			return nil
		},
	}
	j.addFlags(cmd)
	return cmd
}

// endTime is the time limit for a deployment to end itself.
const endTime = 10 * time.Second

// endOwner ends the process that runs a deployment, if there is one.
func endOwner(ctx context.Context, state string) (pid int, err error) {
	pid, err = deployed.EndOwner(ctx, state, endTime)
	if errors.Is(err, deployed.ErrStays) {
		return pid, &cli.Failure{Code: cli.ExitRefused, Err: err, Hint: fmt.Sprintf("kill -9 %d ends it and everything that it has started", pid)}
	}
	return pid, err
}

// hostFlags holds the flags of deploy about hosts of the embedded target.
type hostFlags struct {
	wanted bool
	given  bool // on the command line
	rates  bool
	detach bool
	pcap   string

	network  *hosts.Network
	captures *ports.Captures
}

// mostHosts is the default limit of hosts: each takes a few milliseconds and some
// hundred KiB of kernel memory.
const mostHosts = 256

func (f *hostFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.wanted, "hosts", true, "embedded: create the hosts of the topology if this machine supports it")
	flags.BoolVar(&f.rates, "rates", true, "embedded: apply the rates and delays of links; =false: as fast as possible")
	cli.AddPcapFlag(cmd, &f.pcap, "embedded: ")
	flags.BoolVar(&f.detach, "detach", false, "embedded: continue in the background when the switches hold the plan, until p4lb down")
}

// check returns an error for mistakes in the command line.
func (f *hostFlags) check(cmd *cobra.Command, target string) error {
	f.given = cmd.Flags().Changed("hosts")
	if target != targetEmbedded && (f.given || f.detach || f.pcap != "" || cmd.Flags().Changed("rates")) {
		return cli.UsageError(cmd, "--hosts, --rates, --pcap and --detach are for --target embedded")
	}
	for _, flag := range []string{"once", "dry-run", "diff"} {
		if f.detach && cmd.Flags().Changed(flag) {
			return cli.UsageError(cmd, "--detach and --%s exclude each other", flag)
		}
	}
	return nil
}

// enter ensures that this process can create hosts. If necessary it runs p4lb again
// in a user namespace. done reports that the new process has done all the work.
func (f *hostFlags) enter(c *cli.Console) (done bool, err error) {
	if !f.wanted || hosts.Capable() {
		return false, nil
	}
	code, err := hosts.AsRoot()
	switch {
	case errors.Is(err, hosts.ErrNotHere) && !f.given:
		return false, f.without(c, "%v", strings.TrimPrefix(err.Error(), hosts.ErrNotHere.Error()+": "))
	case err != nil:
		return true, &cli.Failure{Code: cli.ExitRefused, Err: err}
	case code != 0:
		return true, &cli.Failure{Code: code}
	}
	return true, nil
}

// without continues without hosts and logs the reason.
func (f *hostFlags) without(c *cli.Console, format string, args ...any) error {
	c.Warning("no hosts: "+format, args...)
	f.wanted = false
	return nil
}

// open creates the captures, the hosts, and the control socket through which other
// processes reach them.
func (f *hostFlags) open(c *cli.Console, plan *plan.Plan, known netspace.Known) error {
	if f.pcap != "" {
		var err error
		if f.captures, err = ports.NewCaptures(f.pcap, c.CaptureFailed); err != nil {
			return err
		}
	}
	t := plan.Topology
	switch {
	case !f.wanted:
		return nil
	case len(t.Hosts) == 0 && f.given:
		return cli.Hinted(errors.New("the topology has no hosts"), "p4lb topo show lists the nodes of a topology")
	case len(t.Hosts) == 0:
		return f.without(c, "the topology %s has none, so nothing sends", t.Name)
	case len(t.Hosts) > mostHosts && !f.given:
		return f.without(c, "%d are many; --hosts makes them", len(t.Hosts))
	}
	var err error
	f.network, err = hosts.Open(t, hosts.Options{MTU: plan.Options.MTU, Rates: f.rates, Known: known, ByMAC: plan.ByMAC(), Virtual: plan.VirtualAddresses(), Log: c.Log})
	if errors.Is(err, hosts.ErrNotHere) && !f.given {
		return f.without(c, "%v", strings.TrimPrefix(err.Error(), hosts.ErrNotHere.Error()+": "))
	}
	if err != nil {
		return &cli.Failure{Code: cli.ExitRefused, Err: err}
	}
	return nil
}

// join connects the embedded switches to the hosts and captures.
func (f *hostFlags) join(o *embedded.Options) {
	o.Captures = f.captures
	if network := f.network; network != nil {
		o.Host, o.Rates = func(name string) (p4rt.Port, error) { return network.Port(name) }, f.rates
	}
}

// close removes the hosts.
func (f *hostFlags) close() error {
	var errs []error
	if f.network != nil {
		errs = append(errs, f.network.Close())
	}
	if f.captures != nil {
		errs = append(errs, f.captures.Close())
	}
	return errors.Join(errs...)
}
