package server

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A hashPart is a field of a hash's input.
type hashPart struct {
	id        uint32
	at, width int
	constant  *uint64
}

// setParts reads the fields of the input from the schema. A constant has the name
// constantN_W_WwV with its width and value.
func (h *hashing) setParts(t *table) {
	for _, f := range t.order {
		p := hashPart{id: f.id, at: h.bits, width: f.part("length").presetOf()}
		if strings.HasPrefix(f.name, "constant") {
			if i := strings.LastIndexByte(f.name, 'w'); i > 0 {
				if v, err := strconv.ParseUint(f.name[i+1:], 10, 64); err == nil {
					p.constant = &v
				}
			}
		}
		h.parts = append(h.parts, p)
		h.bits += p.width
	}
}

// part returns the part of a container with a name.
func (d *datum) part(name string) *datum {
	return lists.First(d.parts, func(p *datum) bool { return p.name == name })
}

// presetOf returns the default number of a field.
func (d *datum) presetOf() int {
	if d == nil || d.preset == nil {
		return 0
	}
	return int(uintOf(d.preset.GetStream()))
}

// A hashSlice is an entry's configuration of a slice of a field.
type hashSlice struct {
	part                 *hashPart
	start, length, order int
}

// configured returns the slices of the input in their order, nil if the entry has
// none.
func (h *hashing) configured(t *table, row *record) ([]hash.Slice, error) {
	if len(row.fields) == 0 {
		return nil, nil
	}
	var list []hashSlice
	for i := range h.parts {
		p, f := &h.parts[i], t.order[i]
		for _, c := range row.fields[p.id].GetContainerArrVal().GetContainer() {
			x := hashSlice{part: p, length: p.width, order: -1}
			for _, v := range c.GetVal() {
				n := int(min(uintOf(v.GetStream()), 1<<16))
				switch k := slices.IndexFunc(f.parts, func(d *datum) bool { return d.id == v.GetFieldId() }); {
				case v.GetValue() == nil:
				case f.parts[k].name == "start_bit":
					x.start = n
				case f.parts[k].name == "length":
					x.length = n
				case f.parts[k].name == "order":
					x.order = n
				}
			}
			switch {
			case x.order < 0:
				return nil, invalidf("a slice of %s has no order", f.name)
			case x.start >= p.width:
				return nil, invalidf("a slice of %s begins at bit %d, and the field has %d", f.name, x.start, p.width)
			}
			x.length = min(x.length, p.width-x.start)
			for _, y := range list {
				if y.part == p && x.start < y.start+y.length && y.start < x.start+x.length {
					return nil, invalidf("slices of %s overlap at bit %d", f.name, max(x.start, y.start))
				}
			}
			if x.length == 0 {
				x.order = 0
			}
			list = append(list, x)
		}
	}
	list = slices.DeleteFunc(list, func(x hashSlice) bool { return x.order == 0 })
	slices.SortStableFunc(list, func(a, b hashSlice) int { return a.order - b.order })
	out := make([]hash.Slice, len(list)) // empty, not nil, if there is none
	for i, x := range list {
		out[i] = hash.Slice{At: x.part.at + x.part.width - x.start - x.length, Width: x.length, With: -1}
		if i == 0 || list[i-1].order != x.order {
			continue
		}
		switch {
		case i > 1 && list[i-2].order == x.order:
			return nil, invalidf("more than two slices have the order %d", x.order)
		case out[i-1].Width != x.length:
			return nil, invalidf("slices of %d and %d bits have the order %d: slices of the same order must have the same length", out[i-1].Width, x.length, x.order)
		}
		out[i-1].With, out[i].With = out[i].At, out[i-1].At
	}
	return out, nil
}

// choose sets the algorithm of a row. A row with only a seed changes the seed. An
// empty row restores the program's algorithm.
func (h *hashing) choose(t *recordTable, row *record) error {
	h.algo, h.rotate, h.seed = nil, 0, nil
	if row.action == 0 && len(row.fields) == 0 {
		return nil
	}
	if v := row.fields[t.field("seed").id]; v != nil {
		n := uintOf(v.GetStream())
		h.seed = &n
	}
	a := t.actions[row.action]
	if a == nil {
		if h.seed == nil || len(row.fields) > 1 {
			return invalidf("the data names no algorithm")
		}
		return nil
	}
	f := hash.Function{Extend: row.flag(t.table, "extend")}
	h.algo, h.rotate = &f, int(row.number(t.table, "rotate"))
	of := func(name string) *wire.DataField {
		return row.fields[a.params[slices.IndexFunc(a.params, func(d *datum) bool { return d.name == name })].id]
	}
	switch row.action {
	case bfrt.HashUserDefined:
	case bfrt.HashPredefined:
		return named(&f, of("algorithm_name").GetStrVal(), h.use.Width)
	default:
		return invalidf("the action %s selects no algorithm", a.name)
	}
	number := func(name string) uint64 { return uintOf(of(name).GetStream()) }
	width := uint64(h.use.Width)
	if of("hash_bit_width") != nil {
		width = number("hash_bit_width")
	}
	return userCRC(&f, width, hash.CRC{Poly: number("polynomial"), Init: number("init"), XorOut: number("final_xor"), ReflectIn: of("reverse").GetBoolVal()})
}

// userCRC sets a CRC that a client defines.
func userCRC(f *hash.Function, width uint64, c hash.CRC) error {
	switch {
	case width < 1 || width > 64:
		return invalidf("a CRC of %d bits: want 1 to 64", width)
	case c.Poly&1 == 0:
		return invalidf("the polynomial %#x is not odd", c.Poly)
	case bits.Len64(c.Init) > int(width):
		return invalidf("init %#x has more than %d bits", c.Init, width)
	case bits.Len64(c.XorOut) > int(width):
		return invalidf("final_xor %#x has more than %d bits", c.XorOut, width)
	}
	f.Width, c.Width = int(width), int(width)
	c.Poly &= num.Mask64(c.Width)
	f.CRC = hash.Reflected(c)
	return nil
}

// named sets an algorithm of the SDE by name. XOR and IDENTITY have the width of the
// hash.
func named(f *hash.Function, name string, width int) error {
	f.Width = width
	switch upper := strings.ToUpper(name); upper {
	case "IDENTITY":
		f.Copy = true
	case "XOR":
	case "RANDOM":
		// The SDE draws a random matrix, so any algorithm fits.
		f.Width, f.CRC = 64, hash.Reflected(hash.Named["CRC_64_JONES"])
	default:
		c, ok := hash.Named[upper]
		if !ok {
			return invalidf("there is no algorithm %q", name)
		}
		f.Width, f.CRC = c.Width, hash.Reflected(c)
	}
	return nil
}

// matrix returns the matrix of the present configuration.
func (h *hashing) matrix() *hash.Matrix {
	s := &hash.Setting{Slices: h.slices, Function: h.own, Rotate: h.rotate, Seed: h.seed}
	if h.algo != nil {
		s.Function = *h.algo
	}
	if s.Slices == nil {
		for _, p := range h.parts {
			s.Slices = append(s.Slices, hash.Slice{At: p.at, Width: p.width, With: -1})
		}
	}
	return s.Matrix(h.use)
}

// set applies the configuration in all pipes.
func (h *hashing) set() error {
	var to *hash.Matrix
	if h.slices != nil || h.algo != nil || h.seed != nil {
		to = h.matrix()
	}
	for _, pipe := range h.p.pipes {
		if err := h.p.s.pipes[pipe].Hashes().Set(h.name, to); err != nil {
			return err
		}
	}
	return nil
}
