package own

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A role is what a value of a program is for, as far as that shows in what
// becomes of it.
type role int

const (
	noRole    role = iota
	toPort         // becomes the egress port
	toMAC          // becomes the destination of the Ethernet header
	fromMAC        // its source
	toAddress      // becomes the destination of the IPv4 header
	someOf         // how many values a hash or a draw chooses among
	firstOf        // the first of them
	chosen         // one of them, from 0
	member         // one of them, from the first
	flowSlot       // a hash whose range is the program's own
	clockTime      // the time on the switch's clock, us
	queued         // the length of a queue, packets
	outOf          // the egress port itself
	inAt           // the ingress port
	sizes          // bytes of packets
)

// A flow is where the values of a program come from: for each value those that
// it is computed of. Values are fields of headers and metadata, parameters of
// actions, registers.
type flow struct {
	config *bmv2.Config
	from   map[string][]string
	roles  map[string]role
	// index is the field that a register is read or written at.
	index map[string][]string
	// params are the actions of parameters, by their place in the list.
	params map[string]int
}

func fieldName(header, field string) string { return header + "." + field }

func paramName(action string, i int) string { return fmt.Sprintf("%s(%d)", action, i) }

func registerName(name string) string { return "register " + name }

// flowOf follows the values of a program.
func flowOf(c *bmv2.Config) *flow {
	f := &flow{config: c, from: map[string][]string{}, roles: map[string]role{}, index: map[string][]string{}, params: map[string]int{}}
	f.givens()
	for n, a := range slices.Backward(c.Actions) {
		for i := range a.RuntimeData {
			f.params[paramName(a.Name, i)] = n
		}
	}
	for _, a := range c.Actions {
		for _, p := range a.Primitives {
			f.primitive(a, p)
		}
	}
	// What is assigned to something has its purpose; what is computed of
	// something is of its kind. In the order of their names, a value that becomes
	// two things has the same role whenever it is asked for.
	order := slices.Sorted(maps.Keys(f.from))
	for range order {
		changed := false
		for _, to := range order {
			for _, from := range f.from[to] {
				if r := f.roles[to]; r >= toPort && r <= firstOf && f.roles[from] == noRole {
					f.roles[from], changed = r, true
				}
				if r := f.roles[from]; r >= chosen && f.roles[to] == noRole {
					f.roles[to], changed = r, true
				}
			}
		}
		if !changed {
			break
		}
	}
	return f
}

// givens are the roles of the fields that the architecture and the protocols
// give a meaning.
func (f *flow) givens() {
	maps.Copy(f.roles, map[string]role{
		"standard_metadata.egress_spec": toPort, "ig_tm_md.ucast_egress_port": toPort,
		"standard_metadata.egress_port": outOf, "eg_intr_md.egress_port": outOf,
		"standard_metadata.ingress_port": inAt, "ig_intr_md.ingress_port": inAt,
		"standard_metadata.ingress_global_timestamp": clockTime, "standard_metadata.egress_global_timestamp": clockTime,
		"standard_metadata.enq_qdepth": queued, "standard_metadata.deq_qdepth": queued,
		"standard_metadata.packet_length": sizes,
	})
	types := map[string]*bmv2.HeaderType{}
	for _, t := range f.config.HeaderTypes {
		types[t.Name] = t
	}
	for _, h := range f.config.Headers {
		t := types[h.HeaderType]
		if t == nil || h.Metadata {
			continue
		}
		widths := lists.Map(t.Fields, func(f bmv2.HeaderField) int { return f.Width })
		switch {
		case len(widths) >= 3 && widths[0] == 48 && widths[1] == 48:
			f.roles[fieldName(h.Name, t.Fields[0].Name)] = toMAC
			f.roles[fieldName(h.Name, t.Fields[1].Name)] = fromMAC
		case isIPv4(widths):
			f.roles[fieldName(h.Name, t.Fields[len(widths)-1].Name)] = toAddress
		}
	}
}

// isIPv4 reports whether a header has 20 bytes of which the last eight are two
// fields: the addresses.
func isIPv4(widths []int) bool {
	sum := 0
	for _, w := range widths {
		sum += w
	}
	n := len(widths)
	return sum == 160 && n > 4 && widths[n-1] == 32 && widths[n-2] == 32
}

