package network

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/controller/tofino"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/netspace"
	"github.com/p4lb/p4lb/internal/network/testbed"
)

// The targets of deploy.
const (
	targetEmbedded = "embedded"
	targetBMv2     = "bmv2"
	targetServers  = "p4runtime"
	targetTofino   = "tofino"
)

var targetNames = []string{targetEmbedded, targetBMv2, targetServers, targetTofino}

// tofinoAPIs are the protocols of Tofino switches: bfrt for Intel's SDE, p4runtime for Stratum.
var tofinoAPIs = []string{"bfrt", "p4runtime"}

// openTarget creates the target.
func (j *deployJob) openTarget(plan *plan.Plan) (target.Target, error) {
	config, err := j.tls.config(j.c)
	if err != nil {
		return nil, err
	}
	options := target.ServersOptions{TLS: config}
	switch {
	case j.target == targetServers:
		return target.NewServers(options), nil
	case j.target == targetTofino && j.bfrt:
		return tofino.New(options), nil
	case j.target == targetTofino:
		return target.NewTofino(options), nil
	case j.target == targetBMv2:
		return j.bmv2.open(j.c, plan.Queues(), j.clockStep, options), nil
	}
	if err := j.addressesFree(plan); err != nil {
		return nil, err
	}
	o := embedded.Options{BfRt: j.bfrt, AnyPort: j.embedded.anyPort, Seed: j.embedded.seed, ClockStep: j.clockStep, Priorities: plan.Queues(), Log: j.c.Log}
	if j.stays() {
		if err := j.hosts.open(j.c, plan, netspace.KnowsSwitch); err != nil {
			return nil, err
		}
	}
	j.hosts.join(&o)
	return embedded.New(o), nil
}

// addressesFree checks that the addresses of the topology are free before anything is created.
func (j *deployJob) addressesFree(plan *plan.Plan) error {
	if j.embedded.anyPort {
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
	return &cli.Failure{Code: cli.ExitRefused, Err: fmt.Errorf("the addresses of the topology are in use: %s", abbreviated(taken)),
		Hint: "--any-port takes free ones; p4lb ps lists networks that may serve there"}
}

// clientTLS contains the TLS flags for connections to servers.
type clientTLS struct{ ca, cert, key string }

func (t *clientTLS) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.ca, "tls-ca", "", "p4runtime, tofino: use TLS, and verify servers with the certificates in `FILE`")
	f.StringVar(&t.cert, "tls-cert", "", "p4runtime, tofino: present the client certificate in `FILE`")
	f.StringVar(&t.key, "tls-key", "", "key of the client certificate, in `FILE`")
}

// config returns the TLS configuration, or nil without TLS.
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
	f.BoolVar(&b.keep, "keep", false, "bmv2: leave the network running when deploy ends; the next deploy takes it over")
	f.BoolVar(&b.remove, "remove", false, "bmv2: remove a network left by --keep, and do nothing else")
	f.BoolVar(&b.attach, "attach", false, "bmv2: use running switches at the addresses of the topology")
	f.StringVar(&b.name, "name", "", "bmv2: the `NAME` of the deployment (default: the name of the topology)")
}

// check returns an error for mistakes in the command line.
func (b *bmv2Flags) check(cmd *cobra.Command, target string) error {
	switch {
	case target != targetBMv2 && (b.keep || b.remove || b.attach || b.name != ""):
		return cli.UsageError(cmd, "--keep, --remove, --attach and --name are for --target bmv2")
	case b.keep && b.remove, b.attach && (b.keep || b.remove || b.name != ""):
		return cli.UsageError(cmd, "--attach, --remove and --keep exclude each other")
	}
	return nil
}

// open creates the target. queues is the number of queues per port.
func (b *bmv2Flags) open(c *cli.Console, queues int, clockStep time.Duration, o target.ServersOptions) target.Target {
	if b.attach {
		return target.AttachBMv2(o)
	}
	return testbed.New(testbed.Options{Name: b.name, Keep: b.keep, Priorities: queues, ClockStep: clockStep, Log: c.Log})
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
		return cli.Hinted(fmt.Errorf("there is no deployment %s", name), "ip netns lists the namespaces of deployments: p4lb-NAME-NODE")
	}
	j.c.Log.Info("removed", "deployment", name)
	return nil
}
