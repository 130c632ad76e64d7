package codegen

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A view is the value that templates receive: a row with its parameters set. Its
// methods return names and numbers, so that templates need not compute.
type view struct {
	row    Row // the requested row
	runs   Row // the row after adaptation to the role
	arch   *architecture
	params Params
	values map[string]Value
	blocks []*block

	poly *fitting.Poly // polynomial of a fitted row; nil: set at run time
	cmax int64         // maximum of the polynomial

	types     map[string]int
	places    map[string]string
	body      string
	words     map[string]bool // names in the body
	mentioned []string        // names in comments
	manifest  manifest.Manifest
	registers []register // registers as declared in the program
	word      string
	using     []string // templates being executed
	steps     int      // number of template steps so far
	err       error    // the first error of a template
}

func newView(row Row, p Params) (*view, error) {
	if err := row.validate(); err != nil {
		return nil, err
	}
	if err := p.complete(row); err != nil {
		return nil, err
	}
	arch, err := row.catalogue().architecture(p.Arch)
	if err != nil {
		return nil, err
	}
	if p.StatePath == "ghost" {
		// The ghost thread exists only on Tofino 2, and reads only queue lengths.
		if arch.name != tofino2.name {
			return nil, errors.New("state path ghost: the ghost thread is Tofino 2's, of t2na; want recirc")
		}
		if b := arch.lookup(signal, row.Signal); b == nil || b.Ghost == nil || row.Guard != "none" {
			return nil, fmt.Errorf("state path ghost: it only provides queue lengths, as for drill and qdaps, but %s needs more; want recirc", row.Name)
		}
	}
	if err := arch.hasRoom(row, p.Ports); err != nil {
		return nil, err
	}
	v := &view{row: row, runs: row, arch: arch, params: p, places: map[string]string{}, types: map[string]int{}}
	if v.transit() {
		v.runs.Granularity, v.runs.Choice = "flow", "hash"
	}
	if _, err := row.blocks(arch, p.StatePath, false); err != nil {
		return nil, err // also for a row without leaves, because it has no spines either
	}
	if v.blocks, err = v.runs.blocks(arch, p.StatePath, v.transit()); err != nil {
		return nil, err
	}
	if p.IPv6 {
		if err := v.addIPv6(); err != nil {
			return nil, err
		}
	}
	if v.values, err = row.values(arch, p.StatePath, p.Set); err != nil {
		return nil, err
	}
	if row.like(signal) == "fitted" {
		if err := v.fit(); err != nil {
			return nil, err
		}
	}
	for _, b := range v.blocks {
		if err := b.check(v); err != nil {
			return nil, err
		}
	}
	return v, nil
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
func (v *view) transit() bool { return v.row.block(signal).Edge && !v.Edge() }

// Edge reports whether hosts are attached to the switch.
func (v *view) Edge() bool { return v.params.Role == "leaf" || v.params.Role == "tor" }

// fit sets the polynomial.
func (v *view) fit() error {
	degree := int(v.values["degree"].Int)
	switch {
	case v.params.Printed && degree != 3:
		return fmt.Errorf("errata printed: %s has none that could be kept, a polynomial of degree 3 has", v.row.Name)
	case v.params.Runtime:
		return nil
	case v.params.Coeffs != nil:
		v.poly = v.params.Coeffs
	default:
		p, ok := fitting.Paper(degree, v.params.Printed)
		if !ok {
			v.params.Runtime = true // the paper does not print the coefficients, so the controller sets them
			return nil
		}
		p = p.WithTau(v.values["tau"].Int / 1000)
		v.poly = &p
	}
	if v.poly.Degree != degree {
		return fmt.Errorf("the polynomial is of degree %d: %s has degree %d", v.poly.Degree, v.row.Name, degree)
	}
	if err := v.poly.Validate(); err != nil {
		return fmt.Errorf("the polynomial: %w", err)
	}
	v.cmax = v.poly.Max()
	return nil
}

// title returns the title of the row with the values of its parameters.
func (v *view) title() string {
	values := map[string]string{}
	for name, value := range v.values {
		values[name] = value.Text
	}
	return v.row.titled(values)
}

// N returns the size of the largest group.
func (v *view) N() int { return v.params.Ports }

// Last returns the last slot.
func (v *view) Last() int { return v.params.Ports - 1 }

// Penultimate returns the slot before the last.
func (v *view) Penultimate() int { return v.params.Ports - 2 }

// Slots returns the slots of the largest group.
func (v *view) Slots() []int { return count(v.params.Ports) }

// Turns returns the numbers, from 1, of the other paths that a rerouted packet may
// be offered.
func (v *view) Turns() []int { return count(v.params.Ports)[1:] }

// Draws returns the random draws of a sampled choice, at most one for each path.
func (v *view) Draws() []int { return count(min(int(v.Int("d")), v.N())) }

// Drawn returns the draws of a shuffle: as many as a sampled choice compares, or
// all paths for an ordered choice.
func (v *view) Drawn() []int {
	if v.Few() {
		return v.Slots()
	}
	return v.Draws()
}

// Memories returns the remembered paths of a sampled choice.
func (v *view) Memories() []int { return count(int(v.Int("m"))) }

func count(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// Before returns k-1.
func (v *view) Before(k int) int { return k - 1 }

// Few reports whether an ordered choice examines fewer paths than there are.
func (v *view) Few() bool { return v.runs.like(choice) == "ordered" && int(v.Int("d")) < v.N() }

// Shuffles reports whether paths are drawn without repetition.
func (v *view) Shuffles() bool { return v.runs.like(choice) == "sampled" || v.Few() }

// Int returns the value of a parameter in the unit of the program.
func (v *view) Int(name string) int64 {
	value, ok := v.values[name]
	if !ok {
		panic(fmt.Errorf("%s has no parameter %q", v.row.Name, name)) // an error in a template
	}
	return v.arch.count(v.row.catalogue().param(name), value)
}

// Word returns the value of a parameter as users write it.
func (v *view) Word(name string) string { return v.values[name].Text }

// Cut reports whether the clone session cuts off the payload of reports.
func (v *view) Cut() bool { return v.params.StatePath == cutCopies }

// Shared reports whether egress writes registers that ingress reads.
func (v *view) Shared() bool { return v.params.StatePath == "shared" }

// Reported returns the annotation for metadata that reports carry.
func (v *view) Reported() string {
	if v.In("report") {
		return "@field_list(FIELDS_REPORT)"
	}
	return ""
}

// In reports whether a part is among the row's blocks.
func (v *view) In(name string) bool {
	b := v.arch.lookup(part, name)
	return b != nil && slices.Contains(v.blocks, b)
}

// GroupPerLeaf reports whether group ids are leaf numbers. Tables by group then
// match a prefix of the id, so that groups with the same paths share entries. It is
// not used with weights, because they depend on the leaf and users' controllers
// write them.
func (v *view) GroupPerLeaf() bool {
	if v.row.like(signal) == "weights" {
		return false
	}
	return v.In("flood") || v.Edge() && (v.In("overlay") || v.In("pathprobe"))
}

// Marks reports whether probes are marked at long queues.
func (v *view) Marks() bool { return v.In("ecn") }

// OneWay reports whether the program measures one-way delays.
func (v *view) OneWay() bool { return v.row.like(signal) == "one-way" }

// Memory reports whether the granularity remembers the path of a flow.
func (v *view) Memory() bool { return v.runs.block(granularity).Holds != "" }

// Holds returns the register with the path of a flow.
func (v *view) Holds() string {
	if name := v.runs.block(granularity).Holds; name != "" {
		return name
	}
	return v.runs.block(choice).Holds
}

// RemembersPath reports whether any block remembers the path of a flow.
func (v *view) RemembersPath() bool {
	return v.Memory() || v.runs.like(choice) == "cautious" || v.runs.like(choice) == "ordered"
}

// Freshens reports whether the stored path may expire. It is false if every packet
// chooses a path.
func (v *view) Freshens() bool { return v.Holds() != "" && v.runs.like(granularity) != "packet" }

// Granularity returns the unit of traffic of a decision.
func (v *view) Granularity() string { return v.runs.Granularity }

// FromHash reports whether draws are taken from the 5-tuple.
func (v *view) FromHash() bool { return v.runs.like(granularity) == "flow" && v.runs.hashes() }

// Load returns the register of a port's recent bytes.
func (v *view) Load() string { return v.row.block(signal).Load.Register }

// LoadSymbol returns the paper's symbol for this register.
func (v *view) LoadSymbol() string { return v.row.block(signal).Load.Symbol }

// positive lists the signals whose weights are at least 1.
var positive = []string{"behaviour", "fitted", "queue", "marks"}

// WeightsVanish reports whether the weights of all paths may be 0.
func (v *view) WeightsVanish() bool { return !slices.Contains(positive, v.runs.Signal) }

// Subject declares the parameters of an action that handles a path, in addition to its
// slot.
func (v *view) Subject() string {
	var list []string
	for _, a := range v.Attributes() {
		if a.Name != "port" || v.runs.block(signal).ByPort {
			list = append(list, "in "+a.Type+" "+a.Name)
		}
	}
	return strings.Join(list, ", ")
}

// Candidate lists the attributes of the path at slot as additional arguments of a
// call.
func (v *view) Candidate(slot int) string {
	var b strings.Builder
	for _, a := range v.Attributes() {
		if a.Name != "port" || v.runs.block(signal).ByPort {
			fmt.Fprintf(&b, ", meta.%s_%d", a.Name, slot)
		}
	}
	return b.String()
}

// DrawsFirst reports whether the program first draws two paths and then reads the queues of these
// and of the remembered path. There are not enough containers for the queues of more than 8
// paths.
func (v *view) DrawsFirst() bool {
	return !v.arch.software && v.runs.like(choice) == "sampled" && v.runs.like(granularity) == "packet" && v.N() > 8
}

// AllPaths reports whether the program reads data of all paths at once.
func (v *view) AllPaths() bool { return !v.DrawsFirst() || v.In("reroute") }

// Attributes returns the values that the table candidates stores for each path, or nil
// without such a table.
func (v *view) Attributes() []attribute {
	if !v.AllPaths() {
		return nil
	}
	return slices.Concat(lists.Map(v.blocks, func(b *block) []attribute { return b.Attributes })...)
}

// CandidateParams lists the parameters of set_candidates, with line breaks.
func (v *view) CandidateParams() string {
	var list []string
	for _, a := range v.Attributes() {
		for i := range v.N() {
			list = append(list, fmt.Sprintf("%s %s_%d", a.Type, a.Name, i))
		}
	}
	return inLines(4, list)
}

// inLines joins a list of parameters, n per line.
func inLines(n int, list []string) string {
	var lines []string
	for chunk := range slices.Chunk(list, n) {
		lines = append(lines, strings.Join(chunk, ", "))
	}
	return strings.Join(lines, ",\n")
}

// A register is a register of the manifest, with its declaration in the program.
type register struct {
	manifest.Register
	Type    string `json:"type"`    // type in the program
	Start   string `json:"start"`   // initial value of all cells in the program
	Local   bool   `json:"local"`   // declared by a control
	Comment string `json:"comment"` // comment in the program; "": the meaning
}

// CMax returns the largest congestion index of QALL.
func (v *view) CMax() int64 {
	switch {
	case v.params.Runtime:
		return runtimeMax
	case v.poly != nil:
		return v.cmax
	}
	return 255 * v.Int("tau") * 2
}

// runtimeMax is C_max if the controller sets the coefficients. The controller scales them so that
// the polynomial has this maximum.
const runtimeMax = 1000

// WMin returns the least weight of QALL. A port with weight 0 would get no traffic, and would
// never be measured again.
func (v *view) WMin() int64 { return max(1, v.CMax()>>8) }

// WindowBytes returns the capacity of a link in 2^window µs.
func (v *view) WindowBytes() int64 {
	bytes := new(big.Int).Lsh(big.NewInt(v.Int("link")), uint(v.Int("window")))
	return max(1, bytes.Quo(bytes, big.NewInt(8_000_000)).Int64())
}

// Rate returns the rate of the links, for comments.
func (v *view) Rate() string { return v.values["link"].Text }

// CEReciprocal returns 8·2³²/WindowBytes, which converts bytes to eighths.
func (v *view) CEReciprocal() int64 { return 8 << 32 / v.WindowBytes() }

// RateLimit returns the share r of WindowBytes.
func (v *view) RateLimit() int64 { return v.WindowBytes() * v.Int("r") / 100 }

// A degreeRange is one column of DHLB's Table 1, in bytes.
type degreeRange struct {
	From, To int64
	Degree   int
}

// Degrees returns DHLB's Table 1 for the rate of the links. A utilisation on a boundary belongs
// to the range above it.
func (v *view) Degrees() []degreeRange {
	var list []degreeRange
	full, from := v.WindowBytes(), int64(0)
	for _, c := range []struct {
		below  int64 // in percent
		degree int
	}{{25, 5}, {50, 3}, {70, 2}, {90, 1}} {
		to := (full*c.below + 99) / 100 // the first number of bytes that is not below the limit
		list = append(list, degreeRange{from, max(from, to-1), c.degree})
		from = max(from, to-1) + 1
	}
	return append(list, degreeRange{from, 1<<32 - 1, 0})
}

// ProbePeriods returns the range of DHLB's probe period, for the controller. The paper requires
// at least twice the flowlet gap, because flowlets would otherwise move too fast.
func (v *view) ProbePeriods() string {
	least := "0us"
	if gap, ok := v.values["gap"]; ok {
		least = Time.format(2 * gap.Int)
	}
	return fmt.Sprintf("%s to %s, theta %s", least, v.Word("tmax"), v.Word("theta"))
}

// QTh returns RLB's Q_th: the given value, or d·C, the lower end of its range.
func (v *view) QTh() int64 {
	if given := v.Int("qth"); given != 0 {
		return given
	}
	return v.linkBytes()
}

// RecirculationTime returns the recirculation time of a byte in us/2^32.
func (v *view) RecirculationTime() int64 { return (8_000_000 << 32) / v.Int("rcrate") }

// linkBytes returns d·C in bytes: the data in flight when a warning is sent.
func (v *view) linkBytes() int64 {
	bits := new(big.Int).Mul(big.NewInt(v.Int("link")), big.NewInt(v.values["delay"].Int))
	return bits.Quo(bits, big.NewInt(8_000_000_000)).Int64()
}