// leaves are the values that an expression is computed of, without those that
// only decide.
func leaves(a *bmv2.Action, e *bmv2.Expr) []string {
	switch {
	case e == nil:
		return nil
	case e.Inner != nil:
		return leaves(a, e.Inner)
	}
	switch e.Type {
	case bmv2.TypeField:
		return []string{fieldName(e.Name, e.Field)}
	case bmv2.TypeRuntimeData, bmv2.TypeLocal:
		return []string{paramName(a.Name, e.Int)}
	case bmv2.TypeExpression:
		switch e.Op {
		case "==", "!=", "<", "<=", ">", ">=", "and", "or", "not", "d2b":
			return nil
		}
		return append(leaves(a, e.Left), leaves(a, e.Right)...)
	}
	return nil
}

func (f *flow) primitive(a *bmv2.Action, p *bmv2.Primitive) {
	arg := func(i int) *bmv2.Expr {
		if i < len(p.Parameters) {
			return p.Parameters[i]
		}
		return nil
	}
	into := func(i int) string {
		if e := arg(i); e != nil && e.Type == bmv2.TypeField {
			return fieldName(e.Name, e.Field)
		}
		return ""
	}
	switch p.Op {
	case "assign":
		if to := into(0); to != "" {
			f.from[to] = append(f.from[to], leaves(a, arg(1))...)
		}
	case "modify_field_with_hash_based_offset":
		f.choice(into(0), leaves(a, arg(1)), leaves(a, arg(3)))
	case "modify_field_rng_uniform":
		f.choice(into(0), leaves(a, arg(1)), leaves(a, arg(2)))
	case "register_read":
		if to := into(0); to != "" && arg(1) != nil {
			reg := registerName(arg(1).Name)
			f.from[to] = append(f.from[to], reg)
			f.index[reg] = append(f.index[reg], leaves(a, arg(2))...)
		}
	case "register_write":
		if arg(0) != nil {
			reg := registerName(arg(0).Name)
			f.from[reg] = append(f.from[reg], leaves(a, arg(2))...)
			f.index[reg] = append(f.index[reg], leaves(a, arg(1))...)
		}
	}
}

// choice notes that a value is chosen between a first one and so many more.
func (f *flow) choice(to string, first, many []string) {
	if to == "" {
		return
	}
	if len(many) == 0 {
		f.set(to, flowSlot)
		return
	}
	for _, name := range many {
		if !slices.Contains(first, name) {
			f.set(name, someOf)
		}
	}
	if len(first) == 0 {
		f.set(to, chosen)
		return
	}
	f.set(to, member)
	for _, name := range first {
		f.set(name, firstOf)
	}
}

// set gives a value a role unless it has one.
func (f *flow) set(name string, r role) {
	if f.roles[name] == noRole {
		f.roles[name] = r
	}
}

// assigned lists the fields that a parameter is assigned to.
func (f *flow) assigned(param string) []string {
	var list []string
	for to, from := range f.from {
		if slices.Contains(from, param) && !strings.HasPrefix(to, "register ") {
			list = append(list, to)
		}
	}
	slices.Sort(list)
	return list
}

// cloneSessions are the sessions that the program clones to, where they are
// constants.
func (f *flow) cloneSessions() []int {
	var list []int
	for _, a := range f.config.Actions {
		for _, p := range a.Primitives {
			if strings.HasPrefix(p.Op, "clone_") && len(p.Parameters) > 0 && p.Parameters[0].Type == bmv2.TypeHexstr {
				var n int
				if _, err := fmt.Sscanf(p.Parameters[0].Hex, "0x%x", &n); err == nil && !slices.Contains(list, n) {
					list = append(list, n)
				}
			}
		}
	}
	return list
}

// recirculates reports whether packets recirculate.
func (f *flow) recirculates() bool {
	return slices.ContainsFunc(f.config.Actions, func(a *bmv2.Action) bool {
		return slices.ContainsFunc(a.Primitives, func(p *bmv2.Primitive) bool { return p.Op == "recirculate" })
	})
}
