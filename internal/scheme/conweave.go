package scheme

import (
	"errors"
	"fmt"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// ConWeave is a scheme without a P4 program: only the native engine of the simulator has a model
// of it. Its switches have the tables of ECMP.
const ConWeave = "conweave"

// ConWeaveRow returns the description of ConWeave for lists of schemes. Its blocks are not in the
// catalogue.
func ConWeaveRow() codegen.Row {
	return codegen.Row{
		Name: ConWeave, Title: "flows that move within a round trip, put in order at the last switch",
		Source:      "Song et al., ConWeave, SIGCOMM 2023",
		Granularity: "epoch", Signal: "round-trip", Choice: "uniform", Guard: "reorder",
	}
}

// conWeave is the scheme.
type conWeave struct{}

func (conWeave) Name() string    { return ConWeave }
func (conWeave) Archs() []string { return nil }
func (conWeave) Native() error   { return nil }

// errModelOnly explains why there is no program.
var errModelOnly = fmt.Errorf("%s has no P4 program: p4lb has a model of it for the simulator: want p4lb lab with the engine native", ConWeave)

// Parameters lists the constants, with the defaults of run.py in conweave-ns3 for leaf-spine
// networks.
func (conWeave) Parameters(arch string) ([]codegen.Param, error) {
	if arch != "" && arch != codegen.Archs[0] {
		return nil, errModelOnly
	}
	const from = "conweave-ns3, run.py"
	return []codegen.Param{
		{Name: "reply", Unit: codegen.Time, Default: "4us", Min: "0us", Max: "1s", Source: from, Meaning: "theta_reply: a reply may take this much longer than the round trip without queues"},
		{Name: "busy", Unit: codegen.Time, Default: "16us", Min: "0us", Max: "1s", Source: from, Meaning: "theta_path_busy: a path with a marked packet is avoided for this time"},
		{Name: "resume", Unit: codegen.Time, Default: "16us", Min: "0us", Max: "1s", Source: from + "; fat tree with PFC: 64us", Meaning: "theta_resume_extra: a queue waits this much longer than the estimate for its TAIL"},
		{Name: "inactive", Unit: codegen.Time, Default: "300us", Min: "1us", Max: "1s", Source: from + "; fat tree: 1ms", Meaning: "theta_inactive: a longer pause than this begins an epoch on any path"},
		{Name: "wait", Unit: codegen.Time, Default: "200us", Min: "0us", Max: "1s", Source: from + "; fat tree: 300us, with PFC 600us", Meaning: "a queue waits so long for a TAIL without an estimate, plus resume"},
		{Name: "queues", Unit: codegen.Number, Default: "24", Min: "0", Max: "127", Source: "leaf_conweave, macro.p4: 3 stages of 8 at 100 Gb/s", Meaning: "queues of a port for reordering; without a free one packets pass as they come"},
	}, nil
}

// Build returns the manifest of a switch, without a program.
func (c conWeave) Build(p codegen.Params) (*Program, error) {
	known, err := c.Parameters(p.Arch)
	if err != nil {
		return nil, err
	}
	if p.Coeffs != nil || p.Runtime {
		return nil, errors.New(ConWeave + " uses no fitted polynomial: leave out the coefficients")
	}
	values, err := codegen.Values(known, p.Set)
	if err != nil {
		return nil, err
	}
	row, err := codegen.Lookup("ecmp")
	if err != nil {
		return nil, err
	}
	p.Set = nil
	made, err := codegen.Generate(row, p)
	if err != nil {
		return nil, err
	}
	m, described := made.Manifest, ConWeaveRow()
	m.Scheme, m.Title = ConWeave, described.Title
	m.Granularity, m.Signal, m.Choice, m.Guard = described.Granularity, described.Signal, described.Choice, described.Guard
	text := made.P4 + ConWeave + " " + m.Role
	for _, k := range known {
		v := values[k.Name]
		m.Parameters = append(m.Parameters, manifest.Parameter{Name: v.Name, Text: v.Text, Number: v.Int})
		text += fmt.Sprintf(" %s=%s", v.Name, v.Text)
	}
	modelled := New(ConWeave, "", m, Digest([]byte(text)), func() ([]byte, *p4.Program, error) { return nil, nil, errModelOnly })
	modelled.Tables = newGenerated(made, p.Arch)
	return modelled, nil
}
