package spec

import (
	"fmt"
	"slices"
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

// Network makes the topology of a setting, with its links as changed, and those
// down that fail from the start.
// An error is a *keyError.
func (s *Setting) Network(read Reader) (*fabric.Topology, error) {
	t, err := s.Topology.make(read)
	if err != nil {
		return nil, &keyError{"topology", err}
	}
	for i := range s.Links {
		if t, err = s.Links[i].apply(t); err != nil {
			return nil, &keyError{fmt.Sprintf("links[%d]", i), err}
		}
	}
	for _, name := range s.Fail {
		links, err := t.FindLinks(name)
		if err != nil {
			return nil, &keyError{"fail", err}
		}
		t = t.Fail(links...)
	}
	return t, nil
}

// A keyError is what is wrong with a key of a setting.
type keyError struct {
	key string
	err error
}

// Error says which key it is.
func (e *keyError) Error() string { return e.key + ": " + e.err.Error() }

// Unwrap is what is wrong with it.
func (e *keyError) Unwrap() error { return e.err }

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

// apply makes the topology with some links changed.
func (c *LinkChange) apply(t *fabric.Topology) (*fabric.Topology, error) {
	places, err := c.places(t)
	if err != nil {
		return nil, err
	}
	links := slices.Clone(t.Links)
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
	return t.WithLinks(links)
}

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
