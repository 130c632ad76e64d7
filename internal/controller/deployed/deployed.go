// Package deployed stores the state of deployments. Each deployment has a file from
// which other processes of the user learn how to inspect its switches, reach its
// hosts and end it. A lock identifies the process that runs it.
package deployed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// A Note is the state of a deployment.
type Note struct {
	Version  int       `json:"version"`
	Scheme   string    `json:"scheme"`
	Target   string    `json:"target"`
	Kept     bool      `json:"kept,omitempty"` // the switches end with the process that owns the deployment
	Began    time.Time `json:"began,omitzero"`
	Folder   string    `json:"folder,omitempty"`  // folder from which it was deployed
	Name     string    `json:"name,omitempty"`    // name of the deployment and its namespaces; "": it has no namespaces
	Control  string    `json:"control,omitempty"` // address of the owner's control socket; "": none
	Project  string    `json:"project,omitempty"` // file of a p4app project; "": a scheme is deployed
	Topology string    `json:"topology"`          // as YAML
	ByLeaf   bool      `json:"by_leaf"`           // group ids are leaf numbers

	Manifests map[fabric.Role]*manifest.Manifest `json:"manifests"`
	Switches  []Switch                           `json:"switches"`
}

// A Switch describes how to reach a switch of a deployment.
type Switch struct {
	Name   string      `json:"name"`
	Role   fabric.Role `json:"role"`
	Device uint64      `json:"device_id"`
	GRPC   string      `json:"grpc"`
	API    string      `json:"api,omitempty"` // protocol at the address: bfrt; "": P4Runtime
	Thrift string      `json:"thrift,omitempty"`
	// Manifest is set if the switch runs another program than the other switches of its role;
	// nil: the manifest of its role in Manifests applies.
	Manifest *manifest.Manifest `json:"manifest,omitempty"`
}

const version = 3

// BfRt is the API of switches that run Intel's SDE.
const BfRt = "bfrt"

// New describes the deployment of a plan on a target. Switches that the target does not start
// have the addresses of the topology.
func New(p *plan.Plan, t target.Target) *Note {
	d := &Note{
		Version: version, Scheme: p.Scheme, Target: t.Name(), Began: time.Now().Truncate(time.Second),
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

// Write writes the state to a file atomically, and creates its folder. Other users cannot read
// it, because it contains the addresses that control the switches.
func (d *Note) Write(file string) error {
	text, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return fmt.Errorf("encoding the state: %w", err)
	}
	if info, err := os.Lstat(file); err == nil && !info.Mode().IsRegular() { // A rename would replace the other user's file.
		return fmt.Errorf("writing the state: %s: %w", file, plain.ErrNotRegular)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	name := partFile(file)
	err = remove(name)
	var part *os.File
	if err == nil { // With O_EXCL, opening does not follow links.
		part, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	_, err = part.Write(append(text, '\n'))
	err = errors.Join(err, part.Close())
	if err == nil {
		err = os.Rename(name, file)
	}
	if err != nil {
		os.Remove(name)
		return fmt.Errorf("writing the state: %w", err)
	}
	return nil
}

// Nodes returns the switches of the deployment for inspectors.
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

// ErrNothing is wrapped by the error about a state file that does not exist.
var ErrNothing = errors.New("there is no deployment here")

// Read reads the state of a deployment and its topology. It does not follow links.
func Read(file string) (*Note, *fabric.Topology, error) {
	f, err := openRegular(file, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%w: %s does not exist", ErrNothing, file)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the state: %s: %w", file, plain.Bare(err))
	}
	defer f.Close()
	text, err := plain.ReadAll(f)
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
