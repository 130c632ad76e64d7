package network

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/controller/deployed"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/controller/tofino"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/netspace"
	"github.com/p4lb/p4lb/internal/network/testbed"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// The targets of deploy.
const (
	targetEmbedded = "embedded"
	targetBMv2     = "bmv2"
	targetServers  = "p4runtime"
	targetTofino   = "tofino"
)

var targetNames = []string{targetEmbedded, targetBMv2, targetServers, targetTofino}

// tofinoAPIs are what Tofino switches speak: Intel's SDE the first, Stratum the
// other.
var tofinoAPIs = []string{"bfrt", "p4runtime"}

// openTarget makes the target. attached says that the embedded switches are
// those of another process.
func (j *deployJob) openTarget(plan *plan.Plan) (to target.Target, attached bool, err error) {
	config, err := j.tls.config(j.c)
	if err != nil {
		return nil, false, err
	}
	options := target.ServersOptions{TLS: config}
	switch {
	case j.target == targetServers:
		return target.NewServers(options), false, nil
	case j.target == targetTofino && j.bfrt:
		return tofino.New(options), false, nil
	case j.target == targetTofino:
		return target.NewTofino(options), false, nil
	case j.target == targetBMv2:
		return j.bmv2.open(j.c, options), false, nil
	}
	if j.owner = j.running(plan); j.owner != nil {
		j.c.Log.Info("taking over the switches of another process")
		options.Addresses = map[string]string{}
		for _, s := range j.owner.Switches {
			options.Addresses[s.Name] = s.GRPC
		}
		if there := j.owner.Switches[0].API == deployed.BfRt; there != j.bfrt {
			return nil, false, cli.Hinted(fmt.Errorf("the switches that run serve %s", apiNames[there]), "--bfrt says which of both is spoken; end that process for the other")
		}
		if j.bfrt {
			return tofino.New(options), true, nil
		}
		return target.NewServers(options), true, nil
	}
	if err := j.addressesFree(plan); err != nil {
		return nil, false, err
	}
	o := embedded.Options{BfRt: j.bfrt, AnyPort: j.anyPort, Seed: j.seed, Log: j.c.Log}
	if j.stays() {
		if err := j.hosts.open(j.c, plan, netspace.KnowsSwitch); err != nil {
			return nil, false, err
		}
	}
	j.hosts.join(&o)
	return embedded.New(o), false, nil
}

var apiNames = map[bool]string{false: "P4Runtime", true: "BfRt"}

// addressesFree finds out whether the switches can be served at the addresses of
// the topology, before anything is made.
func (j *deployJob) addressesFree(plan *plan.Plan) error {
	if j.anyPort {
		return nil
	}
	var taken []string
	for _, s := range plan.Topology.Switches {
		l, err := net.Listen("tcp", s.GRPC)
		if errors.Is(err, syscall.EADDRINUSE) {
			taken = append(taken, fmt.Sprintf("%s (%s)", s.GRPC, s.Name))
		}
		if err == nil {
			l.Close()
		}
	}
	if len(taken) == 0 {
		return nil
	}
	return &cli.Failure{Code: cli.ExitRefused, Err: fmt.Errorf("somebody else serves at the addresses of the topology: %s", abbreviated(taken)),
		Hint: "--any-port takes free ones; or end what serves there, p4lb down if it is a network of p4lb's"}
}

// running is the deployment of another process that has these very switches
// embedded and is alive, or nil.
func (j *deployJob) running(plan *plan.Plan) *deployed.Note {
	d, _, err := deployed.Read(j.state)
	if err != nil || !d.Kept || d.Target != targetEmbedded || len(d.Switches) != len(plan.Switches) {
		return nil
	}
	for _, s := range d.Switches {
		if plan.Switch(s.Name) == nil {
			return nil
		}
	}
	if pid, err := deployed.Owner(j.state); err != nil || pid == 0 || pid == os.Getpid() {
		return nil
	}
	return d
}

