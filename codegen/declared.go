package codegen

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/manifest"
)

var (
	headerLine = regexp.MustCompile(`^header (\w+)_t \{$`)
	typeLine   = regexp.MustCompile(`^typedef bit<(\d+)> (\w+);`)
	fieldLine  = regexp.MustCompile(`^    (?:bit<(\d+)>|(\w+)) +(\w+);(?: +// (.*))?$`)
	actionLine = regexp.MustCompile(`^    action (\w+)\((.*)\) \{$`)
	tableLine  = regexp.MustCompile(`^    table (\w+) \{$`)
	keyLine    = regexp.MustCompile(`^            ([\w.]+(?:\[[\w:]+\])?): (\w+)(?: @name\("(\w+)"\))?;$`)
	entryLine  = regexp.MustCompile(`^            (\w+);$`)
	joined     = regexp.MustCompile(`,\n +`) // lists that go on
	blockLine  = regexp.MustCompile(`^control (\w+)\(`)
)

// declared completes the manifest with what the program itself says: the fields
// of headers, the keys and the actions of tables. What the templates say of them
// themselves stays. The lines are layOut's.
func declared(m *manifest.Manifest, text string) error {
	headers := map[string]*manifest.Header{}
	for i := range m.Headers {
		headers[m.Headers[i].Name] = &m.Headers[i]
	}
	tables := map[string]*tableReader{}
	for i := range m.Tables {
		tables[m.Tables[i].Name] = newTableReader(&m.Tables[i])
	}
	var control, unknown string
	var header *headerReader
	var table *tableReader
	actions, types := map[string]string{}, map[string]string{"PortId_t": "9"}
	for line := range strings.Lines(joined.ReplaceAllString(text, ", ")) {
		line = strings.TrimSuffix(line, "\n")
		if f := blockLine.FindStringSubmatch(line); f != nil {
			control = f[1]
		} else if f := headerLine.FindStringSubmatch(line); f != nil {
			header = newHeaderReader(headers[f[1]])
		} else if f := typeLine.FindStringSubmatch(line); f != nil {
			types[f[2]] = f[1]
		} else if f := fieldLine.FindStringSubmatch(line); f != nil && header != nil {
			width, err := strconv.Atoi(f[1] + types[f[2]])
			if err != nil {
				return fmt.Errorf("header %s: field %s of the type %s, whose width is not known", header.Name, f[3], f[2])
			}
			header.add(f[3], width, f[4])
		} else if f := actionLine.FindStringSubmatch(line); f != nil {
			actions[f[1]] = f[2]
		} else if f := tableLine.FindStringSubmatch(line); f != nil {
			if table, unknown = tables[control+"."+f[1]], ""; table == nil {
				unknown = control + "." + f[1]
			}
		} else if line == "        const entries = {" {
			unknown = "" // the program fills it itself
		} else if f := keyLine.FindStringSubmatch(line); f != nil && table != nil {
			table.addKey(cmp.Or(f[3], f[1]), f[2])
		} else if f := entryLine.FindStringSubmatch(line); f != nil && table != nil {
			table.addAction(f[1], actions[f[1]])
		} else if line == "}" {
			header = nil
		} else if line == "    }" {
			if table = nil; unknown != "" {
				return fmt.Errorf("the manifest does not know table %s", unknown)
			}
		}
	}
	return nil
}

// A headerReader puts the fields of a header in the program's order.
type headerReader struct {
	*manifest.Header
	said []manifest.HeaderField // by the template
}

func newHeaderReader(h *manifest.Header) *headerReader {
	if h == nil {
		return nil
	}
	r := &headerReader{h, h.Fields}
	h.Fields = nil
	return r
}

func (r *headerReader) add(name string, width int, meaning string) {
	f := manifest.HeaderField{Name: name, Width: width, Meaning: meaning}
	if i := slices.IndexFunc(r.said, func(s manifest.HeaderField) bool { return s.Name == name }); i >= 0 {
		f.Carries, f.Value = r.said[i].Carries, r.said[i].Value
	}
	r.Fields = append(r.Fields, f)
}

// A tableReader likewise completes a table.
type tableReader struct {
	*manifest.Table
	keys    []manifest.Key
	actions []manifest.Action
}

func newTableReader(t *manifest.Table) *tableReader {
	r := &tableReader{t, t.Keys, t.Actions}
	t.Keys, t.Actions = nil, nil
	return r
}

func (r *tableReader) addKey(name, match string) {
	k := manifest.Key{Name: name, Match: match, Carries: factOf(r.Purpose, name)}
	if i := slices.IndexFunc(r.keys, func(s manifest.Key) bool { return s.Name == name }); i >= 0 {
		k.Carries, k.Value = r.keys[i].Carries, r.keys[i].Value
	}
	r.Keys = append(r.Keys, k)
}

func (r *tableReader) addAction(name, params string) {
	a := manifest.Action{Name: name}
	for p := range strings.SplitSeq(params, ", ") {
		if p = p[strings.LastIndexByte(p, ' ')+1:]; p != "" {
			a.Params = append(a.Params, r.param(name, p))
		}
	}
	r.Actions = append(r.Actions, a)
}

// param is a parameter: one such as port_3 is about a path.
func (r *tableReader) param(action, name string) manifest.Param {
	p := manifest.Param{Name: name, Carries: factOf(r.Purpose, name)}
	if base, slot, ok := strings.Cut(name, "_"); ok && r.Purpose == manifest.Group {
		if n, err := strconv.Atoi(slot); err == nil {
			p.Carries, p.Slot = factOf(r.Purpose, base), n
		}
	}
	for _, a := range r.actions {
		for _, said := range a.Params {
			if a.Name == action && said.Name == name {
				return said
			}
		}
	}
	return p
}

// factOf is what the templates mean by a name in a table for a purpose.
func factOf(purpose manifest.Purpose, name string) manifest.Fact {
	switch {
	case purpose == manifest.BakedTable || purpose == manifest.Program || purpose == "":
		return ""
	case purpose == manifest.Polynomial:
		return manifest.Coefficient
	case name == "id" && purpose != manifest.Leaf:
		return manifest.NodeNumber
	}
	return facts[name]
}

// facts are what the templates mean by names of fields and of parameters.
var facts = map[string]manifest.Fact{
	"hdr.ipv4.dst": manifest.Destination, "hdr.ipv4.src": manifest.Destination,
	"meta.gid": manifest.GroupID, "meta.slot": manifest.SlotNumber,
	"std.egress_port": manifest.EgressPort, "eg.egress_port": manifest.EgressPort,
	"std.ingress_port": manifest.IngressPort, "ig.ingress_port": manifest.IngressPort, "meta.in_port": manifest.IngressPort,
	"hdr.probe.origin": manifest.LeafNumber, "hdr.path_probe.dst": manifest.LeafNumber,
	"port": manifest.EgressPort, "in_port": manifest.IngressPort, "dmac": manifest.NextMAC, "smac": manifest.OwnMAC,
	"gid": manifest.GroupID, "n": manifest.PathCount, "slot": manifest.SlotNumber,
	"id": manifest.LeafNumber, "leaf": manifest.LeafNumber,
	"queue": manifest.QueueNumber, "svc": manifest.ServiceTime, "weight": manifest.PathWeight, "end": manifest.WeightEnd,
	"rl": manifest.Reciprocal, "session": manifest.CloneTo, "onward": manifest.FloodTo,
}
