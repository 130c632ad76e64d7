package bmv2

import "slices"

// pipeHeaders are the types of the intrinsic metadata that Tofino puts before a
// packet for its parsers.
var pipeHeaders = []string{"ingress_intrinsic_metadata_t", "egress_intrinsic_metadata_t"}

// pipe checks that a Tofino document has the blocks of a pipe.
func (v *validator) pipe() {
	switch v.c.Architecture() {
	case "":
		return
	case TNA, T2NA:
	default:
		v.failf("__meta__.architecture", "unknown architecture %q: want %s or %s", v.c.Architecture(), TNA, T2NA)
		return
	}
	if chip := v.c.Meta.Chip; chip != "" && chip != T2NA {
		v.failf("__meta__.chip", "unknown chip %q: leave it out for %s, or name %s", chip, v.c.Architecture(), T2NA)
		return
	}
	for _, name := range pipeHeaders {
		if v.types[name] == nil {
			v.failf("header_types", "a program for %s needs the header type %s", v.c.Architecture(), name)
		}
	}
	if pipes := v.c.Meta.Pipes; len(pipes) > maxPipes || slices.ContainsFunc(pipes, func(k int) bool { return k < 0 || k >= maxPipes }) {
		v.failf("__meta__.pipes", "%v: want the program numbers of at most %d pipes", pipes, maxPipes)
		return
	}
	for k := range v.c.Programs() {
		// Each program has its own blocks.
		prefix := PipePrefix(k)
		for _, gress := range []string{prefix + "ingress", prefix + "egress"} {
			needs(v, "parsers", v.c.Parsers, gress+"_parser", func(p *Parser) string { return p.Name })
			needs(v, "pipelines", v.c.Pipelines, gress, func(p *Pipeline) string { return p.Name })
			needs(v, "deparsers", v.c.Deparsers, gress+"_deparser", func(d *Deparser) string { return d.Name })
		}
	}
}

// maxPipes is the number of pipes of a Tofino.
const maxPipes = 4

// needs checks that one of the blocks has the name.
func needs[T any](v *validator, path string, blocks []T, name string, nameOf func(T) string) {
	if !slices.ContainsFunc(blocks, func(b T) bool { return nameOf(b) == name }) {
		v.failf(path, "a program for %s needs %s", v.c.Architecture(), name)
	}
}

func (v *validator) filters() {
	list := v.c.FilterArrays
	v.unique("filter_arrays", len(list), func(i int) (string, int) { return list[i].Name, list[i].ID })
	for i, a := range list {
		v.size(at("filter_arrays", i), a.Size, 8)
		if a.Bitwidth <= 0 || a.Bitwidth > 64 {
			v.failf(at("filter_arrays", i), "bitwidth %d is outside 1..64", a.Bitwidth)
		}
	}
}

// crc checks that the calculation has a polynomial if and only if its algorithm
// needs one.
func (v *validator) crc(path string, k *Calculation) {
	if (k.Algo == AlgoCRC) != (k.CRC != nil) {
		v.failf(path, "algorithm %q with crc %v: crc belongs to %s", k.Algo, k.CRC != nil, AlgoCRC)
		return
	}
	if k.CRC == nil {
		return
	}
	if k.CRC.Width < 8 || k.CRC.Width > 64 {
		v.failf(path+".crc", "width %d is outside 8..64", k.CRC.Width)
		return
	}
	v.number(path+".crc.poly", k.CRC.Poly, k.CRC.Width)
	v.number(path+".crc.init", k.CRC.Init, k.CRC.Width)
	v.number(path+".crc.xor", k.CRC.Xor, k.CRC.Width)
}

// number checks that a hexstr is a number of at most width bits.
func (v *validator) number(path, hex string, width int) {
	n, err := ParseHex(hex)
	switch {
	case err != nil:
		v.failf(path, "%w", err)
	case n.Sign() < 0 || n.BitLen() > width:
		v.failf(path, "%s does not fit into %d bits", hex, width)
	}
}
