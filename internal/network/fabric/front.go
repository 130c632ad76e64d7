package fabric

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/tree"
)

// A Front maps the names of a Tofino switch's front-panel ports, such as 1/0, to device
// ports. The board of the switch determines it.
type Front map[string]int

// parseFront parses the name of a front-panel port: a connector and a channel.
func parseFront(name string) (connector, channel int, err error) {
	a, b, ok := strings.Cut(name, "/")
	connector, err = strconv.Atoi(a)
	channel, wrong := strconv.Atoi(b)
	if !ok || err != nil || wrong != nil || connector < 1 || channel < 0 || name != fmt.Sprintf("%d/%d", connector, channel) {
		return 0, 0, fmt.Errorf("front-panel port %q: want a connector and a channel, as in 1/0", name)
	}
	return connector, channel, nil
}

// Names lists the names in the order of connectors and channels.
func (f Front) Names() []string {
	return slices.SortedFunc(maps.Keys(f), func(a, b string) int {
		ac, an, _ := parseFront(a) // frontOf has checked it
		bc, bn, _ := parseFront(b)
		return cmp.Or(cmp.Compare(ac, bc), cmp.Compare(an, bn))
	})
}

// FrontPorts returns the front-panel ports in the links of a switch.
func (t *Topology) FrontPorts(name string) Front {
	ports := Front{}
	sw := t.Switch(name)
	if sw == nil {
		return ports
	}
	for front, n := range sw.Front {
		if slices.ContainsFunc(t.Ports(name), func(p Port) bool { return p.Number == n }) {
			ports[front] = n
		}
	}
	return ports
}

// String formats the map as in a topology file.
func (f Front) String() string {
	return "{" + strings.Join(lists.Map(f.Names(), func(name string) string { return fmt.Sprintf("%s: %d", name, f[name]) }), ", ") + "}"
}

// port returns the device port of a named port of a switch.
func (f Front) port(sw, name string) (int, error) {
	if _, _, err := parseFront(name); err != nil {
		return 0, err
	}
	switch n, ok := f[name]; {
	case ok && n == 0:
		return 0, fmt.Errorf("%s of %s is device port 0, which cannot be in a topology: use another port", name, sw)
	case ok:
		return n, nil
	}
	if len(f) == 0 {
		return 0, fmt.Errorf("%s has no front-panel: want its device ports, as in front-panel: {1/0: 132}, which p4lb topo ports prints", sw)
	}
	const most = 8
	list := f.Names()
	text := strings.Join(list, ", ")
	if len(list) > most {
		text = fmt.Sprintf("%s … %s", strings.Join(list[:most-1], ", "), list[len(list)-1])
	}
	return 0, fmt.Errorf("front-panel of %s has no %s: want one of %s", sw, name, text)
}

// frontOf reads a map of front-panel ports. It returns nil if there is none.
func (r *reader) frontOf(v tree.Node, what string) Front {
	if v.Kind == tree.Null {
		return nil
	}
	front, named := Front{}, map[int]string{}
	for _, f := range r.object(v, what+": front-panel") {
		if _, _, err := parseFront(f.Key); err != nil {
			r.errorf(f.Line, "%s: %v", what, err)
			continue
		}
		var n int
		parse(r, f.Node, what+": front-panel "+f.Key, within(0, MaxPort), &n)
		if other := named[n]; other != "" {
			r.errorf(f.Line, "%s: front-panel: %s and %s are both device port %d", what, other, f.Key, n)
		}
		front[f.Key], named[n] = n, f.Key
	}
	return front
}
