package tofino

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// An Artifact is the output of a compiler for the chip: the schema, and context and binary for
// sets of pipes.
type Artifact struct {
	Name     string
	Schema   []byte
	Profiles []Profile
}

// A Profile is the program of some pipes.
type Profile struct {
	Name            string
	Context, Binary []byte
	Pipes           []int
}

// Encode returns the configuration of a pipeline for this target.
func (a *Artifact) Encode() ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(a.config())
}

// ProgramName returns the name of the program on a switch. It contains a hash of the
// binary.
func (a *Artifact) ProgramName() string { return a.config().GetP4Name() }

func (a *Artifact) config() *wire.ForwardingPipelineConfig {
	c := &wire.ForwardingPipelineConfig{BfruntimeInfo: a.Schema}
	sum := sha256.New()
	add := func(b []byte) {
		sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		sum.Write(b)
	}
	add(a.Schema)
	for _, p := range a.Profiles {
		f := &wire.ForwardingPipelineConfig_Profile{ProfileName: p.Name, Context: p.Context, Binary: p.Binary}
		for _, n := range p.Pipes {
			f.PipeScope = append(f.PipeScope, uint32(n))
		}
		c.Profiles = append(c.Profiles, f)
		for _, b := range [][]byte{[]byte(p.Name), p.Context, p.Binary, fmt.Append(nil, p.Pipes)} {
			add(b)
		}
	}
	c.P4Name = fmt.Sprintf("%s_%x", a.Name, sum.Sum(nil)[:4])
	return c
}

// ReadConf reads the .conf that p4c writes for bf_switchd. The files that it names
// are relative to its folder.
func ReadConf(file string) (*Artifact, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var conf struct {
		Devices []struct {
			Programs []struct {
				Name      string `json:"program-name"`
				Schema    string `json:"bfrt-config"`
				Pipelines []struct {
					Name    string `json:"p4_pipeline_name"`
					Context string `json:"context"`
					Binary  string `json:"config"`
					Pipes   []int  `json:"pipe_scope"`
				} `json:"p4_pipelines"`
			} `json:"p4_programs"`
		} `json:"p4_devices"`
	}
	if err := json.Unmarshal(text, &conf); err != nil {
		line, why := plain.JSONError(text, err)
		return nil, fmt.Errorf("reading %s:%d: %w", file, line, why)
	}
	if len(conf.Devices) != 1 || len(conf.Devices[0].Programs) != 1 {
		return nil, fmt.Errorf("reading %s: want p4_devices with one device of one program, as p4c writes it", file)
	}
	p := conf.Devices[0].Programs[0]
	if p.Name == "" || p.Schema == "" || len(p.Pipelines) == 0 {
		return nil, fmt.Errorf("reading %s: the program has no program-name, no bfrt-config or no p4_pipelines", file)
	}
	var errs []error
	read := func(name string) []byte {
		if name == "" {
			return nil
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(file), name)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s names a file: %w", file, err))
		}
		return b
	}
	a := &Artifact{Name: p.Name, Schema: read(p.Schema)}
	for _, l := range p.Pipelines {
		a.Profiles = append(a.Profiles, Profile{Name: l.Name, Context: read(l.Context), Binary: read(l.Binary), Pipes: l.Pipes})
	}
	return a, errors.Join(errs...)
}

// Embedded returns the artifact of a program for the embedded switch, which loads the JSON
// document instead of the chip's binary, in all pipes.
func Embedded(p *plan.Pipeline) (*Artifact, error) {
	if p.Schema == nil {
		return nil, fmt.Errorf("%s is for %s, and BfRt for programs for Tofino (tna, t2na)", p.Manifest.Scheme, p.Manifest.Arch)
	}
	schema, err := p.Schema()
	if err != nil {
		return nil, err
	}
	name := strings.NewReplacer("+", "_", "-", "_").Replace(p.Manifest.Scheme)
	return &Artifact{Name: name, Schema: schema, Profiles: []Profile{{Name: "pipe", Binary: p.Config, Pipes: []int{0, 1, 2, 3}}}}, nil
}
