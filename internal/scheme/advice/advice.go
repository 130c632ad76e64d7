// Package advice computes, for a given network, the parameters that papers leave to their users.
// It gives the formula of each.
package advice

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// A Parameter is the advised value of a scheme's parameter in a network.
type Parameter struct {
	Scheme  string `json:"scheme"`
	Name    string `json:"parameter"`
	Value   string `json:"value"`
	Formula string `json:"formula"`
	Source  string `json:"source"`
	Warning string `json:"warning,omitempty"`
}

// An adviser computes the parameters of a scheme from the network's facts.
type adviser struct {
	scheme string
	needs  need
	advise func(Network) ([]Parameter, error)
}

var advisers = []adviser{
	{"letflow", needBuffer, letflow},
	{"presto", 0, presto},
	{"drill", 0, drill},
	{"ar", 0, adaptive},
	{"conga", needBuffer, conga},
	{"hula", 0, hula},
	{"qall", needBuffer, qall},
	{"qdaps", 0, qdaps},
	{"rlb", needHosts, rlb},
	{"trim", needBuffer, trim},
	{"pdlb", needPaths | needBuffer, pdlb},
	{"dhlb", needHosts, dhlb},
}

// Schemes lists the names that For accepts. Each name stands for a family of the catalogue: qall
// includes qall-poly3, rlb includes drill+rlb.
func Schemes() []string {
	return lists.Map(advisers, func(a adviser) string { return a.scheme })
}

// families finds the advisers for a scheme's name.
func families(scheme string) []adviser {
	var list []adviser
	for part := range strings.SplitSeq(scheme, "+") {
		name, rest, _ := strings.Cut(part, "-")
		if signal, _, _ := strings.Cut(rest, "-"); signal == "occupancy" || signal == "drain" {
			name = "ar" // a composition with grades
		}
		if i := slices.IndexFunc(advisers, func(a adviser) bool { return a.scheme == name }); i >= 0 {
			list = append(list, advisers[i])
		}
	}
	return list
}

// ErrNone is returned for a scheme whose parameters do not depend on the network.
var ErrNone = errors.New("no advice")

// For computes the parameters of a scheme, or of all schemes if scheme is "". The network needs
// only the facts that the formulas use.
func For(n Network, scheme string) ([]Parameter, error) {
	asked := advisers
	if scheme != "" {
		if asked = families(scheme); len(asked) == 0 {
			return nil, fmt.Errorf("%w for %q: want one of %s", ErrNone, scheme, strings.Join(Schemes(), ", "))
		}
	}
	n = n.withDefaults()
	for _, a := range asked {
		if err := n.check(a.needs); err != nil {
			return nil, err
		}
	}
	var list []Parameter
	for _, a := range asked {
		more, err := a.advise(n)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.scheme, err)
		}
		for i := range more {
			more[i].Scheme = a.scheme
		}
		list = append(list, more...)
	}
	return list, nil
}

// us writes a time in µs as parameters are written.
func us(d time.Duration) string {
	switch {
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.3gms", float64(d)/1e6)
	case d < time.Microsecond:
		return fmt.Sprintf("%dns", d.Nanoseconds())
	}
	return fmt.Sprintf("%.4gus", float64(d)/1e3)
}

// Set returns the advised values of the named parameters. It is empty for a scheme
// without advice.
func Set(n Network, scheme string, names []string) (map[string]string, error) {
	list, err := For(n, scheme)
	if errors.Is(err, ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	set := map[string]string{}
	for _, p := range list {
		if _, taken := set[p.Name]; !taken && slices.Contains(names, p.Name) {
			set[p.Name] = p.Value
		}
	}
	return set, nil
}

// ticks formats a time in whole µs, the unit of switch clocks. It rounds up, because
// all formulas are lower bounds or orders of magnitude.
func ticks(d time.Duration) string {
	return us((d + time.Microsecond - 1).Truncate(time.Microsecond))
}

func number(v float64) string { return fmt.Sprintf("%.4g", v) }
