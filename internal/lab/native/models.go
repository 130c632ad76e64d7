// Package native runs the reference models in switches instead of programs. It configures them
// from manifests and plans.
package native

import (
	"fmt"
	"strings"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/scheme/model"
	"github.com/p4lb/p4lb/internal/sim"
)

// ModelOf returns the model for a manifest. poly returns the polynomial of a degree
// with T normalised by tau in µs, for schemes with a fitted signal.
func ModelOf(m *manifest.Manifest, poly func(degree int, tau int64) *fitting.Poly) (sim.Model, error) {
	out := sim.Model{
		Config: model.Config{
			Granularity: m.Granularity, Signal: m.Signal, Choice: m.Choice, Guard: m.Guard,
			Paths: m.Paths, Edge: m.Role == "leaf" || m.Role == "tor",
			Direct: m.StatePath == manifest.Shared, Ghost: m.StatePath == manifest.Ghost,
		},
		ReportLen: headerLen(m, manifest.ReportHeader), OverlayLen: headerLen(m, manifest.OverlayHeader),
		NoticeLen: headerLen(m, manifest.WarningHeader), BridgeLen: headerLen(m, manifest.BridgeHeader),
		AgainLen: headerLen(m, manifest.RoundHeader),
		Cells:    map[string]int{},
	}
	var woven *model.ConWeave
	if m.Granularity == wovenGranularity {
		woven, out.OverlayLen = new(model.ConWeave), wovenHeader
		out.Granularity, out.Signal, out.Choice, out.Guard = "flow", "none", "hash", "none"
	}
	if m.Arch.Hardware() {
		out.Hardware = HardwareOf(m)
	}
	for _, p := range m.VirtualPorts {
		if p.Kind == manifest.RecirculationPort && out.AgainPort == 0 {
			out.AgainPort = p.Port
		}
	}
	for _, s := range m.CloneSessions {
		if s.Kind == manifest.WarningCopies {
			out.NoticeSession = s.Session
		} else {
			out.ReportSession = s.Session
		}
		out.MirrorLen = max(out.MirrorLen, s.Bytes)
	}
	for _, g := range m.MulticastGroups {
		if g.PerPort {
			out.ProbesFrom = g.Group
		} else {
			out.ProbesUp = g.Group
		}
	}
	for _, r := range m.Registers {
		out.Cells[r.Name] = r.Size
	}
	trims := m.Guard == manifest.TrimGuard
	if trims {
		out.Guard = "none" // the simulator does this check
	}
	for _, v := range m.Parameters {
		switch {
		case trims && v.Name == "trimat":
			out.TrimAt = int(v.Number)
			continue
		case trims && v.Name == "trimlen":
			out.TrimLen = int(v.Number)
			continue
		case trims && strings.HasPrefix(v.Name, "trimm"):
			continue // the values are DSCPs
		case v.Name == "degree" && m.Signal == "fitted":
			out.Poly = poly(int(v.Number), tau(m))
		case v.Name == "ecnk":
			out.ProbeMark = int(v.Number)
			if out.Hardware != nil { // in cells per packet of full length
				out.ProbeMark = int(v.Number) * 1500 / out.Hardware.Cell
			}
		}
		if woven != nil && woven.Set(v.Name, v.Number) {
			continue
		}
		if err := out.Set(v.Name, v.Number); err != nil {
			return out, fmt.Errorf("the model of %s: %w", m.Scheme, err)
		}
	}
	if woven != nil {
		out.Extend = sim.ConWeave(*woven)
	}
	return out, nil
}

// wovenGranularity is the name of ConWeave's granularity in its manifest.
const wovenGranularity = "epoch"

// wovenHeader is the number of bytes that ConWeave adds to an RDMA packet: TX_TSTAMP and
// TAIL_TX_TSTAMP. The other fields are in reserved bits of the BTH.
const wovenHeader = 4

// tau returns the idle interval in µs.
func tau(m *manifest.Manifest) int64 {
	for _, v := range m.Parameters {
		if v.Name == "tau" {
			return v.Number / 1000
		}
	}
	return 0
}

// HardwareOf returns the hardware settings of a manifest.
func HardwareOf(m *manifest.Manifest) *model.Hardware {
	h := &model.Hardware{Cell: codegen.CellBytes(string(m.Arch))}
	for _, t := range m.Tables {
		switch {
		case t.Baked == nil:
		case t.Baked.Values != nil:
			h.Index = t.Baked.Values
		default:
			h.Weights, h.Zero = t.Baked.Weights, t.Baked.Zero
		}
	}
	for _, r := range m.Registers {
		if r.Index == manifest.ByFlow {
			h.Flows = r.Size
		}
	}
	return h
}

// headerLen returns the length of a header, or 0 if there is no header of this kind.
func headerLen(m *manifest.Manifest, kind manifest.HeaderKind) int {
	if h := m.Header(kind); h != nil {
		return h.Bytes()
	}
	return 0
}

// TablesOf returns the tables of a switch that runs a model.
func TablesOf(s *plan.Switch) sim.Tables {
	t := sim.Tables{Sessions: map[int]int{}, Multicast: map[int][]int{}}
	for _, e := range s.Entries {
		entry := sim.Entry{Table: e.Table, Action: e.Action, Args: map[string]uint64{}}
		for _, m := range e.Match {
			entry.Key = append(entry.Key, sim.Key{Value: m.Value, Bits: m.Bits, Width: m.Width, Mask: m.Mask})
		}
		for _, a := range e.Args {
			entry.Args[a.Name] = a.Value
		}
		t.Entries = append(t.Entries, entry)
	}
	for _, c := range s.Sessions {
		t.Sessions[c.ID] = c.Port
	}
	for _, g := range s.Groups {
		t.Multicast[g.ID] = g.Ports
	}
	return t
}
