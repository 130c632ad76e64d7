package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/p4lb/p4lb/controller/plan"
	"github.com/p4lb/p4lb/controller/target"
	"github.com/p4lb/p4lb/fabric"
	"github.com/p4lb/p4lb/manifest"
	"github.com/p4lb/p4lb/plain"
)

// StateFile is where a deployment is noted unless another file is named.
const StateFile = ".p4lb/deployed.json"

// A Deployed is the note of a deployment: what others need to know about it so
// that they need no arguments.
type Deployed struct {
	Version  int    `json:"version"`
	Scheme   string `json:"scheme"`
	Target   string `json:"target"`
	PID      int    `json:"pid"`               // of the process that keeps it up; 0: none
	Began    string `json:"began,omitempty"`   // when that process did, in the system's words
	Name     string `json:"name,omitempty"`    // of a deployment that is kept in namespaces; "": it is not
	Control  string `json:"control,omitempty"` // where it takes commands for hosts; "": it has none
	Project  string `json:"project,omitempty"` // the file of the project that it is; "": it is a scheme
	Topology string `json:"topology"`          // as YAML
	ByLeaf   bool   `json:"by_leaf"`           // the ids of groups are numbers of leaves

	Manifests map[fabric.Role]*manifest.Manifest `json:"manifests"`
	Switches  []DeployedSwitch                   `json:"switches"`
}

// A DeployedSwitch is where a switch of a deployment is.
type DeployedSwitch struct {
	Name   string      `json:"name"`
	Role   fabric.Role `json:"role"`
	Device uint64      `json:"device_id"`
	GRPC   string      `json:"grpc"`
	API    string      `json:"api,omitempty"` // what is spoken there: bfrt; "": P4Runtime
	Thrift string      `json:"thrift,omitempty"`
	// Manifest is that of its program where others of its role run another; nil:
	// it is the role's.
	Manifest *manifest.Manifest `json:"manifest,omitempty"`
}

const deployedVersion = 2

// BfRt is the API of switches with Intel's SDE.
const BfRt = "bfrt"

// NewDeployed notes a plan and where its switches are. Those that the target
// cannot say it of are where the topology has them.
func NewDeployed(p *plan.Plan, t target.Target, pid int) *Deployed {
	d := &Deployed{
		Version: deployedVersion, Scheme: p.Scheme, Target: t.Name(), PID: pid, Began: processStart(pid),
		Topology: string(p.Topology.YAML()), ByLeaf: p.Grouping >= fabric.ByLeaf,
		Manifests: map[fabric.Role]*manifest.Manifest{},
	}
	for _, s := range p.Switches {
		sw := p.Topology.Switch(s.Name)
		note := DeployedSwitch{Name: s.Name, Role: s.Role, Device: s.Device, GRPC: sw.GRPC, Thrift: sw.Thrift}
		switch m := &s.Pipeline.Manifest; d.Manifests[s.Role] {
		case nil, m:
			d.Manifests[s.Role] = m
		default:
			note.Manifest = m
		}
		if e, err := t.Endpoint(s.Name); err == nil {
			note.Device, note.GRPC, note.Thrift = e.Device, e.Address, e.Thrift
			if e.Speak != nil {
				note.API = BfRt
			}
		}
		d.Switches = append(d.Switches, note)
	}
	return d
}

// Running reports whether the process that keeps the deployment up is there.
func (d *Deployed) Running() bool {
	if d.PID == 0 {
		return false
	}
	began := processStart(d.PID)
	return began != "" && (d.Began == "" || d.Began == began)
}

// Write writes the note to a file, all or nothing, with the folders on the way.
// Others on the machine need not know where the switches take commands.
func (d *Deployed) Write(file string) error {
	text, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return fmt.Errorf("encoding the state: %w", err)
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() { // it would be replaced
		return fmt.Errorf("writing the state: %s: %w", file, plain.ErrNotRegular)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	part := file + ".part"
	err = os.WriteFile(part, append(text, '\n'), 0o600)
	if err == nil {
		err = os.Rename(part, file)
	}
	if err != nil {
		os.Remove(part)
		return fmt.Errorf("writing the state: %w", err)
	}
	return nil
}

// Nodes are the switches of the deployment, for who looks into them.
func (d *Deployed) Nodes(t *fabric.Topology) ([]*plan.Node, error) {
	by := fabric.ByHops
	if d.ByLeaf {
		by = fabric.ByLeaf
	}
	nodes, err := plan.NewNodes(t, d.Manifests, by)
	for _, n := range nodes {
		for _, s := range d.Switches {
			if s.Name == n.Name && s.Manifest != nil {
				n.Manifest = s.Manifest
			}
		}
	}
	return nodes, err
}

// ErrNotDeployed is wrapped by the error about a file of a deployment that is
// not there.
var ErrNotDeployed = errors.New("nothing has been deployed from here")

// ReadDeployed reads the note of a deployment, and its topology.
func ReadDeployed(file string) (*Deployed, *fabric.Topology, error) {
	text, err := plain.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%w: there is no %s", ErrNotDeployed, file)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the state: %s: %w", file, err)
	}
	d := &Deployed{}
	if err := json.Unmarshal(text, d); err != nil {
		line, why := plain.JSONError(text, err)
		return nil, nil, fmt.Errorf("reading the state: %s: line %d: %w", file, line, why)
	}
	if d.Version != deployedVersion {
		return nil, nil, fmt.Errorf("reading the state: %s has version %d, want %d", file, d.Version, deployedVersion)
	}
	t, err := fabric.Load(file, []byte(d.Topology))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the state: %w", err)
	}
	return d, t, nil
}
