package spec

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/sim"
)

// A UECSpec is sim.UEC in a file; omitted values have its defaults.
type UECSpec struct {
	Control     string `yaml:"control"`      // of the window: nscc, per-mark or constant
	Loss        string `yaml:"loss"`         // how losses are detected: trim, timeout or gap
	BaseRTT     Time   `yaml:"base-rtt"`     // of the network without queues
	TargetDelay Time   `yaml:"target-delay"` // of queues
	AckBytes    Size   `yaml:"ack-bytes"`    // to an acknowledgment
	Headers     Size   `yaml:"headers"`
	Answer      Size   `yaml:"answer"`
}

// tuning is the simulator's form. Names have been checked.
func (u *UECSpec) tuning() sim.UEC {
	return sim.UEC{
		Control: sim.UECControl(max(0, slices.Index(sim.UECControls(), u.Control))),
		Loss:    sim.UECLoss(max(0, slices.Index(sim.UECLosses(), u.Loss))),
		BaseRTT: time.Duration(u.BaseRTT), Target: time.Duration(u.TargetDelay), AckBytes: int64(u.AckBytes),
		Headers: int(u.Headers), Answer: int(u.Answer),
	}
}

func (u *UECSpec) check() error {
	for _, name := range []struct {
		key, value string
		want       []string
	}{{"control", u.Control, sim.UECControls()}, {"loss", u.Loss, sim.UECLosses()}} {
		if name.value != "" && !slices.Contains(name.want, name.value) {
			return fmt.Errorf("uec: %s %q: want %s", name.key, name.value, orList(name.want))
		}
	}
	for _, h := range []struct {
		key   string
		bytes Size
	}{{"headers", u.Headers}, {"answer", u.Answer}} {
		if h.bytes > 0 && (h.bytes < sim.UDPHeaders || h.bytes > sim.MostHeaders) {
			return fmt.Errorf("uec: %s of %v: want %d bytes (Ethernet, IP and UDP) to %d", h.key, h.bytes, sim.UDPHeaders, sim.MostHeaders)
		}
	}
	return nil
}

// Uses reports whether flows have a kind of transport.
func (s *Setting) Uses(kind string) bool {
	return s.Transport.Kind == kind || slices.ContainsFunc(s.Traffic, func(t Traffic) bool { return t.Kind == kind })
}

// Trims reports whether switches trim packets.
func (s *Setting) Trims() bool {
	return s.Uses("uec") && cmp.Or(s.Transport.UEC.Loss, sim.UECLosses()[sim.UECTrim]) == sim.UECLosses()[sim.UECTrim]
}

// checkTrim returns an error if switches of a case cannot trim packets.
func (x *Experiment) checkTrim(c *Case) error {
	if !c.Trims() {
		return nil
	}
	if w := &c.Switches; w.PFC != nil && *w.PFC {
		return errors.New("uec: loss trim with pfc: queues have no limit then, so nothing is trimmed: want loss timeout or gap, or pfc: false")
	}
	for _, s := range x.SchemesOf(c) {
		if s.Arch != "" && s.Arch != codegen.Archs[0] {
			return fmt.Errorf("uec: loss trim with %s: the traffic manager of Tofino drops whole packets: want loss timeout or gap", s.Label)
		}
	}
	return nil
}
