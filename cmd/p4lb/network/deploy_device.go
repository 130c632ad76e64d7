package network

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/cmd/p4lb/cli"
	"github.com/p4lb/p4lb/controller/plan"
	"github.com/p4lb/p4lb/controller/tofino"
	"github.com/p4lb/p4lb/fabric"
	"github.com/p4lb/p4lb/manifest"
	"github.com/p4lb/p4lb/plain"
)

// warnOfPackets says which tasks nobody does over BfRt, which carries no packets.
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

// loadDeviceConfigs reads what the compiler of the hardware has made. Over BfRt a
// role may go without: its switches run their program already.
func (j *deployJob) loadDeviceConfigs(all map[fabric.Role]*plan.Pipeline) error {
	for _, p := range all {
		p.Config = nil // what p4lb compiles is for its own switch
	}
	for _, text := range j.configs {
		role, file, ok := strings.Cut(text, "=")
		p := all[fabric.Role(role)]
		if !ok || p == nil {
			return fmt.Errorf("--device-config %s: want ROLE=FILE with a role of the topology: %s", text, roleNames(all))
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

// deviceConfig reads what a pipeline is loaded from.
func (j *deployJob) deviceConfig(p *plan.Pipeline, file string) ([]byte, error) {
	if j.bfrt && filepath.Ext(file) == ".conf" {
		a, err := tofino.ReadConf(file)
		if err != nil {
			return nil, cli.BareError(err)
		}
		return a.Encode()
	}
	text, err := plain.ReadFile(file)
	if err != nil {
		return nil, cli.BareError(err)
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

// encodeEmbedded makes of programs what switches load over BfRt that are the
// embedded one.
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
