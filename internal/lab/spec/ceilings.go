package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// A scheme that reduces an effect cannot save more than the effect costs, and the lab can remove
// the effect. A ceiling is a case of an experiment without the effect. The gain of the compared
// row in this case is an upper bound for every scheme.
const (
	NoPauses  = "no-pauses"  // PFC does not pause, because buffers never fill
	KeepEarly = "keep-early" // receivers keep early packets, and senders ignore reordering
	FastCore  = "fast-core"  // links between switches are ten times faster
	Oracle    = "oracle"     // each packet takes the path with the shortest queues, all of which are known
)

// ceilings lists the effects that can be removed.
var ceilings = []string{NoPauses, KeepEarly, FastCore, Oracle}

const (
	endlessBuffer = Size(2000 << 20)
	endlessPause  = endlessBuffer / 2
	endlessDup    = 1 << 20 // duplicate ACKs
	coreFactor    = 10
	OracleRow     = "oracle"
)

// addCeilings adds the cases. Each has the rows that the targets of its original case compare
// with, or all rows if there are no such targets.
func (x *Experiment) addCeilings(src *source) error {
	if len(x.Ceiling) == 0 {
		return nil
	}
	for i, kind := range x.Ceiling {
		if !slices.Contains(ceilings, kind) || slices.Contains(x.Ceiling[:i], kind) {
			return src.wrong(fmt.Sprintf("ceiling[%d]", i), fmt.Errorf("%q: want each once of %s", kind, strings.Join(ceilings, ", ")))
		}
	}
	every := lists.Map(x.Schemes, func(s Scheme) string { return s.Label })
	if slices.Contains(x.Ceiling, Oracle) {
		if slices.Contains(every, OracleRow) {
			return src.wrong("ceiling", fmt.Errorf("a row is called %s, which is that of the ceiling", OracleRow))
		}
		x.Schemes = append(x.Schemes, Scheme{
			Scheme: "drill", Label: OracleRow, Engine: EngineNative, StatePath: "shared", Set: map[string]string{"d": "16", "m": "0"},
		})
	}
	for i := range x.Cases {
		c := &x.Cases[i]
		if len(c.Schemes) == 0 {
			c.Schemes = every
		}
	}
	for _, c := range slices.Clone(x.Cases) {
		for i, kind := range x.Ceiling {
			over := c
			over.Name, over.ceilingOf, over.ceiling = CeilingName(c.Name, kind), c.Name, kind
			over.Schemes = x.compared(&c)
			if kind == Oracle {
				over.Schemes = []string{OracleRow}
			}
			if err := over.Setting.removeEffect(kind); err != nil {
				return src.wrong(fmt.Sprintf("ceiling[%d]", i), fmt.Errorf("%s: %w", kind, err))
			}
			x.Cases = append(x.Cases, over)
		}
	}
	return nil
}

// CeilingName returns the name of the case that is a ceiling of another case.
func CeilingName(of, kind string) string { return strings.TrimSpace(of + " " + kind) }

// compared lists the rows that a case's targets compare with.
func (x *Experiment) compared(c *Case) []string {
	var list []string
	for _, t := range x.Targets {
		if t.Case == c.Name && t.Against != "" {
			list = lists.Add(list, t.Against)
		}
	}
	return lists.Or(list, c.Schemes)
}

// removeEffect removes an effect from a setting.
func (s *Setting) removeEffect(kind string) error {
	switch kind {
	case NoPauses:
		if s.Switches.PFC == nil || !*s.Switches.PFC {
			return errors.New("without pfc nothing is paused")
		}
		s.Switches.Pause = endlessPause
		return s.Topology.change(func(buffer *Size, _ *Links) error {
			*buffer = endlessBuffer
			return nil
		})
	case KeepEarly:
		return s.Transport.keepEarly()
	case FastCore:
		s.Traffic = slices.Clone(s.Traffic)
		for i := range s.Traffic {
			s.Traffic[i].Grown = coreFactor // flow sizes stay the same
		}
		s.Links = slices.Clone(s.Links)
		for i := range s.Links {
			s.Links[i].Rate *= coreFactor
		}
		return s.Topology.change(func(_ *Size, l *Links) error {
			if l.Rate == 0 {
				return errors.New("the topology does not say how fast its core is: want rate")
			}
			l.Rate *= coreFactor
			return nil
		})
	}
	s.Switches.Knowledge = everywhere
	return s.Transport.keepEarly()
}

// change changes the arguments of a topology maker.
func (n *Network) change(f func(buffer *Size, l *Links) error) error {
	switch {
	case n.LeafSpine != nil:
		m := *n.LeafSpine
		n.LeafSpine = &m
		return f(&m.Buffer, &m.Links)
	case n.Rail != nil:
		m := *n.Rail
		n.Rail = &m
		return f(&m.Buffer, &m.Links)
	case n.FatTree != nil:
		m := *n.FatTree
		n.FatTree = &m
		return f(&m.Buffer, &m.Links)
	}
	return fmt.Errorf("topology %s is a file or preset: want leaf-spine or fat-tree", n.Name)
}

// keepEarly makes reordering free of cost.
func (t *TransportSpec) keepEarly() error {
	switch t.Kind {
	case "dcqcn":
		t.RDMA.Nack, t.RDMA.NackAs, t.RDMA.NackEvery, t.RDMA.Notices, t.RDMA.Repeat = nackNone, "", 0, "", "" // early packets cause no other answer
	case "tcp", "dctcp":
		t.DupAck, t.MaxDup = endlessDup, 0
	default:
		return fmt.Errorf("transport %s repeats nothing, and is not affected by reordering", t.Kind)
	}
	return nil
}
