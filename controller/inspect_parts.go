package controller

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fabric"
)

// Tofino's registers say the same things in other words. A stateful ALU gets two
// numbers at once, so a cell may hold a pair; a packet accesses a register once,
// so what is looked up for all paths of a group is there as often as there are
// paths; and times count in 1024 ns, of which a cell holds 32 bits. What readers
// see of them are arrays with the names and units that software switches have.

// A part is where the cells of an array are: so many bits of a register's.
type part struct {
	register *codegen.Register
	shift    int
	width    int
}

// pairs are the names of the halves of cells.
var pairs = map[string][2]string{
	"best": {"min_util", "best_hop"}, "fl": {"fl_D", "fl_port"}, "qe_L": {"qe_L", "qe_V"}, "ig_0": {"ig_q0", "ig_t0"},
	"warn_until": {"faulty", "warn_until"},
	"deg":        {"deg", "deg_ts"}, "to_leaf": {"to_leaf", "to_leaf_ts"}, "fc": {"fc_count", "fc_cell"},
}

// otherNames are those of registers that have another one on software switches.
var otherNames = map[string]string{"until": "warn_until", "q_len_0": "q_len"}

// ofSlot matches a register that there is one of for each slot of a group.
var ofSlot = regexp.MustCompile(`_(\d+)\.\w+$|^q_len_(\d+)$`)

// slotOf is the slot that a register is for, -1 for one that is for all.
func slotOf(r *codegen.Register) int {
	m := ofSlot.FindStringSubmatch(r.Name)
	if m == nil {
		return -1
	}
	slot, err := strconv.Atoi(m[1] + m[2])
	if err != nil {
		return -1
	}
	return slot
}

// hardwareArrays are what the registers of a program for Tofino say. Copies for
// the slots of a group are one array: those by port or queue are alike, those by
// group together are one by path. Registers that are named are shown as they are.
func hardwareArrays(m *codegen.Manifest, named []string) []*array {
	var list []*array
	merged := map[string][]*array{}
	for i := range m.Registers {
		r := &m.Registers[i]
		if len(named) > 0 && !slices.Contains(named, r.Name) {
			continue
		}
		halves := halvesOf(r)
		slot := slotOf(r)
		switch {
		case slot < 0 || len(named) > 0:
			list = append(list, halves...)
		case slot == 0:
			merged[short(r.Name)] = halves
			list = append(list, halves...)
		case r.Index == "group":
			for k, a := range merged[short(r.Name)] {
				a.parts = append(a.parts, halves[k].parts...)
			}
		}
	}
	for _, a := range list {
		if len(a.parts) > 1 {
			a.index, a.Size = byPath, a.Size<<4
			a.Meaning = strings.Replace(a.Meaning, " path 0", " the path", 1)
		}
		a.Meaning = aboutCopies.ReplaceAllString(a.Meaning, "")
	}
	return list
}

// aboutCopies is what manifests say of copies.
var aboutCopies = regexp.MustCompile(`; one of \d+ copies, for slot \d+`)

// halvesOf are the arrays that a register is: one, or two where its cells are
// pairs.
func halvesOf(r *codegen.Register) []*array {
	name := short(r.Name)
	if other := otherNames[name]; other != "" {
		name = other
	}
	units := strings.Split(r.Unit, ", ")
	if len(units) != 2 {
		return []*array{arrayOf(name, r.Unit, r.Meaning, part{r, 0, r.Width})}
	}
	names, ok := pairs[name]
	if !ok {
		names = [2]string{name, name + "_2"}
	}
	first, second := r.Meaning, r.Meaning
	if i := strings.LastIndex(r.Meaning, "and "); i > 0 {
		first, second = strings.TrimRight(r.Meaning[:i], ",; "), r.Meaning[i+len("and "):]
	}
	half := r.Width / 2
	return []*array{
		arrayOf(names[0], units[0], first, part{r, half, half}),
		arrayOf(names[1], units[1], second, part{r, 0, half}),
	}
}

// tickUnit is the unit of times on Tofino.
const (
	tickUnit = "1024ns"
	tickTime = 1024 * time.Nanosecond
)

// arrayOf makes an array of a part, in the units of software switches.
func arrayOf(name, unit, meaning string, p part) *array {
	r := *p.register
	r.Name, r.Unit, r.Meaning, r.Width = name, unit, meaning, p.width
	switch unit {
	case tickUnit:
		r.Unit = "us"
	case "utilisation":
		r.Unit, r.Scale = "share", fullLoad
	case "occupancy":
		r.Scale = 15
	case "congestion":
		r.Scale = 7
	}
	a := &array{Register: &r, index: indexKinds[r.Index], parts: []part{p}, ticks: unit == tickUnit}
	a.moment = isMoment(&r)
	return a
}