// clientTLS are the flags that say how to speak to servers with TLS.
type clientTLS struct{ ca, cert, key string }

func (t *clientTLS) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.ca, "tls-ca", "", "p4runtime, tofino: speak TLS to servers with a certificate signed by those in `FILE`")
	f.StringVar(&t.cert, "tls-cert", "", "with the certificate of this client in `FILE`")
	f.StringVar(&t.key, "tls-key", "", "and its key in `FILE`")
}

// config is nil without TLS.
func (t *clientTLS) config(c *cli.Console) (*tls.Config, error) {
	if t.ca == "" {
		if t.cert != "" || t.key != "" {
			return nil, cli.Hinted(errors.New("--tls-cert and --tls-key want --tls-ca"), "name the certificates that the servers' are signed by")
		}
		return nil, nil
	}
	text, err := c.ReadSource(t.ca)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	if !config.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("reading %s: there is no certificate in it", t.ca)
	}
	if t.cert == "" && t.key == "" {
		return config, nil
	}
	pair, err := cli.KeyPair(t.cert, t.key)
	if err != nil {
		return nil, err
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// bmv2Flags holds the flags of deploy that are about --target bmv2 alone.
type bmv2Flags struct {
	keep   bool
	remove bool
	attach bool
	name   string
}

func (b *bmv2Flags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&b.keep, "keep", false, "bmv2: leave the network up when deploy ends; the next one takes it over")
	f.BoolVar(&b.remove, "remove", false, "bmv2: take away what --keep has left, and do nothing else")
	f.BoolVar(&b.attach, "attach", false, "bmv2: start nothing, the switches run at the addresses of the topology")
	f.StringVar(&b.name, "name", "", "bmv2: the `NAME` of the deployment (default: that of the topology)")
}

// check finds mistakes in the command line.
func (b *bmv2Flags) check(cmd *cobra.Command, target string) error {
	switch {
	case target != targetBMv2 && (b.keep || b.remove || b.attach || b.name != ""):
		return cli.UsageError(cmd, "--keep, --remove, --attach and --name are for --target bmv2")
	case b.keep && b.remove, b.attach && (b.keep || b.remove || b.name != ""):
		return cli.UsageError(cmd, "--attach, --remove and --keep exclude each other")
	}
	return nil
}

// open makes the target.
func (b *bmv2Flags) open(c *cli.Console, o target.ServersOptions) target.Target {
	if b.attach {
		return target.AttachBMv2(o)
	}
	return testbed.New(testbed.Options{Name: b.name, Keep: b.keep, Log: c.Log})
}

// takeAway ends a deployment that was kept.
func (j *deployJob) takeAway() error {
	name := j.bmv2.name
	if name == "" {
		t, err := j.c.Topology(j.topology)
		if err != nil {
			return err
		}
		name = t.Name
	}
	switch ok, err := testbed.Remove(name); {
	case err != nil:
		return deployFailure(err)
	case !ok:
		return cli.Hinted(fmt.Errorf("there is no deployment %s", name), "ip netns shows what there is: namespaces called p4lb-NAME-NODE")
	}
	j.c.Log.Info("removed", "deployment", name)
	return nil
}

// howTo says how to use the hosts of a network that has just come up.
func (j *deployJob) howTo(plan *plan.Plan) error {
	list := plan.Topology.Hosts
	live := j.hosts.network != nil || j.target == targetBMv2 && !j.bmv2.attach
	if !live || len(list) < 2 || j.format != cli.Table {
		return nil
	}
	from, to := list[0], list[len(list)-1]
	fmt.Fprintf(j.c.Out, "%d hosts; a command on %s: p4lb exec %s -- ping %v\n", len(list), from.Name, from.Name, to.IP.Addr())
	if j.bmv2.keep {
		fmt.Fprintln(j.c.Out, "the network stays; to end it: p4lb down")
	}
	if err := j.c.Out.Flush(); err != nil {
		return fmt.Errorf("writing to standard output: %w", plain.Bare(err))
	}
	return nil
}
