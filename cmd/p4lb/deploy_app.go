package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/cli"
	"github.com/p4lb/p4lb/controller/embedded"
	"github.com/p4lb/p4lb/controller/hosts"
	"github.com/p4lb/p4lb/controller/netspace"
	"github.com/p4lb/p4lb/controller/plan"
	"github.com/p4lb/p4lb/fabric"
	"github.com/p4lb/p4lb/manifest"
	"github.com/p4lb/p4lb/p4app"
)

// defaultCPU is the port of the controllers where a project names none: that of
// p4-utils.
const defaultCPU = 510

// checkApp finds mistakes in the command line of a project's deployment.
func (j *deployJob) checkApp(cmd *cobra.Command) error {
	for _, flag := range []string{"scheme", "topology", "file", "set", "coeffs", "arch", "atomic", "diff", "dry-run", "once", "device-config"} {
		if cmd.Flags().Changed(flag) {
			return cli.UsageError(cmd, "--p4app and --%s exclude each other: a project says what its network and its program are", flag)
		}
	}
	if j.target != targetEmbedded {
		return cli.UsageError(cmd, "--p4app is for --target embedded")
	}
	return j.hosts.check(cmd, j.target)
}

// An appSwitch is a switch of a project, ready to begin.
type appSwitch struct {
	p4app.Switch
	program []byte
	info    *configv1.P4Info
	entries []*p4app.Entries
}

// runApp brings a project up, and stays until ctx ends. All files are read and
// all names looked up before anything begins.
func (j *deployJob) runApp(ctx context.Context) (err error) {
	programs := map[string]string{}
	for _, text := range j.programs {
		name, file, ok := strings.Cut(text, "=")
		if !ok {
			name, file = "", text
		}
		programs[name] = file
	}
	project, err := p4app.Read(j.app, programs, fabric.Imports{})
	if err != nil {
		return err
	}
	for _, n := range project.Notes {
		j.c.Warning("%s", n)
	}
	switches, err := j.loadApp(project)
	if err != nil {
		return err
	}
	planned := appPlan(project, switches)
	options := embedded.Options{AnyPort: j.anyPort, Seed: j.seed, Log: j.c.Log}
	for _, s := range switches {
		options.Priorities = max(options.Priorities, s.Priority)
	}
	known := netspace.KnowsHosts
	if slices.ContainsFunc(project.Hosts, func(h p4app.Host) bool { return len(h.Commands) > 0 }) {
		known = netspace.KnowsNobody // the commands tell them
	}
	defer func() { err = errors.Join(err, j.hosts.close()) }()
	if err := j.hosts.open(j.c, planned, known); err != nil {
		return err
	}
	j.hosts.join(&options)
	target := embedded.New(options)
	defer func() { err = errors.Join(err, target.Close()) }()
	if err := target.Start(ctx, planned); err != nil {
		return err
	}
	for _, s := range switches {
		if err := s.begin(target); err != nil {
			return err
		}
	}
	if err := j.commands(ctx, project); err != nil {
		return err
	}
	if err := j.note(planned, target).Write(j.state); err != nil {
		return err
	}
	defer os.Remove(j.state)
	if err := j.showApp(switches); err != nil {
		return err
	}
	if err := j.howTo(planned); err != nil {
		return err
	}
	if err := hosts.Begun(logFile(j.state)); err != nil {
		return err
	}
	j.c.Log.Info("the project is up, until Ctrl-C", "state", j.state)
	<-ctx.Done()
	return nil
}

// loadApp compiles the programs, each once, and reads the entries.
func (j *deployJob) loadApp(project *p4app.Project) (list []*appSwitch, err error) {
	type compiled struct {
		text []byte
		info *configv1.P4Info
	}
	programs := map[string]compiled{}
	for _, s := range project.Switches {
		p, ok := programs[s.Program]
		if !ok {
			load := &switchJob{c: j.c, load: s.Program}
			if p.text, p.info, err = load.program(); err != nil {
				return nil, err
			}
			programs[s.Program] = p
		}
		sw := &appSwitch{Switch: s, program: p.text, info: p.info}
		for _, file := range s.Entries {
			e, err := readEntries(j.c, file, p.info)
			if err != nil {
				return nil, err
			}
			sw.entries = append(sw.entries, e)
		}
		list = append(list, sw)
	}
	return list, nil
}

