package own

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A role is the purpose of a value in a program, derived from how the program
// uses it.
type role int

const (
	noRole    role = iota
	toPort         // becomes the egress port
	toMAC          // becomes the destination of the Ethernet header
	fromMAC        // becomes the source of the Ethernet header
	toAddress      // becomes the destination of the IPv4 header
	someOf         // number of values that a hash or a random number selects from
	firstOf        // the first of these values
	chosen         // one of these values, from 0
	member         // one of these values, from the first
	flowSlot       // a hash with a range chosen by the program
	clockTime      // the switch's clock in us
	queued         // a queue length in packets
	outOf          // the egress port itself
	inAt           // the ingress port
	sizes          // packet sizes in bytes
)

// A flow is the data flow of a program. Values are fields of headers and metadata,
// parameters of actions, and registers. The map from lists, for each value, the
// values from which it is computed.
//
// Roles propagate along this map until nothing changes. A purpose (toPort to
// firstOf) passes from a value to the values from which it is computed. A kind
// (chosen and later roles) passes the other way.
type flow struct {
	config *bmv2.Config
	from   map[string][]string
	roles  map[string]role
	// index has the fields used as index of each register.
	index map[string][]string
	// params has the index of the action of each parameter.
	params map[string]int
	sums   []sum
	// ranges has the number of values of each field that is selected from a constant range
	// from 0, and selects the field that an action selects.
	ranges  map[string]int
	selects map[string]string
}

// A sum is a value that an action computes as the sum of two others.
type sum struct {
	to          string
	left, right []string
}

func fieldName(header, field string) string { return header + "." + field }

func paramName(action string, i int) string { return fmt.Sprintf("%s(%d)", action, i) }

func registerName(name string) string { return "register " + name }

// flowOf analyzes the values of a program.
func flowOf(c *bmv2.Config) *flow {
	f := &flow{config: c, from: map[string][]string{}, roles: map[string]role{}, index: map[string][]string{}, params: map[string]int{}, ranges: map[string]int{}, selects: map[string]string{}}
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
	f.propagate()
	if f.offsets() {
		f.propagate()
	}
	return f
}

// offsets finds sums of a chosen value and the first value of its group, such as
// the offset of the group's members in a table. It reports whether there are any.
func (f *flow) offsets() bool {
	found := false
	for _, s := range f.sums {
		for _, half := range [][2][]string{{s.left, s.right}, {s.right, s.left}} {
			picked := slices.ContainsFunc(half[0], func(v string) bool { return f.roles[v] == chosen || f.roles[v] == member })
			free := len(half[1]) > 0 && !slices.ContainsFunc(half[1], func(v string) bool { return f.roles[v] != noRole })
			if !picked || !free || f.roles[s.to] != chosen && f.roles[s.to] != member {
				continue
			}
			f.roles[s.to], found = member, true
			for _, v := range half[1] {
				f.set(v, firstOf)
			}
		}
	}
	return found
}

// propagate passes roles along the edges until nothing changes.
func (f *flow) propagate() {
	// Values are visited in the order of their names, so that a value that could
	// have two roles always gets the same one.
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
			return
		}
	}
}

// givens sets the roles of fields with a meaning in the architecture and in
// protocols.
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

// isIPv4 reports whether a header has 20 bytes and ends with two 32-bit fields,
// the addresses.
func isIPv4(widths []int) bool {
	sum := 0
	for _, w := range widths {
		sum += w
	}
	n := len(widths)
	return sum == 160 && n > 4 && widths[n-1] == 32 && widths[n-2] == 32
}

// leaves returns the values from which an expression is computed, without
// values that only appear in conditions.
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

// sumOf returns the sum that an expression computes, without masks that cut it to the
// width of a field, or nil.
func sumOf(e *bmv2.Expr) *bmv2.Expr {
	for e != nil {
		switch {
		case e.Inner != nil:
			e = e.Inner
		case e.Type == bmv2.TypeExpression && e.Op == "&" && e.Right != nil && e.Right.Type == bmv2.TypeHexstr:
			e = e.Left
		case e.Type == bmv2.TypeExpression && e.Op == "+" && e.Left != nil:
			return e
		default:
			return nil
		}
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
			if e := sumOf(arg(1)); e != nil {
				f.sums = append(f.sums, sum{to, leaves(a, e.Left), leaves(a, e.Right)})
			}
		}
	case "modify_field_with_hash_based_offset":
		f.choice(into(0), leaves(a, arg(1)), leaves(a, arg(3)))
		f.fixedRange(a, into(0), arg(1), arg(3), 0)
	case "modify_field_rng_uniform":
		f.choice(into(0), leaves(a, arg(1)), leaves(a, arg(2)))
		f.fixedRange(a, into(0), arg(1), arg(2), 1)
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

// choice records that a value is selected from a range given by its first
// element and its size.
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

// fixedRange records that an action selects a value from a range of constants, from 0 to last +
// more, exclusive.
func (f *flow) fixedRange(a *bmv2.Action, to string, first, last *bmv2.Expr, more int) {
	low, ok := constantOf(first)
	high, known := constantOf(last)
	if to != "" && ok && known && low == 0 {
		f.ranges[to], f.selects[a.Name] = high+more, to
	}
}

func constantOf(e *bmv2.Expr) (n int, ok bool) {
	if e == nil || e.Type != bmv2.TypeHexstr {
		return 0, false
	}
	_, err := fmt.Sscanf(e.Hex, "0x%x", &n)
	return n, err == nil
}

// set gives a value a role unless it has one.
func (f *flow) set(name string, r role) {
	if f.roles[name] == noRole {
		f.roles[name] = r
	}
}

// assigned returns the fields to which a parameter is assigned.
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

// cloneSessions returns the constant sessions to which the program clones.
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
