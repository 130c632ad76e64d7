// Package deployed is the note that a deployment leaves in a file: what others on
// the machine need to know about it, to look into its switches, to reach its
// hosts, and to end it.
package deployed

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

// A Note is the note of a deployment: what others need to know about it so
// that they need no arguments.
type Note struct {
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
	Switches  []Switch                           `json:"switches"`
}

// A Switch is where a switch of a deployment is.
type Switch struct {
	Name   string      `json:"name"`
	Role   fabric.Role `json:"role"`
	Device uint64      `json:"device_id"`
	GRPC   string      `json:"grpc"`
	API    string      `json:"api,omitempty"` // what is spoken there: bfrt; "": P4Runtime
	Thrift string      `json:"thrift,omitempty"`
	// Manifest is set where the switch runs another program than others of its
	// role; nil: what Manifests has for the role holds.
	Manifest *manifest.Manifest `json:"manifest,omitempty"`
}

const version = 2

// BfRt is the API of switches with Intel's SDE.
const BfRt = "bfrt"

// New notes a plan and where its switches are. Those that the target
// cannot say it of are where the topology has them.
func New(p *plan.Plan, t target.Target, pid int) *Note {
	d := &Note{
		Version: version, Scheme: p.Scheme, Target: t.Name(), PID: pid, Began: processStart(pid),
		Topology: string(p.Topology.YAML()), ByLeaf: p.Grouping >= fabric.ByLeaf,
		Manifests: map[fabric.Role]*manifest.Manifest{},
	}
	for _, s := range p.Switches {
		sw := p.Topology.Switch(s.Name)
		note := Switch{Name: s.Name, Role: s.Role, Device: s.Device, GRPC: sw.GRPC, Thrift: sw.Thrift}
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
func (d *Note) Running() bool {
	if d.PID == 0 {
		return false
	}
	began := processStart(d.PID)
	return began != "" && (d.Began == "" || d.Began == began)
}

// Write writes the note to a file, all or nothing, with the folders on the way.
// Others on the machine need not know where the switches take commands.
func (d *Note) Write(file string) error {
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
func (d *Note) Nodes(t *fabric.Topology) ([]*plan.Node, error) {
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

// ErrNothing is wrapped by the error about a file of a deployment that is
// not there.
var ErrNothing = errors.New("nothing has been deployed from here")

// Read reads the note of a deployment, and its topology.
func Read(file string) (*Note, *fabric.Topology, error) {
	text, err := plain.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%w: there is no %s", ErrNothing, file)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the state: %s: %w", file, err)
	}
	d := &Note{}
	if err := json.Unmarshal(text, d); err != nil {
		line, why := plain.JSONError(text, err)
		return nil, nil, fmt.Errorf("reading the state: %s: line %d: %w", file, line, why)
	}
	if d.Version != version {
		return nil, nil, fmt.Errorf("reading the state: %s has version %d, want %d", file, d.Version, version)
	}
	t, err := fabric.Load(file, []byte(d.Topology))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the state: %w", err)
	}
	return d, t, nil
}
