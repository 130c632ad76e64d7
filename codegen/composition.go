package codegen

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// A composition is what a program is generated from: a row with its blocks and the
// values of its parameters.
type composition struct {
	row    Row // the requested row
	runs   Row // the row after adaptation to the role
	arch   *architecture
	params Params
	values map[string]Value
	blocks []*block

	poly *fitting.Poly // polynomial of a fitted row; nil: set at run time
	cmax int64         // maximum of the polynomial
}

// maxPort is the highest port with an interface. Programs use some ports above it for
// recirculation.
const maxPort = 499

// complete fills in defaults, and returns an error for unknown parameters.
func (p *Params) complete(row Row) error {
	p.Ports = cmp.Or(p.Ports, 4)
	p.StatePath = cmp.Or(p.StatePath, row.statePath(p.Arch))
	if p.Role == "" {
		p.Role = Roles[0]
	}
	switch {
	case p.Ports < 2 || p.Ports > MaxPaths:
		return fmt.Errorf("%d paths: want 2 to %d, the programs are unrolled over the paths", p.Ports, MaxPaths)
	case !slices.Contains(StatePaths, p.StatePath):
		return unknown("state path", p.StatePath, StatePaths)
	case !slices.Contains(Roles, p.Role):
		return unknown("role", p.Role, Roles)
	case p.StatePath == "shared" && p.Arch != "" && p.Arch != software.name:
		return fmt.Errorf("state path shared: ingress and egress of %s have no registers in common, want recirc", p.Arch)
	case p.StatePath == cutCopies && p.Arch != "" && p.Arch != software.name:
		return fmt.Errorf("state path %s: programs for %s always cut their copies, want recirc", cutCopies, p.Arch)
	case p.MaxPort > maxPort:
		return fmt.Errorf("port %d: want at most %d, those above lead round within the switch", p.MaxPort, maxPort)
	case row.like(signal) != "fitted" && p.Printed:
		return fmt.Errorf("errata printed: %s has none that could be kept", row.Name)
	case p.Printed && (p.Coeffs != nil || p.Runtime):
		return errors.New("errata printed: the coefficients are not the paper's")
	case row.like(signal) != "fitted" && (p.Coeffs != nil || p.Runtime):
		return fmt.Errorf("coefficients given: %s has no polynomial", row.Name)
	}
	return nil
}

// transit reports whether the switch only forwards according to decisions at the
// edge.
func (c *composition) transit() bool { return c.row.block(signal).Edge && !c.Edge() }

// Edge reports whether hosts are attached to the switch.
func (c *composition) Edge() bool { return c.params.Role == "leaf" || c.params.Role == "tor" }

// fit sets the polynomial.
func (c *composition) fit() error {
	degree := int(c.values["degree"].Int)
	switch {
	case c.params.Printed && degree != 3:
		return fmt.Errorf("errata printed: %s has none that could be kept, a polynomial of degree 3 has", c.row.Name)
	case c.params.Runtime:
		return nil
	case c.params.Coeffs != nil:
		c.poly = c.params.Coeffs
	default:
		p, ok := fitting.Paper(degree, c.params.Printed)
		if !ok {
			c.params.Runtime = true // the paper does not print the coefficients, so the controller sets them
			return nil
		}
		p = p.WithTau(c.values["tau"].Int / 1000)
		c.poly = &p
	}
	if c.poly.Degree != degree {
		return fmt.Errorf("the polynomial is of degree %d: %s has degree %d", c.poly.Degree, c.row.Name, degree)
	}
	if err := c.poly.Validate(); err != nil {
		return fmt.Errorf("the polynomial: %w", err)
	}
	c.cmax = c.poly.Max()
	return nil
}

// title returns the title of the row with the values of its parameters.
func (c *composition) title() string {
	values := map[string]string{}
	for name, value := range c.values {
		values[name] = value.Text
	}
	return c.row.titled(values)
}

// N returns the size of the largest group.
func (c *composition) N() int { return c.params.Ports }

// Last returns the last slot.
func (c *composition) Last() int { return c.params.Ports - 1 }

// Penultimate returns the slot before the last.
func (c *composition) Penultimate() int { return c.params.Ports - 2 }

// Slots returns the slots of the largest group.
func (c *composition) Slots() []int { return count(c.params.Ports) }

// Turns returns the numbers, from 1, of the other paths that a rerouted packet may
// be offered.
func (c *composition) Turns() []int { return count(c.params.Ports)[1:] }

// count returns the numbers below n.
func count(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// Before returns k-1.
func (c *composition) Before(k int) int { return k - 1 }

// Int returns the value of a parameter in the unit of the program.
func (c *composition) Int(name string) int64 {
	value, ok := c.values[name]
	if !ok {
		panic(fmt.Errorf("%s has no parameter %q", c.row.Name, name)) // an error in a template
	}
	return c.arch.count(c.row.catalogue().param(name), value)
}

// Word returns the value of a parameter as users write it.
func (c *composition) Word(name string) string { return c.values[name].Text }

// Cut reports whether the clone session cuts off the payload of reports.
func (c *composition) Cut() bool { return c.params.StatePath == cutCopies }

// Shared reports whether egress writes registers that ingress reads.
func (c *composition) Shared() bool { return c.params.StatePath == "shared" }

// In reports whether a part is among the row's blocks.
func (c *composition) In(name string) bool {
	b := c.arch.lookup(part, name)
	return b != nil && slices.Contains(c.blocks, b)
}

// percent formats a share.
func percent(share float64) string { return fmt.Sprintf("%.2g %%", 100*share) }

// duration formats a time in ns.
func duration(ns int64) string {
	return strings.Replace(time.Duration(ns).String(), "µ", "u", 1)
}

// wrap breaks a comment into lines.
func wrap(text string) []string { return plain.Wrap(text, 76) }