// middle is a clock by which no time is before the clock began.
const middle = 1 << 31 * 1024 * time.Nanosecond

// assemble makes the cells of arrays from those of their registers that have
// been read.
func (in *Inspector) assemble(clock time.Duration) {
	for _, a := range in.arrays {
		if a.parts != nil && in.fresh[a.parts[0].register.Name] {
			in.assembleOne(a, clock)
		}
	}
}

func (in *Inspector) assembleOne(a *array, clock time.Duration) {
	a.cells, a.raw = a.cells[:0], a.raw[:0]
	for i := range in.fetched[a.parts[0].register.Name] {
		for _, p := range a.parts {
			a.add(in.fetched[p.register.Name][i], p, clock)
		}
		if len(a.parts) > 1 {
			none := make([]uint64, codegen.MaxPaths-len(a.parts))
			a.cells, a.raw = append(a.cells, none...), append(a.raw, none...)
		}
	}
}

// add appends a cell.
func (a *array) add(cell uint64, p part, clock time.Duration) {
	v := cell >> p.shift
	if p.width < 64 {
		v &= 1<<p.width - 1
	}
	a.raw = append(a.raw, v)
	switch {
	case a.moment && v != 0:
		v = moment(v, clock)
	case a.ticks:
		v = v * 1024 / 1000
	case a.Unit == "trend": // 0 falling, 1 rising
		v++
	case a.Unit == "congestion": // of 7, and the slot
		v >>= 4
	}
	a.cells = append(a.cells, v)
}

// moment is a time of 32 bits in ticks as one in us, the one that is nearest to
// the clock.
func moment(ticks uint64, clock time.Duration) uint64 {
	now := int64(clock) >> 10
	at := now + int64(int32(uint32(ticks)-uint32(now)))
	return uint64(max(1, at*1024/1000))
}

// gridRule is how the hardware's table of grids weighs paths: by their levels.
// If that gives none of a group a weight, those of the level that the table
// states count alike.
func (r *reader) gridRule(baked *codegen.Baked) func(fabric.Group, int, fabric.Hop) float64 {
	level := r.levels()
	if level == nil {
		return nil
	}
	weight := func(l int) int {
		if l < len(baked.Weights) {
			return baked.Weights[l]
		}
		return 0
	}
	return func(g fabric.Group, slot int, hop fabric.Hop) float64 {
		sum := 0
		for other, h := range g.Hops {
			sum += weight(level(g.ID, other, h.Port))
		}
		own := level(g.ID, slot, hop.Port)
		switch {
		case sum > 0:
			return float64(weight(own))
		case slices.Contains(baked.Zero, own):
			return 1
		}
		return 0
	}
}

// levels finds the level of a path: of its port, or of the path itself.
func (r *reader) levels() func(group, slot, port int) int {
	for _, name := range []string{"q_C", "deg"} {
		a := r.in.byName[name]
		switch {
		case a == nil || len(a.raw) == 0:
		case a.index == byPort:
			return func(_, _, port int) int { return int(a.raw[min(port, len(a.raw)-1)]) }
		case a.index == byPath:
			return func(group, slot, _ int) int { return int(a.raw[min(group<<4+slot, len(a.raw)-1)]) }
		}
	}
	return nil
}

// bakedGrids is the table of grids that the program has, or nil.
func bakedGrids(m *codegen.Manifest) *codegen.Baked {
	if m.Hardware == nil {
		return nil
	}
	i := slices.IndexFunc(m.Hardware.Baked, func(b codegen.Baked) bool { return len(b.Weights) > 0 })
	if i < 0 {
		return nil
	}
	return &m.Hardware.Baked[i]
}

// fetch reads the registers that arrays are parts of, each once.
func (in *Inspector) fetch(ctx context.Context, a *array) error {
	for _, p := range a.parts {
		name := p.register.Name
		if in.fresh[name] {
			continue
		}
		n := in.used(indexKinds[p.register.Index], p.register.Size)
		var err error
		if in.fetched[name], err = in.regs.Read(ctx, name, 0, n, in.fetched[name][:0]); err != nil {
			return in.explain(name, err)
		}
		in.fresh[name] = true
	}
	return nil
}
