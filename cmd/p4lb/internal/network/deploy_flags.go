package network

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
)

// embeddedFlags holds the flags of deploy for --target embedded alone, other than
// the flags of hosts.
type embeddedFlags struct {
	anyPort bool
	seed    uint64
	bfrt    bool
}

func (e *embeddedFlags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&e.anyPort, "any-port", false, "embedded: serve at any free ports of 127.0.0.1")
	f.Uint64Var(&e.seed, "seed", 1, "embedded: the seed of the random numbers")
	f.BoolVar(&e.bfrt, "bfrt", false, "embedded: serve programs for Tofino over BfRt, and deploy over it")
}

// check returns an error for mistakes in the command line.
func (e *embeddedFlags) check(cmd *cobra.Command, target string) error {
	if e.bfrt && target != targetEmbedded {
		return cli.UsageError(cmd, "--bfrt is for --target embedded: --target tofino always uses BfRt")
	}
	return cli.Requires(cmd, target == targetEmbedded, "--target embedded", "any-port", "seed")
}

// tofinoFlags holds the flags of deploy for --target tofino alone.
type tofinoFlags struct {
	configs []string
	api     string
}

func (t *tofinoFlags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&t.configs, "device-config", nil, "tofino: program for the switches of a role, as `ROLE=FILE`. FILE is p4c's .conf; PROG.json for p4lb switch --bfrt; the pipeline for Stratum (repeatable)")
	f.StringVar(&t.api, "tofino-api", tofinoAPIs[0], "tofino: protocol `API` of the switches: "+strings.Join(tofinoAPIs, ", "))
	cli.CompleteWith(cmd, "tofino-api", tofinoAPIs)
}

// speaksBfRt reports whether the switches speak BfRt.
func (t *tofinoFlags) speaksBfRt() bool { return t.api == tofinoAPIs[0] }

// check returns an error for mistakes in the command line. To take over switches, a deployment
// must load a program; over P4Runtime it always must.
func (t *tofinoFlags) check(cmd *cobra.Command, target string, loads, takeover bool) error {
	switch {
	case len(t.configs) > 0 && target != targetTofino:
		return cli.UsageError(cmd, "--device-config is for --target tofino")
	case !slices.Contains(tofinoAPIs, t.api):
		return cli.UsageError(cmd, "--tofino-api %s: want one of %s", t.api, strings.Join(tofinoAPIs, ", "))
	case cmd.Flags().Changed("tofino-api") && target != targetTofino:
		return cli.UsageError(cmd, "--tofino-api is for --target tofino")
	case target != targetTofino || len(t.configs) > 0 || !loads:
		return nil
	case !t.speaksBfRt():
		return cli.UsageError(cmd, "--tofino-api p4runtime requires --device-config ROLE=FILE: the compiler of the hardware makes it from what p4lb gen --arch tna writes")
	case takeover:
		return cli.UsageError(cmd, "--takeover requires --device-config ROLE=FILE: over BfRt a takeover must load a program")
	}
	return nil
}

// deployGroups are the flags of deploy, grouped by task.
var deployGroups = []cli.FlagGroup{
	{Title: "The scheme and its parameters", Flags: []string{"scheme", "blocks", "set", "file", "coeffs", "state-path", "errata", "arch"}},
	{Title: "The network", Flags: []string{"topology", "fail", "target", "mtu", "queue", "clock-step"}},
	{Title: "A project of p4-utils or the P4 tutorials", Flags: []string{"p4app", "program"}},
	{Title: "What to do", Flags: []string{"dry-run", "diff", "atomic", "once", "no-tasks", "output", "state"}},
	{Title: "--target embedded", Flags: []string{"hosts", "detach", "pcap", "rates", "any-port", "seed", "bfrt"}},
	{Title: "--target bmv2", Flags: []string{"keep", "remove", "attach", "name"}},
	{Title: "--target tofino", Flags: []string{"device-config", "tofino-api"}},
	{Title: "--target p4runtime or tofino", Flags: []string{"tls-ca", "tls-cert", "tls-key"}},
	{Title: "A page in a browser", Flags: []string{"listen", "listen-token", "listen-token-file", "listen-cert", "listen-key"}},
	{Title: "Other controllers and slow switches", Flags: []string{"election-id", "takeover", "backup", "timeout"}},
}
