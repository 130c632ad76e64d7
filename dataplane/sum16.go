package dataplane

import "github.com/p4lb/p4lb/dataplane/vector"

// The Internet checksum adds 16-bit words, modulo 65535. There 2^16 is 1, so
// that a field counts with its value shifted to where it ends within a word,
// however many words it spans: the fields of a header can be added up where
// they are, instead of being written one behind the other first.

// A sumTerm is a field in such a sum.
type sumTerm struct {
	off   int
	mask  uint64
	shift uint
}

// maxSummed is the width of the widest field that can be shifted by 15 bits.
const maxSummed = 48

// sumTerms are those of a calculation's inputs, and the word that says whether
// they are valid; nil if they are not fields of one header.
func (k *calculation) sumTerms() (terms []sumTerm, valid int) {
	if k.algoID != "csum16" && k.algoID != "cksum16" || k.payload || len(k.inputs) == 0 {
		return nil, 0
	}
	valid, bits := k.inputs[0].valid, 0
	for _, in := range k.inputs {
		if in.parts == nil || in.always || in.valid != valid {
			return nil, 0
		}
		for _, q := range in.parts {
			if q.Width > maxSummed {
				return nil, 0
			}
			bits += q.Width
			terms = append(terms, sumTerm{off: q.Off, mask: q.Mask, shift: uint(-bits & 15)})
		}
	}
	return terms, valid
}

// sumFields is the checksum of the terms for p.
func (k *calculation) sumFields(p *vector.State) uint64 {
	var sum uint64
	if p.W[k.termsValid] != 0 {
		for i := range k.terms {
			t := &k.terms[i]
			v := p.W[t.off] & t.mask << t.shift
			sum += v>>32 + v&0xffffffff
		}
	}
	sum = sum>>32 + sum&0xffffffff
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	return ^sum & 0xffff
}