// readEntries reads a file of entries for a program.
func readEntries(c *cli.Console, file string, info *configv1.P4Info) (*p4app.Entries, error) {
	text, err := c.ReadSource(file)
	if err != nil {
		return nil, err
	}
	return p4app.ParseEntries(cli.DisplayName(file), text, info)
}

// appPlan is as much of a plan as switches and hosts begin with.
func appPlan(project *p4app.Project, switches []*appSwitch) *plan.Plan {
	p := &plan.Plan{Scheme: project.Topology.Name, Topology: project.Topology}
	for _, s := range switches {
		sw := project.Topology.Switch(s.Name)
		cpu := s.CPUPort
		if cpu == 0 {
			cpu = defaultCPU
		}
		p.Switches = append(p.Switches, &plan.Switch{
			Name: s.Name, Role: sw.Role, Device: sw.ID, CPUPort: cpu,
			Pipeline: &plan.Pipeline{Manifest: manifest.Manifest{Scheme: project.Topology.Name, Role: string(sw.Role)}, P4Info: s.info, Config: s.program},
		})
	}
	return p
}

// begin gives a switch its program and its entries.
func (s *appSwitch) begin(target *embedded.Target) error {
	if _, err := target.Endpoint(s.Name); err != nil {
		return deployFailure(err)
	}
	server := target.Server(s.Name)
	if err := server.Load(s.program, s.info); err != nil {
		return fmt.Errorf("switch %s: loading %s: %w", s.Name, s.Program, err)
	}
	for _, e := range s.entries {
		if err := e.Apply(server, target.Device(s.Name)); err != nil {
			return fmt.Errorf("switch %s: %w", s.Name, err)
		}
	}
	return nil
}

// hostTime is how long a command of a host may take before the network is up.
const hostTime = 10 * time.Second

// commands runs what hosts begin with.
func (j *deployJob) commands(ctx context.Context, project *p4app.Project) error {
	if j.hosts.network == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, hostTime)
	defer cancel()
	for _, h := range project.Hosts {
		for _, text := range h.Commands {
			if err := j.onHost(ctx, h.Name, text); err != nil {
				j.c.Log.Warn("a command of the project fails", "host", h.Name, "command", text, "error", err)
			}
		}
	}
	return ctx.Err()
}

// onHost runs a command line of a shell on a host, and waits for it.
func (j *deployJob) onHost(ctx context.Context, host, text string) error {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", p4app.WithIP(text))
	cmd.Stdout, cmd.Stderr = &out, &out
	done := make(chan error, 1)
	if err := j.hosts.network.Run(host, cmd, func(err error) { done <- err }); err != nil {
		return err
	}
	err := <-done
	if said := strings.TrimSpace(out.String()); err != nil && said != "" {
		return fmt.Errorf("%s: %w", strings.ReplaceAll(said, "\n", ": "), err)
	}
	return err
}

// showApp says what runs where.
func (j *deployJob) showApp(switches []*appSwitch) error {
	type row struct {
		Switch  string `json:"switch"`
		Program string `json:"program"`
		Entries int    `json:"entries"`
	}
	rows, list := cli.Grid{{"SWITCH", "PROGRAM", "ENTRIES"}}, []row{}
	for _, s := range switches {
		r := row{s.Name, s.Program, 0}
		for _, e := range s.entries {
			r.Entries += e.Len()
		}
		list = append(list, r)
		rows = append(rows, []string{r.Switch, r.Program, fmt.Sprint(r.Entries)})
	}
	return cli.Show(j.c.Out, j.format, rows, list)
}
