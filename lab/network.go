package lab

import (
	"bytes"
	"fmt"
	"time"

	"github.com/p4lb/p4lb/fabric"
)

// A LinkChange makes links of the topology other than they are, from the start.
type LinkChange struct {
	Link  string  `yaml:"link"` // such as l1-s2, l1:3, or s1 for all links of it
	Rate  Bitrate `yaml:"rate"`
	Delay Time    `yaml:"delay"`
	Queue int     `yaml:"queue"`
	Down  bool    `yaml:"down"`
}

// network makes the topology of a setting, with its links as changed, and those
// down that fail from the start.
func (s *Setting) network(read Reader) (*fabric.Topology, error) {
	t, err := s.Topology.make(read)
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	for i := range s.Links {
		if t, err = s.Links[i].apply(t); err != nil {
			return nil, fmt.Errorf("links[%d]: %w", i, err)
		}
	}
	for _, name := range s.Fail {
		links, err := t.FindLinks(name)
		if err != nil {
			return nil, fmt.Errorf("fail: %w", err)
		}
		t = t.Fail(links...)
	}
	return t, nil
}

// make makes the network by its name or maker.
func (n Network) make(read Reader) (*fabric.Topology, error) {
	switch {
	case n.LeafSpine != nil:
		m := n.LeafSpine
		return fabric.LeafSpine{
			Name: "leaf-spine", Leaves: m.Leaves, Spines: m.Spines, Parallel: m.Parallel, Hosts: m.Hosts,
			Oversubscription: m.Oversubscription, Buffer: fabric.Size(m.Buffer), Links: m.links(),
		}.Make()
	case n.FatTree != nil:
		m := n.FatTree
		return fabric.FatTree{Name: "fat-tree", K: m.K, Hosts: m.Hosts, Buffer: fabric.Size(m.Buffer), Links: m.links()}.Make()
	}
	if text, err := read(n.Name); err == nil {
		return fabric.Load(n.Name, text)
	}
	p, err := fabric.PresetNamed(n.Name)
	if err != nil {
		return nil, fmt.Errorf("no file of that name, and %w (p4lb topo presets lists them)", err)
	}
	return p.Make()
}

func (l Links) links() fabric.Links {
	return fabric.Links{
		HostRate: fabric.Rate(l.HostRate), Rate: fabric.Rate(l.Rate),
		HostDelay: time.Duration(l.HostDelay), Delay: time.Duration(l.Delay), Queue: l.Queue,
	}
}

// apply writes the topology anew with some links changed: one that is made
// cannot be.
func (c *LinkChange) apply(t *fabric.Topology) (*fabric.Topology, error) {
	places, err := c.places(t)
	if err != nil {
		return nil, err
	}
	links := append([]fabric.Link(nil), t.Links...)
	for _, i := range places {
		l := &links[i]
		if c.Rate > 0 {
			l.Rate = fabric.Rate(c.Rate)
		}
		if c.Delay > 0 {
			l.Delay = time.Duration(c.Delay)
		}
		if c.Queue > 0 {
			l.Queue = c.Queue
		}
		l.Down = l.Down || c.Down
	}
	head, _, _ := bytes.Cut(t.YAML(), []byte("\nlinks:\n"))
	b := bytes.NewBuffer(append(head, "\nlinks:\n"...))
	for _, l := range links {
		fmt.Fprintf(b, "  - {ends: [%s, %s], rate: %v, delay: %s, down: %t", end(l.A), end(l.B), l.Rate, fabric.FormatDelay(l.Delay), l.Down)
		if l.Queue > 0 {
			fmt.Fprintf(b, ", queue: %d", l.Queue)
		}
		b.WriteString("}\n")
	}
	return fabric.Load(t.Name, b.Bytes())
}

// end is the end of a link in a form that YAML takes for text.
func end(e fabric.End) string { return fmt.Sprintf("%q", e.String()) }

// places finds the links.
func (c *LinkChange) places(t *fabric.Topology) ([]int, error) {
	if t.Switch(c.Link) == nil {
		return t.FindLinks(c.Link)
	}
	var list []int
	for _, p := range t.Ports(c.Link) {
		list = append(list, p.Link)
	}
	return list, nil
}
